"""Converts packet traces of the Internet Traffic Archive to Parquet."""
