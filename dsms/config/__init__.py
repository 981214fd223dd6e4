"""The tables of a plan file that hold settings, each checked field by field."""
