"""Generates the values of a load's rows, column by column, as a pure function of the row numbers."""

from loadgen.spec.values.values import Values

__all__ = ["Values"]
