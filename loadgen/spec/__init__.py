"""A plan's load: the rows of each stream, and when each row is due."""
