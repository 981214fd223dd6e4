"""The commands that need Spark."""
