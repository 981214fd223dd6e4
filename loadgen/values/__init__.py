"""What is in the rows of a load: column by column, a pure function of the rows' numbers."""

from loadgen.values.values import Values

__all__ = ["Values"]
