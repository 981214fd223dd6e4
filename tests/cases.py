"""Rows, queries over them, and a run of the two: any policy, any batches, pushed in any order."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from grammar import Part
from hypothesis import strategies as st
from rows import STORED, TYPES, Rows
from strategies import YARDSTICKS, policy

import dsms
from dsms.batch import Batch
from dsms.clock import WallClock
from dsms.engine import Engine
from dsms.errors import PlanError

POLICIES = [name for name in dsms.policies() if name not in YARDSTICKS]  # those must know what becomes of each row
Found = dict[str, list[tuple[int, int, tuple[Any, ...]]]]  # by query, all rows: timestamp, sign, values


@dataclass
class Case:
    """Rows, queries over them, and how they are to be run."""

    family: str
    streams: dict[str, Rows]
    stored: Rows
    queries: dict[str, Part]
    policy: str
    order: str | int
    batches: list[tuple[str, int, int]]  # stream, from row, to row
    together: int  # batches that are pushed before anything is worked off


@st.composite
def pushes(draw: st.DrawFn, streams: dict[str, Rows]) -> list[tuple[str, int, int]]:
    """The rows of all streams as batches: by time, in turn, or one stream after the other."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    made = []
    for name, rows in streams.items():
        size = draw(st.sampled_from([1, 2, 3, 7, 1000, None]))
        start = 0
        while start < len(rows):
            stop = min(len(rows), start + (chance.randint(1, 12) if size is None else size))
            made.append((name, start, stop))
            start = stop
    order = draw(st.sampled_from(["time", "time", "mixed", "each"]))
    if order == "time":
        return sorted(made, key=lambda push: max(streams[push[0]].columns["ts"][: push[1] + 1]))
    if order == "mixed":
        turns = [name for name, _, _ in made]
        chance.shuffle(turns)
        rest = {name: iter([push for push in made if push[0] == name]) for name in streams}
        return [next(rest[name]) for name in turns]
    return made


def plan_of(case: Case) -> Any:
    """The plan; in the order that the case wants, unless that makes no sense for one of its joins."""
    streams = {
        name: {"schema": TYPES, "timestamp": "ts", "late": f"{rows.late}us"} for name, rows in case.streams.items()
    }
    queries = {name: {"cql": part.cql} for name, part in case.queries.items()}
    stored = {"dim": {"schema": STORED, "source": case.stored.batch()}}
    table = {"streams": streams, "queries": queries, "relations": stored}
    try:
        return dsms.plan_from({**table, "run": {"order": case.order}})
    except PlanError as error:
        if case.order == "preserving" or "can work ahead" not in str(error):
            raise
        case.order = "preserving"
        return dsms.plan_from(table)


def ours(case: Case) -> Found:
    """By query, all rows that come out: timestamp, sign, values."""
    found: Found = {name: [] for name in case.queries}

    def sink(query: str, batch: Batch) -> None:
        rows = [tuple(record.values()) for record in batch.records()]
        found[query] += zip(batch.each("ts").tolist(), batch.each("sign").tolist(), rows, strict=True)

    def aside(station: str, put: Any) -> None:
        raise AssertionError(f"{station}: {put}")

    engine = Engine(plan_of(case), policy(case.policy), clock=WallClock(), sink=sink, aside=aside)
    for place, (name, start, stop) in enumerate(case.batches):
        engine.push(name, case.streams[name].batch(start, stop))
        if place % case.together == 0:
            engine.run()
    engine.run()
    engine.end()
    engine.run()
    return found


def plain(value: Any) -> Any:
    """A value so that equal ones are equal: floats to nine digits, truth apart from numbers."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return str(value) if not isinstance(value, str) else f"'{value}'"
    return float(f"{value:.9g}") + 0.0 if isinstance(value, float) or abs(value) > 10**12 else value
