"""The progress charts of a query as it is measured: what is left of a tuple over the time spent on it, the envelope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.console.theme import FONT, Theme
from dsms.advice.reasons import PathChart
from dsms.charts import progress_chart

MOST = 200  # ways through a plan that are offered
Found = Mapping[str, Any]


def charts(domain: Found) -> dict[str, PathChart]:
    """By title, those of all ways from a stream to a query's results."""
    stations = {one["name"]: one for one in domain["stations"]}
    found: dict[str, PathChart] = {}
    for one in domain["stations"]:
        for path in _ways(one["name"], stations, MOST - len(found)) if one.get("sink") else ():
            known = [stations[name] for name in path]
            points = progress_chart(
                [each["cost"] for each in known], [each["selectivity"] for each in known], _sizes(path, stations)
            )
            chart = PathChart.of(one["query"], path, points)
            found[chart.title] = chart
    return found


def progress(chart: PathChart | None, theme: Theme) -> dict[str, Any]:
    """The chart as it is drawn: steps, and the lower envelope that cuts them into chains."""
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


def _ways(name: str, stations: Mapping[str, Found], most: int) -> list[list[str]]:
    """All ways from a stream to this station, so many at most."""
    found: list[list[str]] = []
    open_ways = [[name]]
    while open_ways and len(found) < most:
        way = open_ways.pop()
        for read in stations[way[0]].get("inputs", ()):
            if read["name"] in stations:
                open_ways.append([read["name"], *way])
            elif way not in found:
                found.append(way)
    return found


def _sizes(path: Sequence[str], stations: Mapping[str, Found]) -> list[float]:
    """The bytes of a tuple before each station on a way, as far as they are its own."""
    sizes = []
    for place, name in enumerate(path):
        wanted = path[place - 1] if place else None
        inputs = stations[name]["inputs"]
        mine = [read for read in inputs if (read["name"] == wanted if wanted else read["name"] not in stations)]
        sizes.append(mine[0]["size"])
    return sizes
