"""Processes of a durable deployment killed at random while rows come, and every result checked afterwards."""
