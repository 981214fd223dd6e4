"""Splits the difference between what a simulation predicts of a recorded run and what happened into its causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

COMPARED_FIGURES = ("memory_mean", "latency_mean", "latency_p99", "staleness")
NOT_EXPLAINED = "not explained"
TITLES = {"late_rows": "late rows", "dead_time": "dead time", "stretch": "stretch of costs"}
Figures = Mapping[str, float | None]


class Causes(NamedTuple):
    """Which effects of the recorded system a replay has besides its work."""

    slice: bool = True  # turns are as long as they were, not one tuple
    late_rows: bool = True  # rows arrive when they were admitted, not when they were due
    dead_time: bool = True  # turns take time besides their work
    hops: bool = True  # so does each change of host
    stretch: bool = True  # work takes longer than its cost


ALL_CAUSES, NO_CAUSES = Causes(), Causes(*[False] * len(Causes._fields))


@dataclass(frozen=True)
class Prediction:
    """The figures that a simulation predicts, what each cause adds to them, and the figures that happened."""

    predicted: Figures
    added: Mapping[str, Figures]  # by cause, in order; the last is what no cause explains
    happened: Figures

    def to_json(self) -> dict[str, Any]:
        """The prediction as plain data."""
        added = [{"cause": cause, **figures} for cause, figures in self.added.items()]
        return {"predicted": dict(self.predicted), "causes": added, "happened": dict(self.happened)}

    def rows(self) -> list[tuple[str, Figures, bool]]:
        """The lines of a table: a title, its figures, and whether these are differences."""
        causes = [(f"+ {cause}" if cause != NOT_EXPLAINED else cause, more, True) for cause, more in self.added.items()]
        return [("predicted", self.predicted, False), *causes, ("happened", self.happened, False)]


def split_by_cause(
    happened: Figures, replay: Callable[[Causes], Figures], relevant: Sequence[str], complete: Figures
) -> Prediction:
    """Replay a run without its relevant causes, then with one after the other; `complete` has all of them."""
    causes = ALL_CAUSES._replace(**dict.fromkeys(relevant, False))
    predicted = before = _select(replay(causes) if relevant else complete)
    added: dict[str, Figures] = {}
    for place, name in enumerate(relevant, 1):
        causes = causes._replace(**{name: True})
        after = _select(replay(causes) if place < len(relevant) else complete)
        added[TITLES.get(name, name)] = _subtract(after, before)
        before = after
    added[NOT_EXPLAINED] = _subtract(_select(happened), before)
    return Prediction(predicted, added, _select(happened))


def _select(figures: Figures) -> Figures:
    return {name: figures[name] for name in COMPARED_FIGURES}


def _subtract(after: Figures, before: Figures) -> Figures:
    pairs = {name: (after[name], before[name]) for name in COMPARED_FIGURES}
    return {name: None if one is None or other is None else one - other for name, (one, other) in pairs.items()}
