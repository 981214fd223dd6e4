"""Packet traces of the Internet Traffic Archive, made into Parquet."""
