"""Starts, controls and ends all actors of one plan."""
