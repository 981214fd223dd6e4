"""The console's graph of a plan: streams left, queries right, operators coloured by their queue length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from actors.console.theme import FONT, Theme, heat
from actors.control.status_tables import format_count
from dsms.live.monitor.status import DomainStatus, OperatorStatus

NODE_WIDTH_PX = 70
NODE_STEP_PX = (NODE_WIDTH_PX + 12, 40)  # least distance of columns and of rows
MARGIN_PX = (42, 24)  # from the centre of the outermost node to the edge
MIN_HEIGHT_PX = 250  # even of a small plan
HOT_QUEUE_ROWS = 1000  # a queue this long has the hottest colour; or the longest, if longer
Place = tuple[float, float]  # column, row
STREAM, STATION, QUERY = "stream", "station", "query"
Key = tuple[str, str]  # kind and name of a node


def graph(domain: DomainStatus, theme: Theme) -> dict[str, Any]:
    """All streams, operators and queries of a domain as an ECharts option."""
    operators = {one.name: one for one in domain.stations}
    places = layout(domain)
    columns = max((x for x, _ in places.values()), default=0)
    rows = [y for _, y in places.values()] or [0.0]
    longest = max((one.queue for one in operators.values()), default=0)
    nodes = [
        _node(key, place, operators.get(key[1]) if key[0] == STATION else None, max(longest, HOT_QUEUE_ROWS), theme)
        for key, place in places.items()
    ]
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"fontFamily": FONT},
        "tooltip": {"confine": True},
        "grid": {"left": MARGIN_PX[0], "right": MARGIN_PX[0], "top": MARGIN_PX[1], "bottom": MARGIN_PX[1]},
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


def extent(domain: DomainStatus) -> tuple[int, int]:
    """The least width and height in pixels at which no node covers another."""
    places = layout(domain).values()
    columns, rows = [x for x, _ in places] or [0.0], [y for _, y in places] or [0.0]
    high = round((max(rows) - min(rows)) * NODE_STEP_PX[1]) + 2 * MARGIN_PX[1]
    return round(max(columns) * NODE_STEP_PX[0]) + 2 * MARGIN_PX[0], max(MIN_HEIGHT_PX, high)


def edges(domain: DomainStatus) -> list[tuple[Key, Key]]:
    """From each input to its operator, and from each last operator to its query."""
    streams, found = {one.name for one in domain.streams}, list[tuple[Key, Key]]()
    for one in domain.stations:
        here = (STATION, one.name)
        for read in one.inputs:
            found.append(((STREAM if read.name in streams else STATION, read.name), here))
        if one.sink:
            found.append((here, (QUERY, one.query)))
    return found


def layout(domain: DomainStatus) -> dict[Key, Place]:
    """Column and row of each node: the column is its longest path from a stream, the row is near its readers."""
    before, after = dict[Key, list[Key]](), dict[Key, list[Key]]()
    for a, b in edges(domain):
        before.setdefault(b, []).append(a)
        after.setdefault(a, []).append(b)
    stations = [(STATION, one.name) for one in domain.stations]  # in topological order
    queries = [(QUERY, one.name) for one in domain.queries]
    column: dict[Key, int] = {(STREAM, one.name): 0 for one in domain.streams}
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
    """Move the nodes of a column apart, around their mean row."""
    inside = sorted(keys, key=lambda key: row[key])
    before = [row[key] for key in inside]
    for above, below in pairwise(inside):
        row[below] = max(row[below], row[above] + 1.0)
    shift = _mean(before) - _mean([row[key] for key in inside])
    for key in inside if shift else ():
        row[key] += shift


def _between(rows: Sequence[float]) -> dict[str, float]:
    """The limits of an axis with all rows; a single row is in its middle."""
    low, high = min(rows), max(rows)
    return {"min": low, "max": high} if high > low else {"min": low - 1, "max": high + 1}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _node(key: Key, place: Place, operator: OperatorStatus | None, longest: float, theme: Theme) -> dict[str, Any]:
    kind, name = key
    text, colour = (
        {"color": theme.ink, "fontSize": 11, "width": NODE_WIDTH_PX - 6, "overflow": "truncate"},
        heat(0.0, theme),
    )
    if operator is not None:
        share = math.log1p(operator.queue) / math.log1p(longest)
        colour = heat(share, theme)
        text |= {"color": "#ffffff" if share > 0.65 else theme.ink}
    text_shown = name if operator is None else f"{name}\n{format_count(operator.queue)}"
    style = {"color": theme.back if operator is None else colour, "borderColor": theme.faint, "borderWidth": 1}
    return {
        "id": _id(key),
        "name": f"{kind} {name}" if operator is None else f"{name}: {format_count(operator.queue)} queued",
        "value": [round(place[0], 3), round(place[1], 3)],
        "symbolSize": [NODE_WIDTH_PX, 34] if operator is not None else [NODE_WIDTH_PX, 22],
        "itemStyle": style,
        "label": {"show": True, "formatter": text_shown.replace("{", "(").replace("}", ")"), "lineHeight": 14, **text},
        "tooltip": {"formatter": _describe(key, operator)},
    }


def _describe(key: Key, operator: OperatorStatus | None) -> str:
    """The tooltip of a node."""
    kind, name = key
    if operator is None:
        return _plain(f"{kind} {name}")
    cost, passes = f"{operator.cost * 1e6:.4g} µs a row", f"passes {operator.selectivity:.3g}"
    return _plain(f"{name}: {format_count(operator.queue)} queued, {cost}, {passes}, of {operator.query}")


def _plain(text: str) -> str:
    """Escape a name: a tooltip is HTML, and ECharts replaces braces."""
    for sign, instead in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("{", "("), ("}", ")")):
        text = text.replace(sign, instead)
    return text


def _id(key: Key) -> str:
    return f"{key[0]}:{key[1]}"
