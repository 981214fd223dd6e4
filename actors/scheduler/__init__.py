"""The scheduler actor: runs one domain's engine and grants turns to its hosts."""
