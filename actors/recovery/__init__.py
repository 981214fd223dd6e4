"""Detects dead processes and rebuilds a deployment from its last checkpoint."""
