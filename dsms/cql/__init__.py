"""CQL: continuous queries as text."""
