"""Runs a batch that waits at time 0 to its end, and records when results left and how many bytes were queued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsms.data.journal import Journal
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.measure.completions import Completions
from dsms.papers import Measurements, PlotLine, band_from
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from
from dsms.simulation import simulate

Floats = NDArray[np.float64]
BAND_MORE = band_from(1 + 1e-6)  # a ratio above 1 by more than rounding errors


@dataclass
class FixedOrderPolicy(Policy):
    """Runs given segments in the given order: for comparison with the segments that a paper's rule chooses."""

    name: ClassVar[str] = "in-order"
    dynamic: ClassVar[bool] = False

    pieces: Sequence[Sequence[str]]  # the operators' names, by segment

    def segments(self, plan: Plan) -> list[Segment]:
        named = {station.name: station for station in plan.stations}
        return [Segment(tuple(named[name] for name in piece)) for piece in self.pieces]

    def priority(self, segment: Segment) -> float:
        return -segment.index


class DrainObserver(Observer):
    """Records every result's latency, and the bytes queued between any two changes."""

    trusted = True

    def __init__(self) -> None:
        self._left: list[Floats] = []
        self._latencies: list[Floats] = []
        self.until: list[float] = []  # the end of each span
        self.held: list[float] = []  # the bytes queued in each span

    def attach(self, engine: Engine) -> None:
        self._size = engine.ledger.size

    def read(self, journal: Journal) -> None:
        completions = Completions.of(journal)
        self._left.append(np.repeat(completions.left, completions.alike))
        self._latencies.append(np.repeat(completions.left - completions.arrived, completions.alike))
        self.until += journal.instants
        self.held += journal.held_bytes if self._size is None else [n * self._size for n in journal.held]

    @property
    def left(self) -> Floats:
        """The instants at which results left, in order."""
        return np.sort(np.concatenate(self._left))

    @property
    def latencies(self) -> Floats:
        """The latency of each result; the sum is the area under the output-completion chart."""
        return np.concatenate(self._latencies)


@dataclass(frozen=True)
class DrainResult:
    """The measurements of one batch that was run to its end."""

    observer: DrainObserver
    elapsed: float

    @property
    def latency(self) -> float:
        """The mean latency of the results."""
        return float(self.observer.latencies.mean())

    @property
    def area(self) -> float:
        """The area under the output-completion chart."""
        return float(self.observer.latencies.sum())

    @property
    def bytes_area(self) -> float:
        """The area under the memory-reduction chart."""
        return float(np.dot(self.observer.held, np.diff(self.observer.until, prepend=0.0)))

    def sampled(self, every: float) -> float:
        """The sum of the bytes queued at 0, `every`, 2 × `every`, … until the batch is done."""
        until, held = self._spans()
        instants = np.arange(0.0, self.elapsed, every)
        return float(held[np.searchsorted(until, instants, side="right")].sum())

    def outputs_left(self) -> dict[str, list[float]]:
        """The output-completion chart: results still to come, over time."""
        left = self.observer.left
        return {"at": [0.0, *left.tolist()], "left": np.arange(len(left), -1, -1, dtype=float).tolist()}

    def bytes_left(self) -> dict[str, list[float]]:
        """The memory-reduction chart: bytes queued, over time."""
        until, held = self._spans()
        return {"at": [0.0, *until.tolist()], "left": [*held.tolist(), 0.0]}

    def _spans(self) -> tuple[Floats, Floats]:
        """The ends and the bytes of the spans longer than 0."""
        until, held = np.array(self.observer.until), np.array(self.observer.held)
        has_length = np.diff(until, prepend=0.0) > 0
        return until[has_length], held[has_length]


def drain_batch(plan: Plan, policy: str | Policy) -> DrainResult:
    """Run a plan whose tuples wait at time 0 under a policy, to the end."""
    observer = DrainObserver()
    run = simulate(plan, policy, observers=[observer])
    return DrainResult(observer, run.elapsed)


def arrive_at_zero(tuples: int, **columns: Any) -> dict[str, Any]:
    """The arrivals table of a plan: that many tuples at time 0, with further columns such as `cost`."""
    return {"kind": "list", "at": [0] * tuples, **columns}


def single_stream_plan(tuples: int, operators: Sequence[dict[str, Any]], **run: Any) -> Plan:
    """A plan with one stream, whose batch of tuples of size 1 waits at time 0, and one query."""
    return plan_from({
        "streams": {"s": {"arrivals": arrive_at_zero(tuples)}},
        "queries": {"q": {"operators": list(operators)}},
        "run": run,
    })  # fmt: skip


def partitions(plan: Plan, policy: str) -> list[Segment]:
    """The segments into which a policy cuts a plan, the steepest first."""
    return sorted(policy_named(policy).segments(plan), key=lambda segment: -segment.slope)


def count_placed_as(plan: Plan, policy: str, stated: Sequence[Sequence[str]]) -> int:
    """How many operators a policy puts into the segment that the paper states, in whatever order inside it."""
    chosen = [set(segment.names) for segment in partitions(plan, policy)]
    return sum(len(chosen[place] & set(piece)) for place, piece in enumerate(stated) if place < len(chosen))


def chart_line(label: str, measured: Measurements, **conditions: Any) -> PlotLine:
    """The chart that one run recorded, as a line."""
    return PlotLine(label, measured.series("at", **conditions), measured.series("left", **conditions), steps=True)
