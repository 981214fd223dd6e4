"""The queries of the experiments: operator paths by their progress charts, the window join, and several at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from dsms.papers.chain.data import arrivals
from dsms.papers.experiment import Point

LOAD = 0.9  # of the CPU, all streams together

# Operator points: the time and the size of what is left of a tuple. The paper's are lost; these are chosen.
CHARTS: dict[str, tuple[tuple[float, float], ...]] = {
    "two": ((0, 1), (1, 0.2), (6, 0)),
    "four": ((0, 1), (3, 0.95), (6, 0.9), (7, 0.1), (16, 0)),
    "four, short end": ((0, 1), (3, 0.95), (6, 0.9), (7, 0.1), (10, 0)),
    "relation": ((0, 1), (1, 0.9), (3, 1.3), (4, 0.1), (8, 0)),
    "falling": ((0, 1), (1, 0.5), (3, 0.25), (7, 0.1), (15, 0)),
}

# The window join: cost and selectivity of R's selection, the join, and the two selections behind it; chosen, too.
BEFORE, JOIN, AFTER, LAST = (1.0, 0.9), (2.0, 1.0), (1.0, 0.1), (50.0, 0.9)


class Source(NamedTuple):
    """A stream, and about how long one of its tuples takes on the way to a sink."""

    name: str
    work: float


SOURCES: dict[str, tuple[Source, ...]] = {
    **{chart: (Source("s", points[-1][0]),) for chart, points in CHARTS.items()},
    "join": (Source("R", 8.0), Source("S", 8.0)),
    "several": (Source("R", 8.0), Source("S", 8.0), Source("T", CHARTS["two"][-1][0]), Source("U", 16.0)),
    "two falling": (Source("T", CHARTS["two"][-1][0]), Source("U", CHARTS["falling"][-1][0])),
}


def path(points: Sequence[tuple[float, float]], prefix: str = "o") -> list[dict[str, Any]]:
    """The operators of a chart: an operator's cost is for a whole tuple, the chart's time for what is left of one."""
    steps = itertools.pairwise(points)
    return [
        {"name": f"{prefix}{place}", "cost": (till - since) / size, "selectivity": left / size if left else 1.0}
        for place, ((since, size), (till, left)) in enumerate(steps, 1)
    ]


def table(point: Point) -> dict[str, Any]:
    """The plan of a point, with arrivals up to its horizon."""
    query, sources = point["query"], SOURCES[point["query"]]
    streams = {
        source.name: {
            "arrivals": arrivals(point, place, len(sources), source.work, LOAD / len(sources), horizon(point))
        }
        for place, source in enumerate(sources)
    }
    run = {"seed": point["seed"], "bounds": point.get("bounds", False)}
    return {"streams": streams, "queries": _queries(query), "run": run}


def horizon(point: Point) -> float:
    """When arrivals end: in which time the CPU could handle so many of the first stream's tuples."""
    return float(point["tuples"] * SOURCES[point["query"]][0].work)


def _queries(query: str) -> dict[str, Any]:
    if query in CHARTS:
        return {"q": {"from": "s", "operators": path(CHARTS[query])}}
    if query == "two falling":
        return {
            "t": {"from": "T", "operators": path(CHARTS["two"], "t")},
            "u": {"from": "U", "operators": path(CHARTS["falling"], "u")},
        }
    join = {"operators": _joined()}
    if query == "join":
        return {"join": join}
    return {
        "join": join,
        "two": {"from": "T", "operators": path(CHARTS["two"], "t")},
        "four": {"from": "U", "operators": path(CHARTS["four"], "u")},
    }


def _joined() -> list[dict[str, Any]]:
    places = {"before": (BEFORE, ["R"]), "join": (JOIN, ["before", "S"]), "after": (AFTER, ["join"]),
              "last": (LAST, ["after"])}  # fmt: skip
    return [
        {"name": name, "inputs": inputs, "cost": cost, "selectivity": selectivity}
        for name, ((cost, selectivity), inputs) in places.items()
    ]
