"""Progress charts of the running queries: how much is left of a tuple over the time spent on it, and the envelope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.console.theme import FONT, Theme
from dsms.advice.reasons import PathChart
from dsms.charts import progress_chart
from dsms.live.monitor.status import DomainStatus, OperatorStatus

PATHS_LIMIT = 200  # paths that are offered


def charts(domain: DomainStatus) -> dict[str, PathChart]:
    """The charts of all paths from a stream to a query's results, by title."""
    operators = {one.name: one for one in domain.stations}
    found: dict[str, PathChart] = {}
    for one in domain.stations:
        for path in _find_paths(one.name, operators, PATHS_LIMIT - len(found)) if one.sink else ():
            known = [operators[name] for name in path]
            points = progress_chart(
                [each.cost for each in known], [each.selectivity for each in known], _sizes(path, operators)
            )
            chart = PathChart.of(one.query, path, points)
            found[chart.title] = chart
    return found


def progress(chart: PathChart | None, theme: Theme) -> dict[str, Any]:
    """The chart as an ECharts option: steps, and the lower envelope that splits them into chains."""
    points = [(time * 1e6, size) for time, size in chart.points] if chart else []
    names = chart.path if chart else []
    hull = [points[place] for place in chart.envelope] if chart else []
    axis = {
        "type": "value",
        "min": 0,
        "axisLabel": {"color": theme.faint},
        "splitLine": {"lineStyle": {"color": theme.grid}},
        "nameTextStyle": {"color": theme.faint, "fontSize": 11},
        "nameLocation": "middle",
    }
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"fontFamily": FONT},
        "tooltip": {"trigger": "item", "confine": True},
        "legend": {"top": 0, "right": 8, "itemWidth": 18, "itemHeight": 8, "icon": "roundRect",
                   "textStyle": {"color": theme.ink, "fontSize": 11}},
        "grid": {"left": 56, "right": 24, "top": 34, "bottom": 42},
        "xAxis": {**axis, "name": "time spent on a row of the stream, µs", "nameGap": 26},
        "yAxis": {**axis, "name": "size left of it", "nameGap": 38},
        "series": [
            {
                "name": "what is left",
                "type": "line",
                "step": "end",
                "symbolSize": 6,
                "itemStyle": {"color": theme.line},
                "data": [_point(point, name, theme) for point, name in zip(points, [*names, ""], strict=False)],
            },
            {
                "name": "lower envelope",
                "type": "line",
                "symbolSize": 8,
                "itemStyle": {"color": theme.second},
                "lineStyle": {"width": 2.5},
                "data": [[float(f"{time:.6g}"), float(f"{size:.6g}")] for time, size in hull],
            },
        ],
    }  # fmt: skip


def _point(point: tuple[float, float], name: str, theme: Theme) -> dict[str, Any]:
    label = {
        "show": bool(name),
        "formatter": name,
        "position": "top",
        "align": "left",
        "color": theme.ink,
        "fontSize": 11,
    }
    return {"value": [float(f"{point[0]:.6g}"), float(f"{point[1]:.6g}")], "name": name, "label": label}


def _find_paths(name: str, operators: Mapping[str, OperatorStatus], limit: int) -> list[list[str]]:
    """Up to `limit` paths from a stream to this operator."""
    found: list[list[str]] = []
    partial = [[name]]
    while partial and len(found) < limit:
        path = partial.pop()
        for read in operators[path[0]].inputs:
            if read.name in operators:
                partial.append([read.name, *path])
            elif path not in found:
                found.append(path)
    return found


def _sizes(path: Sequence[str], operators: Mapping[str, OperatorStatus]) -> list[float]:
    """The bytes of a tuple before each operator on a path that this reader frees."""
    sizes = []
    for place, name in enumerate(path):
        before = path[place - 1] if place else None
        inputs = operators[name].inputs
        own = [read for read in inputs if (read.name == before if before else read.name not in operators)]
        sizes.append(own[0].size)
    return sizes
