"""What policies that cut a plan by charts have in common: the charts of a plan as it is known, and their slopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from dsms.charts import Piece, Tree, memory_partitions, progress_chart
from dsms.errors import PolicyError
from dsms.plan import Plan, Station, Stream
from dsms.policies.base import Policy
from dsms.segment import Segment
from dsms.statistics import Estimate, Statistics

MOST = 200_000  # operators on all ways through a plan: what a second or two are enough for


@dataclass
class ByChart(Policy):
    """A policy whose priorities are slopes, worked out when the plan is cut."""

    dynamic: ClassVar[bool] = False

    def segments(self, plan: Plan) -> list[Segment]:
        return self.cut(plan, Statistics(plan))

    def priority(self, segment: Segment) -> float:
        return segment.slope


def steep(stations: Iterable[Station], slope: float) -> Segment:
    """A segment with its slope, to twelve digits: equal ones must not differ by the order of their sums."""
    segment = Segment(tuple(stations))
    segment.slope = float(f"{slope:.12g}")
    return segment


def by_piece(pieces: Iterable[Piece[Station]]) -> list[Segment]:
    """The segments that a partition's pieces are, the branches of a fork in the order in which they earn most."""
    return [steep(piece.members, piece.slope) for piece in pieces]


def size_read(producer: Stream | Station, plan: Plan) -> float:
    """What one reader of a tuple may count as its own: of a shared one its part, as nobody knows who frees it."""
    return producer.size / (max(1, len(producer.consumers)) if plan.settings.buffers == "shared" else 1)


def path_chart(path: tuple[Station, ...], plan: Plan, statistics: Statistics) -> list[tuple[float, float]]:
    """The progress chart of a way through the plan."""
    known = [statistics.of(station) for station in path]
    producers: list[Stream | Station] = [_stream(path), *path[:-1]]
    sizes = [size_read(producer, plan) for producer in producers]
    return progress_chart([k.cost for k in known], [k.selectivity for k in known], sizes)


def path_segments(paths: Iterable[tuple[Station, ...]], plan: Plan, statistics: Statistics) -> list[Segment]:
    """The chains of each path; of the same stations on several paths the steepest."""
    found: dict[tuple[int, ...], Segment] = {}
    for path in paths:
        for segment in by_piece(_chains(path, plan, statistics)):
            key = tuple(station.index for station in segment.stations)
            if key not in found or segment.slope > found[key].slope:
                found[key] = segment
    return list(found.values())


def _chains(path: tuple[Station, ...], plan: Plan, statistics: Statistics) -> list[Piece[Station]]:
    """The segments of a path's envelope, with each operator's own time and gain however little comes so far."""
    behind: list[Tree[Station]] = []
    for station in reversed(path):
        known = statistics.of(station)
        behind = [Tree(station, known.cost, known.selectivity, size_read(station, plan), branches=behind)]
    return memory_partitions(behind, size_read(_stream(path), plan))


def _stream(path: tuple[Station, ...]) -> Stream:
    return next(producer for producer in path[0].inputs if isinstance(producer, Stream))


def trees(
    plan: Plan,
    statistics: Statistics,
    cost: Callable[[Estimate], float] = lambda known: known.cost,
    size: Callable[[Station], float] = lambda station: station.size,
) -> list[Tree[Station]]:
    """Every station with all that is behind it, by its place in the plan."""
    grown: list[Tree[Station]] = []
    for station in reversed(plan.stations):
        known = statistics.of(station)
        behind = [grown[len(plan.stations) - 1 - consumer.index] for consumer in station.consumers]
        grown.append(Tree(station, cost(known), known.selectivity, size(station), station.sink, behind))
    return grown[::-1]


def unfolded(plan: Plan) -> int:
    """How many operators there are if every way through the plan is counted by itself."""
    sizes = [1] * len(plan.stations)
    for station in reversed(plan.stations):
        sizes[station.index] += sum(sizes[consumer.index] for consumer in station.consumers)
    return sum(sizes[station.index] for stream in plan.streams for station in stream.consumers)


def require_few_ways(name: str, plan: Plan) -> None:
    """Refuse a plan that forks and merges so often that its ways cannot be listed."""
    if (size := unfolded(plan)) > MOST:
        raise PolicyError(
            f"policy {name!r} draws every way through the plan: these have {size:,} operators, at most {MOST:,}"
        )


def has_merge(stations: Iterable[Station]) -> bool:
    """Whether one of these has several inputs."""
    return any(len(station.inputs) > 1 for station in stations)
