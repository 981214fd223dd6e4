"""Calls a running deployment, and turns its status into tables."""
