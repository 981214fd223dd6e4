"""Runners execute turns: on abstract tuples, on fractions of tuples, or on batches of rows."""

from __future__ import annotations

from dsms.engine.runners.batches import BatchRunner
from dsms.engine.runners.fractions import PieceRunner
from dsms.engine.runners.runner import DeadLetterSink, RowRunner, Runner, Sink, Step
from dsms.engine.runners.tuples import TupleRunner
from dsms.plan.graph import Plan

__all__ = [
    "BatchRunner",
    "DeadLetterSink",
    "PieceRunner",
    "RowRunner",
    "Runner",
    "Sink",
    "Step",
    "TupleRunner",
    "inline_runner",
]


def inline_runner(plan: Plan) -> type[Runner]:
    """Return the runner in this process that suits the plan: tuple by tuple for abstract plans, batches for rows."""
    if not plan.abstract:
        return BatchRunner
    return PieceRunner if plan.settings.fractional else TupleRunner
