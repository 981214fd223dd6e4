"""Why a segment stands where it stands: the inputs to its priority, in numbers and in words."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dsms.charts import Point, chains, deltas, lower_envelope, slopes
from dsms.foresight import head
from dsms.ledger import NOTHING
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.policies.by_chart import path_chart, unfolded
from dsms.policies.registry import parameters
from dsms.segment import Segment
from dsms.statistics import Statistics

Inputs = dict[str, float | str]
# What a priority may look at, what people call it, and how it is said.
READ = {
    "pending": ("pending", "{:.6g} queued"),
    "selectivity": ("selectivity", "each gives {:.6g}"),
    "freed": ("freed", "each frees {:.6g} bytes"),
    "mean_cost": ("cost", "takes {:.6g}"),
    "weight": ("weight", "weight {:.6g}"),
}
MOST_DRAWN = 10_000  # operators on all ways through a plan
TUPLES = {"queues", "only", "heads"}  # who reads these looks at the tuples themselves


@dataclass(frozen=True)
class PathChart:
    """The progress chart of one way through the plan, and the lower envelope that cuts it into chains."""

    query: str
    path: list[str]  # operator i leads from point i to point i + 1
    points: list[Point]  # time spent on what is left of one tuple, and the bytes that are left of it
    envelope: list[int]  # the points on it
    chains: list[list[str]]  # the operators of each of its pieces,
    slopes: list[float]  # how fast it falls along it,
    deltas: list[float]  # and how far the actual chart gets above it

    @property
    def title(self) -> str:
        return f"{self.query}: {' → '.join(self.path)}"

    @classmethod
    def of(cls, query: str, path: list[str], points: list[Point]) -> PathChart:
        """The chart that has these points, with all that follows from them."""
        envelope = lower_envelope(points)
        pieces = [[path[i] for i in chain] for chain in chains(points)]
        return cls(query, path, points, envelope, pieces, slopes(points, envelope), deltas(points, envelope))


def path_charts(plan: Plan, statistics: Statistics) -> list[PathChart]:
    """The charts of all ways through the plan as it is known; none where these are too many to look at."""
    return [
        PathChart.of(path[-1].query.name, [station.name for station in path], path_chart(path, plan, statistics))
        for path in (plan.paths() if unfolded(plan) <= MOST_DRAWN else ())
    ]


def knows_the_future(policy: Policy | type[Policy]) -> bool:
    """Whether it looks at what will become of queued tuples: a yardstick, which no system could run."""
    return policy.clairvoyant


def rule(policy: Policy) -> str:
    """What it does in one sentence: its own."""
    module = inspect.getmodule(type(policy))
    text = inspect.getdoc(module) if module is not None and module.__name__ != "__main__" else None
    paragraph = (text or vars(type(policy)).get("__doc__") or policy.name).strip().split("\n\n")[0]
    return " ".join(paragraph.split())


def settings(policy: Policy, plan: Plan, statistics: Statistics) -> dict[str, Any]:
    """Its parameters as they stand, those that are not given left out."""
    found = {name: getattr(policy, name) for name in parameters(type(policy))}
    rated = getattr(policy, "rated", None)
    if rated is not None:  # what a waiting result counts as in waiting tuples, worked out from weights
        found["gamma"] = rated(plan, statistics)
    return {name: value for name, value in found.items() if value is not None}


class Reasons:
    """Finds out what a policy's priorities are made of by letting it work one out while watching what it reads.

    A policy that knows better says so itself, by a method `reasons(segment) -> dict` of names and figures.
    """

    def __init__(self, policy: Policy, segments: Sequence[Segment], charts: Sequence[PathChart] = ()) -> None:
        self._policy, self._places = policy, len(segments)
        self._pieces: dict[tuple[str, ...], list[tuple[PathChart, int]]] = {}
        for chart in charts:
            for piece, chain in enumerate(chart.chains):
                self._pieces.setdefault(tuple(chain), []).append((chart, piece))

    def of(self, segment: Segment) -> tuple[Inputs, str]:
        """The inputs to the priority of a segment whose backlog counts, if it does, and the same in words."""
        own = getattr(self._policy, "reasons", None)
        if own is not None:
            said: Mapping[str, float | str] = own(segment)
            return dict(said), ", ".join(f"{name} {_said(value)}" for name, value in said.items())
        watched = Watched(segment)
        self._policy.priority(watched)
        read = watched.read()
        if read & TUPLES and knows_the_future(self._policy):
            return self._tuples(segment)
        inputs = {name: getattr(segment, key) for key, (name, _) in READ.items() if key in read}
        words = [text.format(getattr(segment, key)) for key, (_, text) in READ.items() if key in read]
        if "slope" in read:
            inputs |= {READ[key][0]: getattr(segment, key) for key in ("selectivity", "mean_cost")}
            inputs["slope"] = segment.slope
            words.append(self._slope(segment))
        if "index" in read:
            inputs["place"] = segment.index + 1
            words.append(f"place {segment.index + 1} of {self._places} in the ring")
        return inputs, ", ".join(words) or "all alike: the oldest tuple goes first"

    def _slope(self, segment: Segment) -> str:
        """Where a slope comes from: a piece of an envelope, or the figures of the segment itself."""
        for chart, piece in self._pieces.get(tuple(segment.names), []):
            if math.isclose(chart.slopes[piece], segment.slope, rel_tol=1e-9):
                start, stop = list(pairwise(chart.envelope))[piece]
                (since, high), (until, low) = chart.points[start], chart.points[stop]
                fall = f"{high:.6g} − {low:.6g} bytes in {until - since:.6g} of time"
                end = "ends" if piece == len(chart.slopes) - 1 else "turns"
                return f"{fall}; the envelope {end} at {until:.6g}, behind {segment.names[-1]}"
        for gain, said in ((segment.freed, "{:.6g} bytes freed"), (segment.selectivity, "{:.6g} put out")):
            if segment.mean_cost and math.isclose(gain / segment.mean_cost, segment.slope, rel_tol=1e-9):
                return f"{said.format(gain)} in {segment.mean_cost:.6g} of time"
        return "the steepest way down the chart of all that is behind it"

    def _tuples(self, segment: Segment) -> tuple[Inputs, str]:
        first = head(segment)
        inputs: Inputs = {"pending": segment.pending, "cost": first.cost, "results": first.outputs}
        inputs["freed"] = first.freed
        text = f"it sees what becomes of each of {segment.pending:.6g} queued: the first takes {first.cost:.6g}"
        return inputs, f"{text}, gives {first.outputs} results, frees {first.freed:.6g} bytes"


class Watched(Segment):
    """A likeness of a segment that remembers what was read of it."""

    __slots__ = ("_read",)

    def __init__(self, segment: Segment) -> None:
        for name in Segment.__slots__:
            setattr(self, name, getattr(segment, name))
        self._read: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in Segment.__slots__:
            object.__getattribute__(self, "_read").add(name)
        return object.__getattribute__(self, name)

    def read(self) -> set[str]:
        return set(self._read)


def oldest(segment: Segment) -> int | None:
    """The sequence number of the tuple that a turn would begin with."""
    queue = segment.start()
    first = queue.oldest if queue.sole is not None else queue.headed
    return None if first == NOTHING else int(first)


def finite(value: float | None) -> float | None:
    """As JSON has it: what is not a number, or infinite, does not exist; and there is but one zero."""
    return value + 0 if value is not None and math.isfinite(value) else None


def _said(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
