"""Groups and their aggregates, and rows each once: what counts how often something is there."""

from dsms.operators.aggregation.aggregate import Aggregate
from dsms.operators.aggregation.distinct import Distinct

__all__ = ["Aggregate", "Distinct"]
