"""The plan as a graph, streams left and queries right, coloured by what is queued: a function of a domain's status."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from actors.cli import grids
from actors.console.theme import FONT, Theme, heat

WIDE = 70  # pixels
STEP = (WIDE + 12, 40)  # from one column, and from one row, to the next, at least
EDGE = (42, 24)  # from the middle of the outermost to the edge
LEAST = 250  # as high, however few there are
MUCH = 1000  # rows: a queue this long, or the longest if that is longer, has the hottest colour
Found = Mapping[str, Any]
Place = tuple[float, float]  # column, row
STREAM, STATION, QUERY = "stream", "station", "query"
Key = tuple[str, str]  # the kind of a thing, and its name


def graph(domain: Found, theme: Theme) -> dict[str, Any]:
    """All streams, stations and queries of a domain."""
    stations = {one["name"]: one for one in domain["stations"]}
    places = layout(domain)
    columns = max((x for x, _ in places.values()), default=0)
    rows = [y for _, y in places.values()] or [0.0]
    longest = max((one["queue"] for one in stations.values()), default=0)
    nodes = [
        _node(key, place, stations.get(key[1]) if key[0] == STATION else None, max(longest, MUCH), theme)
        for key, place in places.items()
    ]
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"fontFamily": FONT},
        "tooltip": {"confine": True},
        "grid": {"left": EDGE[0], "right": EDGE[0], "top": EDGE[1], "bottom": EDGE[1]},
        "xAxis": {"show": False, "type": "value", "min": 0, "max": max(columns, 1)},
        "yAxis": {"show": False, "type": "value", "inverse": True, **_between(rows)},
        "series": [
            {
                "type": "graph",
                "coordinateSystem": "cartesian2d",
                "symbol": "rect",
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 7,
                "lineStyle": {"color": theme.faint, "width": 1.2, "opacity": 0.8},
                "data": nodes,
                "links": [{"source": _id(a), "target": _id(b)} for a, b in edges(domain)],
            }
        ],
    }


def extent(domain: Found) -> tuple[int, int]:
    """The least width and the height, in pixels, at which nothing covers another."""
    places = layout(domain).values()
    columns, rows = [x for x, _ in places] or [0.0], [y for _, y in places] or [0.0]
    high = round((max(rows) - min(rows)) * STEP[1]) + 2 * EDGE[1]
    return round(max(columns) * STEP[0]) + 2 * EDGE[0], max(LEAST, high)


def edges(domain: Found) -> list[tuple[Key, Key]]:
    """Who reads whom, and which query's results leave where."""
    streams, found = {one["name"] for one in domain["streams"]}, list[tuple[Key, Key]]()
    for one in domain["stations"]:
        here = (STATION, one["name"])
        for read in one.get("inputs", ()):
            found.append(((STREAM if read["name"] in streams else STATION, read["name"]), here))
        if one.get("sink"):
            found.append((here, (QUERY, one["query"])))
    return found


def layout(domain: Found) -> dict[Key, Place]:
    """Where each stands: as far to the right as its longest way from a stream, beside those that read it."""
    before, after = dict[Key, list[Key]](), dict[Key, list[Key]]()
    for a, b in edges(domain):
        before.setdefault(b, []).append(a)
        after.setdefault(a, []).append(b)
    stations = [(STATION, one["name"]) for one in domain["stations"]]  # each after those it reads
    queries = [(QUERY, one["name"]) for one in domain["queries"]]
    column: dict[Key, int] = {(STREAM, one["name"]): 0 for one in domain["streams"]}
    for station in stations:
        column[station] = 1 + max((column.get(key, 0) for key in before.get(station, ())), default=0)
    last = 1 + max(column.values(), default=0)
    column.update(dict.fromkeys(queries, last))
    row = {query: float(place) for place, query in enumerate(queries)}
    for key in sorted((key for key in column if key not in row), key=lambda key: -column[key]):
        row[key] = _mean([row[reader] for reader in after.get(key, ()) if reader in row])
    for at in range(last):
        _spread([key for key in column if column[key] == at], row)
    return {key: (float(column[key]), row[key]) for key in column}


def _spread(keys: Iterable[Key], row: dict[Key, float]) -> None:
    """Let no two of a column stand in one place, and keep them together where they would be."""
    inside = sorted(keys, key=lambda key: row[key])
    wanted = [row[key] for key in inside]
    for above, below in pairwise(inside):
        row[below] = max(row[below], row[above] + 1.0)
    shift = _mean(wanted) - _mean([row[key] for key in inside])
    for key in inside if shift else ():
        row[key] += shift


def _between(rows: Sequence[float]) -> dict[str, float]:
    """An axis that has all rows on it; a single one is in its middle."""
    low, high = min(rows), max(rows)
    return {"min": low, "max": high} if high > low else {"min": low - 1, "max": high + 1}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _node(key: Key, place: Place, station: Found | None, much: float, theme: Theme) -> dict[str, Any]:
    kind, name = key
    text, colour = {"color": theme.ink, "fontSize": 11, "width": WIDE - 6, "overflow": "truncate"}, heat(0.0, theme)
    if station is not None:
        share = math.log1p(station["queue"]) / math.log1p(much)
        colour = heat(share, theme)
        text |= {"color": "#ffffff" if share > 0.65 else theme.ink}
    said = name if station is None else f"{name}\n{grids.count(station['queue'])}"
    style = {"color": theme.back if station is None else colour, "borderColor": theme.faint, "borderWidth": 1}
    return {
        "id": _id(key),
        "name": f"{kind} {name}" if station is None else f"{name}: {grids.count(station['queue'])} queued",
        "value": [round(place[0], 3), round(place[1], 3)],
        "symbolSize": [WIDE, 34] if station is not None else [WIDE, 22],
        "itemStyle": style,
        "label": {"show": True, "formatter": said.replace("{", "(").replace("}", ")"), "lineHeight": 14, **text},
        "tooltip": {"formatter": _about(key, station)},
    }


def _about(key: Key, station: Found | None) -> str:
    """What is shown of a node that is pointed at."""
    kind, name = key
    if station is None:
        return _plain(f"{kind} {name}")
    cost, passes = f"{station['cost'] * 1e6:.4g} µs a row", f"passes {station['selectivity']:.3g}"
    return _plain(f"{name}: {grids.count(station['queue'])} queued, {cost}, {passes}, of {station['query']}")


def _plain(text: str) -> str:
    """Names are shown as they are: a tooltip is HTML, and braces are the chart's own."""
    for sign, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("{", "("), ("}", ")")):
        text = text.replace(sign, instead)
    return text


def _id(key: Key) -> str:
    return f"{key[0]}:{key[1]}"
