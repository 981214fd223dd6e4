"""What a recorded run is about: its plan as a graph with figures, its clock and settings; `run.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dsms.clock import Clock, PacedClock, RealClock
from dsms.plan import Plan, Station, Stream

if TYPE_CHECKING:
    from dsms.engine import Engine

VERSION = 1
UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def safe_name(text: str) -> str:
    """A policy's text as the name of a folder: no `=`, which tools that read folders take for a column."""
    return UNSAFE.sub("-", text).strip("-.") or "run"


def clock_name(clock: Clock) -> str:
    """What setups call this clock."""
    if not isinstance(clock, RealClock):
        return "virtual"
    return "paced" if isinstance(clock, PacedClock) else "wall"


def about(engine: Engine, before: Mapping[str, Any]) -> dict[str, Any]:
    """The run as plain data; streams, queries and stations that were there before stay."""
    plan, clock = engine.plan, engine.clock
    return {
        **before,
        "version": VERSION,
        "clock": clock_name(clock),
        "budget": clock.budget,
        "plan": plan.name,
        "slice": clock.slice if plan.settings.slice is None else plan.settings.slice,
        "settings": asdict(plan.settings),
        "qos": None if plan.qos is None else str(plan.qos),
        "adaptive": dict(plan.adaptive),
        "streams": _joined(before, "streams", [_stream(engine, stream) for stream in plan.streams]),
        "queries": _joined(before, "queries", _queries(plan, engine.weights)),
        "stations": _joined(before, "stations", [_station(station) for station in plan.stations]),
    }


def _joined(before: Mapping[str, Any], key: str, now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    there = {one["name"] for one in now}
    return [*(one for one in before.get(key, ()) if one["name"] not in there), *now]


def _stream(engine: Engine, stream: Stream) -> dict[str, Any]:
    return {"name": stream.name, "size": stream.size, "rate": engine.statistics.rate(stream)}


def _queries(plan: Plan, weights: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"name": query.name, "weight": weights[query.name]} for query in plan.queries]


def _station(station: Station) -> dict[str, Any]:
    operator = station.operator
    return {
        "name": station.name,
        "query": station.query.name,
        "inputs": [producer.name for producer in station.inputs],
        "sink": station.sink,
        "size": station.size,
        "cost": operator.cost,
        "selectivity": operator.selectivity,
        "startup": operator.startup,
        "take": operator.take,
    }
