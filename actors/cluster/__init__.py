"""Connecting to a Ray cluster, placing actors on it, and leaving it clean."""
