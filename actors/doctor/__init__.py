"""Checks whether a machine can run a deployment, without starting anything."""
