"""The operators that count rows: GROUP BY aggregates and DISTINCT."""

from dsms.operators.aggregation.aggregate import AggregateOperator
from dsms.operators.aggregation.distinct import DistinctOperator

__all__ = ["AggregateOperator", "DistinctOperator"]
