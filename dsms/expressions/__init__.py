"""Expressions over columns: their trees, their types, and their evaluation over whole batches."""
