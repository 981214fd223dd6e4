"""Queries come and go in the middle of a run, and move to another engine: nothing of any other is lost or changed."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import pytest
from cases import POLICIES, pushes
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import STORED, TYPES, stored_rows, stream_rows
from strategies import EXACT, policy

import dsms
from dsms.batch import Batch
from dsms.clock import WallClock
from dsms.engine import Engine
from dsms.errors import DsmsError, PlanError, PolicyError
from dsms.live.handover import released, succeeded
from dsms.live.roster import Roster
from dsms.observers import Observer

SPREAD = settings(EXACT, max_examples=40)
QUERIES = {
    "filter": "SELECT k, v FROM a WHERE v > 0",
    "same": "SELECT k, v FROM a WHERE v > 0",
    "near": "SELECT s FROM a WHERE v > 0",
    "window": "SELECT k, count(*) AS n FROM a [RANGE 20 MICROSECONDS] GROUP BY k",
    "rows": "SELECT max(s) AS top, count(DISTINCT k) AS n FROM b [ROWS 5]",
    "join": "SELECT x.s AS p, y.s AS q FROM a [RANGE 15 MICROSECONDS] AS x, b [ROWS 4] AS y WHERE x.s = y.s",
    "three": "SELECT x.k AS k, y.v AS v, z.s AS s FROM a [ROWS 4] AS x, b [ROWS 4] AS y, c [RANGE 9 MICROSECONDS] AS z"
    " WHERE x.k = y.k AND y.k = z.k",
    "stored": "SELECT x.k AS k, d.label AS label FROM c AS x, dim AS d WHERE x.k = d.k",
    "anti": "SELECT x.v AS v FROM a [ROWS 6] AS x ANTI JOIN c [ROWS 3] AS y ON x.k = y.k",
    "union": "SELECT k FROM a UNION ALL SELECT k FROM b WHERE v > 0",
    "once": "SELECT DISTINCT s FROM c [RANGE 10 MICROSECONDS]",
    "came": "SELECT ISTREAM(count(*) AS n, max(k) AS k) FROM a [RANGE 10 MICROSECONDS]",
    "reader": "SELECT sum(n) AS n FROM came [ROWS 3]",
}


class Running:
    """An engine whose plan changes, and what comes out of it."""

    def __init__(self, roster, text="fifo", clock=None):
        self.roster, self.found = roster, {}
        self.engine = Engine(roster.plan, policy(text), clock=clock or WallClock(), sink=self.sink, aside=self.aside)

    def sink(self, query, batch):
        rows = zip(batch.each("ts").tolist(), batch.each("sign").tolist(), map(str, batch.records()), strict=True)
        self.found.setdefault(query, []).extend(rows)

    def aside(self, station, put):
        raise AssertionError(f"{station}: {put}")

    def become(self, roster, inventory=None):
        held = self.engine.ledger.held, self.engine.ledger.held_bytes
        same = roster.plan.stations and {s.name for s in roster.plan.stations} == {
            s.name for s in self.roster.plan.stations
        }
        self.engine, self.roster = succeeded(self.engine, roster.plan, (), inventory), roster
        if same:
            assert held == (self.engine.ledger.held, self.engine.ledger.held_bytes)

    def steps(self, count):
        for _ in range(count):
            self.engine.step()

    def finished(self):
        self.engine.run()
        self.engine.end()
        self.engine.run()
        assert self.engine.ledger.held == self.engine.ledger.held_bytes == 0
        assert all(queue.count == 0 for queue in self.engine.ledger.queues)
        return {query: Counter(rows) for query, rows in self.found.items()}


def table(stored, late, names):
    streams = {name: {"schema": TYPES, "timestamp": "ts", "late": f"{late[name]}us"} for name in "abc"}
    return {
        "streams": streams,
        "relations": {"dim": {"schema": STORED, "source": stored.batch()}},
        "queries": {name: {"cql": QUERIES[name]} for name in names},
    }


def added(name):
    return {"queries": {name: {"cql": QUERIES[name]}}}


@st.composite
def loads(draw):
    """Streams, their batches, and a stored relation."""
    streams = {name: draw(stream_rows(0, 60, 30)) for name in "abc"}
    return streams, draw(pushes(streams)), draw(stored_rows())


def change(roster, chance, staying):
    """A query comes or goes, none of those that stay."""
    here = list(roster.table["queries"])
    read = {"came"} if "reader" in here else set()
    going = [name for name in here if name not in staying and name not in read]
    coming = [name for name in QUERIES if name not in here and (name != "reader" or "came" in here)]
    if going and (not coming or chance.random() < 0.5):
        return roster.removing(chance.choice(going))
    return roster.adding(added(chance.choice(coming))) if coming else roster


@SPREAD
@given(load=loads(), seed=st.integers(0, 2**32), text=st.sampled_from(POLICIES), count=st.integers(1, 4))
def test_queries_that_stay_tell_the_same_whoever_comes_and_goes(load, seed, text, count):
    streams, batches, stored = load
    chance, late = random.Random(seed), {name: rows.late for name, rows in streams.items()}
    staying = {*chance.sample(sorted(QUERIES), count)}
    staying |= {"came"} if "reader" in staying else set()
    others = chance.sample(sorted(QUERIES.keys() - staying - {"reader"}), 3)
    names = [name for name in QUERIES if name in {*staying, *others}]
    alone = Running(Roster(table(stored, late, [name for name in QUERIES if name in staying])))
    changing = Running(Roster(table(stored, late, names)), text)
    for name, start, stop in batches:
        for running in (alone, changing):
            running.engine.push(name, streams[name].batch(start, stop))
        changing.steps(chance.randrange(6))
        if chance.random() < 0.3:
            changing.become(change(changing.roster, chance, staying))
    wanted, found = alone.finished(), changing.finished()
    assert {name: found.get(name) for name in staying} == {name: wanted.get(name) for name in staying}


@SPREAD
@given(load=loads(), seed=st.integers(0, 2**32), texts=st.tuples(*[st.sampled_from(POLICIES)] * 2))
def test_queries_that_move_tell_the_same_as_if_they_had_stayed(load, seed, texts):
    streams, batches, stored = load
    chance, late = random.Random(seed), {name: rows.late for name, rows in streams.items()}
    moving = [name for name in QUERIES if name in {*chance.sample(sorted(QUERIES), 3)} | {"came"}]
    here = chance.sample(sorted(QUERIES.keys() - {*moving, "reader"}), 2)
    alone = Running(Roster(table(stored, late, [name for name in QUERIES if name in {*moving, *here}])))
    one = Running(Roster(table(stored, late, moving)), texts[0])
    other = Running(Roster(table(stored, late, here)), texts[1])
    when = chance.randrange(len(batches) + 1)
    for place, (name, start, stop) in enumerate(batches):
        if place == when:
            move(one, other, chance.sample(moving, 1))
        for running in (alone, one, other):
            running.engine.push(name, streams[name].batch(start, stop))
        one.steps(chance.randrange(6))
        other.steps(chance.randrange(6))
    wanted, first, then = alone.finished(), one.finished(), other.finished()
    found = {name: first.get(name, Counter()) + then.get(name, Counter()) for name in {*moving, *here}}
    assert found == {name: wanted.get(name, Counter()) for name in {*moving, *here}}


def move(one, other, queries):
    """Let queries go from one engine to the other, as between two processes."""
    stay, moved = one.roster.leaving(queries)
    sent = pickle.dumps((moved, released(one.engine, list(moved.table["queries"]))))
    one.become(stay)
    moved, inventory = pickle.loads(sent)
    other.become(other.roster.adopting(moved), inventory)
