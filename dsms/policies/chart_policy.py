"""ChartPolicy: base of the policies that cut a plan by progress charts and rank segments by slope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from dsms.charts import ChartPiece, OperatorTree, memory_partitions, progress_chart
from dsms.engine.policy import StatefulPolicy
from dsms.engine.statistics import Statistics
from dsms.errors import PolicyError
from dsms.plan.graph import Plan, Station, Stream
from dsms.plan.operator_trees import count_path_operators
from dsms.plan.segment import Segment

MAX_PATH_OPERATORS = 200_000  # on all paths of a plan together; drawing them takes a second or two


@dataclass
class ChartPolicy(StatefulPolicy):
    """A policy whose priorities are slopes, computed when the plan is cut."""

    dynamic: ClassVar[bool] = False

    def segments(self, plan: Plan) -> list[Segment]:
        return self.cut(plan, Statistics(plan))

    def priority(self, segment: Segment) -> float:
        return segment.slope


def segment_with_slope(stations: Iterable[Station], slope: float) -> Segment:
    """Return a segment with its slope, rounded to twelve digits so that equal slopes compare equal."""
    segment = Segment(tuple(stations))
    segment.slope = float(f"{slope:.12g}")
    return segment


def segments_of_pieces(pieces: Iterable[ChartPiece[Station]]) -> list[Segment]:
    """Return the segments of a partition's pieces, the steepest branch of a fork first."""
    return [segment_with_slope(piece.members, piece.slope) for piece in pieces]


def size_per_reader(producer: Stream | Station, plan: Plan) -> float:
    """Return the bytes of a tuple that one reader counts: an equal part if shared."""
    return producer.size / (max(1, len(producer.consumers)) if plan.settings.buffers == "shared" else 1)


def path_chart(path: tuple[Station, ...], plan: Plan, statistics: Statistics) -> list[tuple[float, float]]:
    """Return the progress chart of a path."""
    known = [statistics.of(station) for station in path]
    producers: list[Stream | Station] = [_stream_of(path), *path[:-1]]
    sizes = [size_per_reader(producer, plan) for producer in producers]
    return progress_chart([k.cost for k in known], [k.selectivity for k in known], sizes)


def path_segments(paths: Iterable[tuple[Station, ...]], plan: Plan, statistics: Statistics) -> list[Segment]:
    """Return the chains of each path; a chain on several paths gets its steepest slope."""
    steepest: dict[tuple[int, ...], Segment] = {}
    for path in paths:
        for segment in segments_of_pieces(_chains(path, plan, statistics)):
            key = tuple(station.index for station in segment.stations)
            if key not in steepest or segment.slope > steepest[key].slope:
                steepest[key] = segment
    return list(steepest.values())


def _chains(path: tuple[Station, ...], plan: Plan, statistics: Statistics) -> list[ChartPiece[Station]]:
    """Return the pieces of a path's lower envelope, with each operator's own time and gain."""
    behind: list[OperatorTree[Station]] = []
    for station in reversed(path):
        known = statistics.of(station)
        behind = [OperatorTree(station, known.cost, known.selectivity, size_per_reader(station, plan), branches=behind)]
    return memory_partitions(behind, size_per_reader(_stream_of(path), plan))


def _stream_of(path: tuple[Station, ...]) -> Stream:
    return next(producer for producer in path[0].inputs if isinstance(producer, Stream))


def require_few_paths(name: str, plan: Plan) -> None:
    """Raise PolicyError for a plan with too many paths to draw."""
    if (size := count_path_operators(plan)) > MAX_PATH_OPERATORS:
        raise PolicyError(
            f"policy {name!r} draws every path of the plan: they have {size:,} operators, "
            f"and the most is {MAX_PATH_OPERATORS:,}"
        )


def has_merge(stations: Iterable[Station]) -> bool:
    """Return whether a station has several inputs."""
    return any(len(station.inputs) > 1 for station in stations)
