"""Random test cases: rows, queries over them, and a run with any policy, any batches, pushed in any order."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from support.queries.grammar import QueryText
from support.queries.rows import STORED, TYPES, Rows
from support.strategies import YARDSTICKS, policy

import dsms
from dsms.clock import WallClock
from dsms.data.batch import Batch
from dsms.engine.engine import Engine
from dsms.errors import PlanError

POLICIES = [name for name in dsms.policies() if name not in YARDSTICKS]  # yardsticks must know the outcome of each row
Found = dict[str, list[tuple[int, int, tuple[Any, ...]]]]  # by query, all rows: timestamp, sign, values


@dataclass
class GeneratedCase:
    """Rows, queries over them, and how to run them."""

    family: str
    streams: dict[str, Rows]
    stored: Rows
    queries: dict[str, QueryText]
    policy: str
    order: str | int
    batches: list[tuple[str, int, int]]  # stream, from row, to row
    together: int  # batches pushed before each run


@st.composite
def pushes(draw: st.DrawFn, streams: dict[str, Rows]) -> list[tuple[str, int, int]]:
    """Draw batches of all streams: by time, shuffled, or one stream after the other."""
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


def make_plan(case: GeneratedCase) -> Any:
    """Build the plan with the order of the case, or with order kept if a join cannot run eagerly."""
    streams = {
        name: {"schema": TYPES, "timestamp": "ts", "late": f"{rows.late}us"} for name, rows in case.streams.items()
    }
    queries = {name: {"cql": part.cql} for name, part in case.queries.items()}
    stored = {"dim": {"schema": STORED, "source": case.stored.batch()}}
    table = {"streams": streams, "queries": queries, "relations": stored}
    try:
        return dsms.plan_from({**table, "run": {"order": case.order}})
    except PlanError as error:
        if case.order == "preserving" or not error.place.endswith("eager_rows"):
            raise
        case.order = "preserving"
        return dsms.plan_from(table)


def run_case(case: GeneratedCase) -> Found:
    """Run a case and return all output rows by query: timestamp, sign, values."""
    found: Found = {name: [] for name in case.queries}

    def sink(query: str, batch: Batch) -> None:
        rows = [tuple(record.values()) for record in batch.records()]
        found[query] += zip(batch.each("ts").tolist(), batch.each("sign").tolist(), rows, strict=True)

    def fail(station: str, letter: Any) -> None:
        raise AssertionError(f"{station}: {letter}")

    engine = Engine(make_plan(case), policy(case.policy), clock=WallClock(), sink=sink, aside=fail)
    for place, (name, start, stop) in enumerate(case.batches):
        engine.push(name, case.streams[name].batch(start, stop))
        if place % case.together == 0:
            engine.run()
    engine.run()
    engine.end()
    engine.run()
    return found


def normalise(value: Any) -> Any:
    """Normalise a value for comparison: floats to nine digits, booleans distinct from numbers."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return str(value) if not isinstance(value, str) else f"'{value}'"
    return float(f"{value:.9g}") + 0.0 if isinstance(value, float) or abs(value) > 10**12 else value
