"""The result hub: collects every query's results in order, for files and subscribers."""
