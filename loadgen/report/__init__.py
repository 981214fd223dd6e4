"""Analyses recorded runs with Spark: tables of figures in Parquet, and an HTML page."""
