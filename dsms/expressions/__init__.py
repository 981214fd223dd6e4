"""Expressions over columns: trees, their types, and their values."""
