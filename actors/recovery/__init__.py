"""Saves checkpoints of a deployment, detects dead processes and rebuilds from the last checkpoint."""
