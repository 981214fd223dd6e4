"""Operators: state plus `process(batch, port) -> Batch`; an operator never sees a queue, a clock or a metric."""

from dsms.operators.abstract import AbstractOperator
from dsms.operators.base import Operator
from dsms.operators.batch_function import FunctionOperator

__all__ = ["AbstractOperator", "FunctionOperator", "Operator"]
