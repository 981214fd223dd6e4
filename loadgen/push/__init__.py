"""Sends rows at the instants at which they are due, in order."""
