"""A batch that waits at time 0, run to its end: when its results left, and what its buffers held meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsms.departures import Departures
from dsms.engine import Engine
from dsms.journal import Journal
from dsms.observers import Observer
from dsms.papers import Line, Measured, at_least
from dsms.plan import Plan
from dsms.planfile import plan_from
from dsms.policies.base import Policy
from dsms.policies.registry import policy_named
from dsms.segment import Segment
from dsms.simulate import simulate

Floats = NDArray[np.float64]
MORE = at_least(1 + 1e-6)  # as a ratio: more, by whatever a sum of floats cannot be off


@dataclass
class InOrder(Policy):
    """A cut that is given, to set what a paper's rule chooses against what it does not: the first named runs first."""

    name: ClassVar[str] = "in-order"
    dynamic: ClassVar[bool] = False

    cut_into: Sequence[Sequence[str]]  # the names of operators

    def segments(self, plan: Plan) -> list[Segment]:
        named = {station.name: station for station in plan.stations}
        return [Segment(tuple(named[name] for name in piece)) for piece in self.cut_into]

    def priority(self, segment: Segment) -> float:
        return -segment.index


class Watch(Observer):
    """Every result's latency, and the bytes held between any two changes."""

    trusted = True

    def __init__(self) -> None:
        self._left: list[Floats] = []
        self._late: list[Floats] = []
        self.until: list[float] = []  # the ends of spans
        self.held: list[float] = []  # bytes in each of them

    def attach(self, engine: Engine) -> None:
        self._size = engine.ledger.size

    def read(self, journal: Journal) -> None:
        gone = Departures.of(journal)
        self._left.append(np.repeat(gone.left, gone.alike))
        self._late.append(np.repeat(gone.left - gone.arrived, gone.alike))
        self.until += journal.instants
        self.held += journal.held_bytes if self._size is None else [n * self._size for n in journal.held]

    @property
    def left(self) -> Floats:
        """When results left, the first of them first."""
        return np.sort(np.concatenate(self._left))

    @property
    def late(self) -> Floats:
        """How long they had been waited for: their sum is the area under the output-completion chart."""
        return np.concatenate(self._late)


@dataclass(frozen=True)
class Gone:
    """A batch that has been worked off."""

    watch: Watch
    elapsed: float

    @property
    def latency(self) -> float:
        """The mean over results."""
        return float(self.watch.late.mean())

    @property
    def area(self) -> float:
        """Under the output-completion chart."""
        return float(self.watch.late.sum())

    @property
    def bytes_area(self) -> float:
        """Under the memory-reduction chart."""
        return float(np.dot(self.watch.held, np.diff(self.watch.until, prepend=0.0)))

    def sampled(self, every: float) -> float:
        """The bytes held at 0, `every`, … until the batch is done, added up."""
        until, held = self._spans()
        instants = np.arange(0.0, self.elapsed, every)
        return float(held[np.searchsorted(until, instants, side="right")].sum())

    def outputs_left(self) -> dict[str, list[float]]:
        """The output-completion chart, a step for each result."""
        left = self.watch.left
        return {"at": [0.0, *left.tolist()], "left": np.arange(len(left), -1, -1, dtype=float).tolist()}

    def bytes_left(self) -> dict[str, list[float]]:
        """The memory-reduction chart."""
        until, held = self._spans()
        return {"at": [0.0, *until.tolist()], "left": [*held.tolist(), 0.0]}

    def _spans(self) -> tuple[Floats, Floats]:
        """Those that lasted."""
        until, held = np.array(self.watch.until), np.array(self.watch.held)
        lasting = np.diff(until, prepend=0.0) > 0
        return until[lasting], held[lasting]


def worked_off(plan: Plan, policy: str | Policy) -> Gone:
    """The batch under a policy."""
    watch = Watch()
    run = simulate(plan, policy, observers=[watch])
    return Gone(watch, run.elapsed)


def at_zero(tuples: int, **carried: Any) -> dict[str, Any]:
    """Arrivals: so many at time 0, with what they carry."""
    return {"kind": "list", "at": [0] * tuples, **carried}


def on_one_stream(tuples: int, operators: Sequence[dict[str, Any]], **run: Any) -> Plan:
    """A batch before one query, tuples of size 1."""
    return plan_from({
        "streams": {"s": {"arrivals": at_zero(tuples)}},
        "queries": {"q": {"operators": list(operators)}},
        "run": run,
    })  # fmt: skip


def partitions(plan: Plan, policy: str) -> list[Segment]:
    """What a policy cuts a plan into, the steepest first."""
    return sorted(policy_named(policy).segments(plan), key=lambda segment: -segment.slope)


def cut_as(plan: Plan, policy: str, stated: Sequence[Sequence[str]]) -> int:
    """How many operators a policy puts into the piece that is stated, their order inside it aside."""
    found = [set(segment.names) for segment in partitions(plan, policy)]
    return sum(len(found[place] & set(piece)) for place, piece in enumerate(stated) if place < len(found))


def drawn(label: str, measured: Measured, **wanted: Any) -> Line:
    """A chart that a run has left."""
    return Line(label, measured.series("at", **wanted), measured.series("left", **wanted), steps=True)
