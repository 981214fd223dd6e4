"""Runners: who carries out a grant; the goods stay with them, the engine gets to know only what came of it."""

from __future__ import annotations

from dsms.plan import Plan
from dsms.runners.base import Runner, Step
from dsms.runners.batches import BatchRunner
from dsms.runners.pieces import PieceRunner
from dsms.runners.tuples import TupleRunner

__all__ = ["BatchRunner", "PieceRunner", "Runner", "Step", "TupleRunner", "inline_runner"]


def inline_runner(plan: Plan) -> type[Runner]:
    """The runner for this process that suits the plan: exact for abstract load, columns for real rows."""
    if not plan.abstract:
        return BatchRunner
    return PieceRunner if plan.settings.fractional else TupleRunner
