"""Starts and ends all actors of one plan, and knows what runs on them."""
