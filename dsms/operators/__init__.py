"""Operators: state plus `process(batch, port) -> Batch`; they know nothing of queues, clocks or metrics."""

from dsms.operators.abstract import Abstract
from dsms.operators.base import Aside, Operator
from dsms.operators.function import Function

__all__ = ["Abstract", "Aside", "Function", "Operator"]
