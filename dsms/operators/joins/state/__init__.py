"""The state of the multiway join: the rows of windows, the index of their keys, and intermediate results."""
