"""Rows as columns, their schemas, and what the engine and operators exchange about them."""
