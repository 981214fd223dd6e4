"""Explains a segment's priority: its inputs as numbers and in words, and the progress charts behind them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dsms.charts import Point, chains, deltas, lower_envelope, slopes
from dsms.engine.ledger import NO_HEAD
from dsms.engine.oracle import forecast_head
from dsms.engine.policy import Policy
from dsms.engine.statistics import Statistics
from dsms.plan.graph import Plan
from dsms.plan.operator_trees import count_path_operators
from dsms.plan.segment import Segment
from dsms.policies.chart_policy import path_chart
from dsms.policies.registry import parameters

Inputs = dict[str, float | str]
# Attributes of a segment that a priority may read: their names for users, and their words.
INPUT_NAMES = {
    "pending": ("pending", "{:.6g} queued"),
    "selectivity": ("selectivity", "each gives {:.6g}"),
    "freed": ("freed", "each frees {:.6g} bytes"),
    "mean_cost": ("cost", "takes {:.6g}"),
    "weight": ("weight", "weight {:.6g}"),
}
MAX_PATH_OPERATORS = 10_000  # on all paths of a plan
TUPLE_ATTRIBUTES = {"queues", "only", "heads"}  # a policy that reads these looks at the tuples themselves


@dataclass(frozen=True)
class PathChart:
    """The progress chart of one path of a plan, and the lower envelope that cuts it into chains."""

    query: str
    path: list[str]  # operator i leads from point i to point i + 1
    points: list[Point]  # time spent on one tuple, and the bytes left of it
    envelope: list[int]  # the points on it
    chains: list[list[str]]  # by piece of the envelope: its operators
    slopes: list[float]  # by piece: how fast the envelope falls
    deltas: list[float]  # by piece: how far the chart gets above the envelope

    @property
    def title(self) -> str:
        return f"{self.query}: {' → '.join(self.path)}"

    @classmethod
    def of(cls, query: str, path: list[str], points: list[Point]) -> PathChart:
        """Make the chart of these points."""
        envelope = lower_envelope(points)
        pieces = [[path[i] for i in chain] for chain in chains(points)]
        return cls(query, path, points, envelope, pieces, slopes(points, envelope), deltas(points, envelope))


def path_charts(plan: Plan, statistics: Statistics) -> list[PathChart]:
    """The charts of all paths of a plan, by current statistics; none if there are too many paths."""
    return [
        PathChart.of(path[-1].query.name, [station.name for station in path], path_chart(path, plan, statistics))
        for path in (plan.paths() if count_path_operators(plan) <= MAX_PATH_OPERATORS else ())
    ]


def is_oracle(policy: Policy | type[Policy]) -> bool:
    """Whether a policy knows the outcomes of queued tuples: a bound, which no real system can run."""
    return policy.traits.clairvoyant


def policy_rule(policy: Policy) -> str:
    """The first paragraph of a policy's docstring, in one line."""
    module = inspect.getmodule(type(policy))
    text = inspect.getdoc(module) if module is not None and module.__name__ != "__main__" else None
    paragraph = (text or vars(type(policy)).get("__doc__") or policy.name).strip().split("\n\n")[0]
    return " ".join(paragraph.split())


def policy_parameters(policy: Policy, plan: Plan, statistics: Statistics) -> dict[str, Any]:
    """The current parameters of a policy, without parameters that are None."""
    found = {name: getattr(policy, name) for name in parameters(type(policy))}
    compute_gamma = getattr(policy, "compute_gamma", None)
    if compute_gamma is not None:  # computed from the weights
        found["gamma"] = compute_gamma(plan, statistics)
    return {name: value for name, value in found.items() if value is not None}


class PriorityExplainer:
    """Finds the inputs of a policy's priorities: calls it with a segment that notes which attributes are read.

    A policy may name its inputs itself, by a method `reasons(segment) -> dict` of names and figures.
    """

    def __init__(self, policy: Policy, segments: Sequence[Segment], charts: Sequence[PathChart] = ()) -> None:
        self._policy, self._places = policy, len(segments)
        self._pieces: dict[tuple[str, ...], list[tuple[PathChart, int]]] = {}
        for chart in charts:
            for piece, chain in enumerate(chart.chains):
                self._pieces.setdefault(tuple(chain), []).append((chart, piece))

    def of(self, segment: Segment) -> tuple[Inputs, str]:
        """The inputs of a segment's priority, as numbers and in words."""
        own = getattr(self._policy, "reasons", None)
        if own is not None:
            said: Mapping[str, float | str] = own(segment)
            return dict(said), ", ".join(f"{name} {_format_value(value)}" for name, value in said.items())
        watched = TracedSegment(segment)
        self._policy.priority(watched)
        read = watched.read()
        if read & TUPLE_ATTRIBUTES and is_oracle(self._policy):
            return self._tuples(segment)
        inputs = {name: getattr(segment, key) for key, (name, _) in INPUT_NAMES.items() if key in read}
        words = [text.format(getattr(segment, key)) for key, (_, text) in INPUT_NAMES.items() if key in read]
        if "slope" in read:
            inputs |= {INPUT_NAMES[key][0]: getattr(segment, key) for key in ("selectivity", "mean_cost")}
            inputs["slope"] = segment.slope
            words.append(self._slope(segment))
        if "index" in read:
            inputs["place"] = segment.index + 1
            words.append(f"place {segment.index + 1} of {self._places} in the ring")
        if not read:
            return inputs, "all alike: the oldest tuple goes first"
        return inputs, ", ".join(words) or "computed by the policy"

    def _slope(self, segment: Segment) -> str:
        """Explain a slope by a piece of an envelope, or by the segment's own figures."""
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
        first = forecast_head(segment)
        inputs: Inputs = {"pending": segment.pending, "cost": first.cost, "results": first.outputs}
        inputs["freed"] = first.freed
        text = f"it sees what becomes of each of {segment.pending:.6g} queued: the first takes {first.cost:.6g}"
        return inputs, f"{text}, gives {first.outputs} results, frees {first.freed:.6g} bytes"


class TracedSegment(Segment):
    """A copy of a segment that notes which attributes are read."""

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


def oldest_sequence(segment: Segment) -> int | None:
    """The sequence number of the tuple that a turn would start with."""
    queue = segment.start()
    first = queue.oldest if queue.only_segment is not None else queue.entered_head
    return None if first == NO_HEAD else int(first)


def finite_or_none(value: float | None) -> float | None:
    """A value for JSON: None for NaN and infinities, 0 for -0."""
    return value + 0 if value is not None and math.isfinite(value) else None


def _format_value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
