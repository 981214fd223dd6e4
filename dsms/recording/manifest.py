"""Describes a recorded run in `run.json`: its plan as a graph, its clock and its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dsms.clock import Clock, PacedClock, RealClock
from dsms.engine.engine import Engine
from dsms.plan.graph import Plan, Station, Stream
from dsms.plan.hosts import number_hosts

FORMAT_VERSION = 1
UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._+-]+")


def safe_name(text: str) -> str:
    """Make a folder name of a policy's text, without `=`, which tools that read folders take for a column."""
    return UNSAFE_CHARACTERS.sub("-", text).strip("-.") or "run"


def clock_name(clock: Clock) -> str:
    """The name of this clock in plan files."""
    if not isinstance(clock, RealClock):
        return "virtual"
    return "paced" if isinstance(clock, PacedClock) else "wall"


def describe_run(engine: Engine, before: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the run as plain data; streams, queries and stations of an earlier plan are kept."""
    plan, clock, places = engine.plan, engine.clock, engine.runner.places
    hosts = number_hosts(plan, places) if places or plan.settings.hop_cost else [None] * len(plan.stations)
    return {
        **before,
        "version": FORMAT_VERSION,
        "clock": clock_name(clock),
        "budget": clock.budget,
        "plan": plan.name,
        "slice": clock.slice if plan.settings.slice is None else plan.settings.slice,
        "settings": asdict(plan.settings),
        "qos": None if plan.qos is None else str(plan.qos),
        "adaptive": dict(plan.adaptive),
        "streams": _merge_entries(before, "streams", [_describe_stream(engine, stream) for stream in plan.streams]),
        "queries": _merge_entries(before, "queries", _describe_queries(plan, engine.control.weights)),
        "stations": _merge_entries(
            before, "stations", [_describe_station(*each) for each in zip(plan.stations, hosts, strict=True)]
        ),
    }


def _merge_entries(before: Mapping[str, Any], key: str, now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {one["name"] for one in now}
    return [*(one for one in before.get(key, ()) if one["name"] not in names), *now]


def _describe_stream(engine: Engine, stream: Stream) -> dict[str, Any]:
    return {"name": stream.name, "size": stream.size, "rate": engine.statistics.rate(stream)}


def _describe_queries(plan: Plan, weights: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"name": query.name, "weight": weights[query.name]} for query in plan.queries]


def _describe_station(station: Station, host: int | None) -> dict[str, Any]:
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
        "host": host,
    }
