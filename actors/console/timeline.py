"""The console's chart over time: policy in charge, memory, latency and freshness, from samples and phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.console.history import Sample
from actors.console.theme import FONT, Theme, policy_colour
from dsms.live.monitor.status import PhaseStatus

SPAN_S = 120.0  # seconds shown
LEFT, RIGHT = 64, 16  # pixels beside the plots
PLOTS_PX = ((30, 26), (92, 140), (268, 116), (420, 92))  # of each plot: distance from the top, height
HEIGHT_PX = 560
MIN_LABEL_SHARE = 0.07  # of the span: a shorter phase has no label
Option = dict[str, Any]


def timeline(samples: Sequence[Sample], phases: Sequence[PhaseStatus], theme: Theme) -> Option:
    """The chart: a band of policies; memory with its lower bound, latency and freshness below."""
    now = samples[-1].at if samples else 0.0
    until = max(now, SPAN_S)
    since = until - SPAN_S
    shown = [sample for sample in samples if sample.at >= since]
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"fontFamily": FONT},
        "title": [_title(place, text, theme) for place, text in enumerate(TITLES)],
        "legend": [_legend(place, names, theme) for place, names in enumerate(LEGENDS, 1)],
        "tooltip": {"trigger": "axis", "confine": True, "order": "seriesAsc"},
        "axisPointer": {"link": [{"xAxisIndex": "all"}], "label": {"show": False}},
        "grid": [{"left": LEFT, "right": RIGHT, "top": top, "height": high} for top, high in PLOTS_PX],
        "xAxis": [_time(place, since, until, theme) for place in range(len(PLOTS_PX))],
        "yAxis": [_scale(place, theme) for place in range(len(PLOTS_PX))],
        "series": [_band(phases, since, now), *_lines(shown, theme)],
    }


TITLES = ("Policy in charge", "Memory: rows held", "Latency of results, ms", "Freshness, % of recent time")
LEGENDS = (("held", "least possible"), ("p50", "p99"), ("mean", "least fresh"))


def bands(phases: Sequence[PhaseStatus], since: float, until: float) -> list[tuple[str, float, float]]:
    """The policy, start and end of each phase inside the shown time."""
    found = []
    for phase in phases:
        begin, end = max(phase.since, since), until if phase.until is None else min(phase.until, until)
        if end > begin:
            found.append((phase.policy or "–", begin, end))
    return found


def _band(phases: Sequence[PhaseStatus], since: float, until: float) -> Option:
    areas = []
    for policy, begin, end in bands(phases, since, until):
        named = end - begin > MIN_LABEL_SHARE * SPAN_S
        areas.append(
            [
                {
                    "name": policy.partition(":")[0],
                    "label": {"show": named},
                    "xAxis": round(begin, 2),
                    "itemStyle": {"color": policy_colour(policy), "opacity": 0.92},
                },
                {"xAxis": round(end, 2)},
            ]
        )
    label = {"show": True, "position": "inside", "color": "#ffffff", "fontWeight": "bold", "fontSize": 12}
    mark = {"silent": True, "label": label, "data": areas}
    return {"name": "policy", "type": "line", "xAxisIndex": 0, "yAxisIndex": 0, "data": [], "markArea": mark}


def _lines(shown: Sequence[Sample], theme: Theme) -> list[Option]:
    def line(name: str, place: int, colour: str, values: Sequence[float | None], **more: Any) -> Option:
        return {
            "name": name,
            "type": "line",
            "xAxisIndex": place,
            "yAxisIndex": place,
            "showSymbol": False,
            "itemStyle": {"color": colour},
            "lineStyle": {"width": 2, "color": colour, **more.pop("stroke", {})},
            "data": [[round(sample.at, 2), _rounded(value)] for sample, value in zip(shown, values, strict=True)],
            **more,
        }

    filled, dashed, thin = {"opacity": 0.14}, {"type": "dashed"}, {"width": 1.3}
    return [
        line("held", 1, theme.line, [s.held for s in shown], areaStyle=filled),
        line("least possible", 1, theme.bound, [s.bound for s in shown], stroke=dashed),
        line("p50", 2, theme.line, [_times(1000, s.p50) for s in shown]),
        line("p99", 2, theme.second, [_times(1000, s.p99) for s in shown]),
        line("mean", 3, theme.line, [_times(100, s.fresh) for s in shown]),
        line("least fresh", 3, theme.second, [_times(100, s.least_fresh) for s in shown], stroke=thin),
    ]


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _rounded(value: float | None) -> float | None:
    """Four digits: enough for a chart, and less to send."""
    return None if value is None else float(f"{value:.4g}")


def _title(place: int, text: str, theme: Theme) -> Option:
    style = {"fontSize": 12, "fontWeight": "bold", "color": theme.ink}
    return {"text": text, "left": 8, "top": PLOTS_PX[place][0] - 26, "textStyle": style}


def _legend(place: int, names: Sequence[str], theme: Theme) -> Option:
    style = {"color": theme.ink, "fontSize": 11}
    where = {"right": RIGHT, "top": PLOTS_PX[place][0] - 26}
    return {"data": list(names), **where, "itemWidth": 18, "itemHeight": 8, "icon": "roundRect", "textStyle": style}


def _time(place: int, since: float, until: float, theme: Theme) -> Option:
    last = place == len(PLOTS_PX) - 1
    return {
        "type": "value",
        "gridIndex": place,
        "min": round(since, 2),
        "max": round(until, 2),
        "axisLine": {"lineStyle": {"color": theme.faint}, "onZero": False},
        "axisTick": {"show": last},
        "axisLabel": {
            "show": last, "color": theme.faint, "formatter": "{value} s", "showMinLabel": False, "showMaxLabel": False
        },
        "splitLine": {"show": False},
        "name": "time of the deployment's clock" if last else "",
        "nameLocation": "middle",
        "nameGap": 22,
        "nameTextStyle": {"color": theme.faint, "fontSize": 11},
    }  # fmt: skip


def _scale(place: int, theme: Theme) -> Option:
    if place == 0:
        return {"type": "value", "gridIndex": 0, "show": False, "min": 0, "max": 1}
    limits = {"min": 0, "max": 100, "interval": 50} if place == len(PLOTS_PX) - 1 else {"min": 0, "splitNumber": 3}
    return {
        "type": "value",
        "gridIndex": place,
        **limits,
        "axisLabel": {"color": theme.faint},
        "splitLine": {"lineStyle": {"color": theme.grid}},
    }
