"""Makes runnable plans of plan files, CQL text and queries built in Python."""
