"""Queries come and go in the middle of a run, and move to another engine: nothing of any other is lost or changed."""

from __future__ import annotations

import gc
import os
import pickle
import random
import subprocess
import sys
import weakref
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.queries.generated_cases import POLICIES, pushes
from support.queries.rows import STORED, TYPES, stored_rows, stream_rows
from support.strategies import DETERMINISTIC, EXAMPLES, policy

import dsms
from actors.hosts.host import Host
from actors.hosts.host_pool import HostPool
from actors.hosts.runner import ActorRunner
from dsms.clock import VirtualClock, WallClock
from dsms.data.batch import Batch
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.runners import BatchRunner
from dsms.engine.statistics import MeasuredStatistics
from dsms.errors import DsmsError, PlanError, PolicyError
from dsms.live.migration import extract_state, migrate
from dsms.live.query_set import QuerySet
from dsms.policies.fifo import Fifo

SPREAD = settings(DETERMINISTIC, max_examples=EXAMPLES or 25)
RUNS = [
    {},
    {"buffers": "private"},
    {"bounds": False},
    {"statistics": "window", "window": 1e-3},
    {"statistics": "average", "in_service": False},
    {"max_wait": 1e-3},
]
HOSTS = [None, 1, 3]  # processes that hold the stations, played by plain objects; None: all is in one
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

    def __init__(self, query_set, text="fifo", clock=None, hosts=None, numbers=None):
        self.query_set, self.found = query_set, {}
        self.numbers = {} if numbers is None else numbers  # by query: of the last results that hosts have put out
        clock, runner = clock or WallClock(), None
        if hosts:
            host_pool = HostPool([Host() for _ in range(hosts)], result_hub=self)
            runner = partial(ActorRunner, host_pool=host_pool)
        sink = None if hosts else self.sink
        self.engine = Engine(query_set.plan, policy(text), clock=clock, runner=runner, sink=sink, aside=self.aside)

    def take(self, results):
        """As an outlet does."""
        for query, number, batch in results:
            assert number == self.numbers.get(query, 0) + 1
            self.numbers[query] = number
            self.sink(query, batch)

    def status(self):
        return {}

    def sink(self, query, batch):
        rows = zip(batch.each("ts").tolist(), batch.each("sign").tolist(), map(str, batch.records()), strict=True)
        self.found.setdefault(query, []).extend(rows)

    def aside(self, station, put):
        raise AssertionError(f"{station}: {put}")

    def become(self, query_set, transfer=None):
        held = self.engine.ledger.held, self.engine.ledger.held_bytes
        same = query_set.plan.stations and {s.name for s in query_set.plan.stations} == {
            s.name for s in self.query_set.plan.stations
        }
        self.engine, self.query_set = migrate(self.engine, query_set.plan, (), transfer), query_set
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


def table(stored, late, names, run):
    streams = {name: {"schema": TYPES, "timestamp": "ts", "late": f"{late[name]}us"} for name in "abc"}
    return {
        "streams": streams,
        "relations": {"dim": {"schema": STORED, "source": stored.batch()}},
        "queries": {name: {"cql": QUERIES[name]} for name in names},
        "run": run,
    }


def added(name):
    return {"queries": {name: {"cql": QUERIES[name]}}}


@st.composite
def loads(draw):
    """Streams, their batches, and a stored relation."""
    streams = {name: draw(stream_rows(0, 60, 30)) for name in "abc"}
    return streams, draw(pushes(streams)), draw(stored_rows())


def change(query_set, chance, staying):
    """A query is added or removed; no other changes."""
    here = list(query_set.table["queries"])
    read = {"came"} if "reader" in here else set()
    going = [name for name in here if name not in staying and name not in read]
    coming = [name for name in QUERIES if name not in here and (name != "reader" or "came" in here)]
    if going and (not coming or chance.random() < 0.5):
        return query_set.remove(chance.choice(going))
    return query_set.add(added(chance.choice(coming))) if coming else query_set


@SPREAD
@given(
    load=loads(),
    seed=st.integers(0, 2**32),
    text=st.sampled_from(POLICIES),
    run=st.sampled_from(RUNS),
    hosts=st.sampled_from(HOSTS),
)
def test_queries_that_stay_tell_the_same_whoever_comes_and_goes(load, seed, text, run, hosts):
    streams, batches, stored = load
    chance, late = random.Random(seed), {name: rows.late for name, rows in streams.items()}
    staying = {*chance.sample(sorted(QUERIES), chance.randrange(1, 5))}
    staying |= {"came"} if "reader" in staying else set()
    others = chance.sample(sorted(QUERIES.keys() - staying - {"reader"}), 3)
    names = [name for name in QUERIES if name in {*staying, *others}]
    alone = Running(QuerySet(table(stored, late, [name for name in QUERIES if name in staying], run)))
    clock = chance.choice([WallClock, VirtualClock])()
    changing = Running(QuerySet(table(stored, late, names, run)), text, clock, hosts)
    for name, start, stop in batches:
        for running in (alone, changing):
            running.engine.push(name, streams[name].batch(start, stop))
        changing.steps(chance.randrange(6))
        if chance.random() < 0.3:
            changing.become(change(changing.query_set, chance, staying))
            for gone in changing.numbers.keys() - changing.query_set.table["queries"].keys():
                del changing.numbers[gone]
    wanted, found = alone.finished(), changing.finished()
    assert {name: found.get(name) for name in staying} == {name: wanted.get(name) for name in staying}


@SPREAD
@given(
    load=loads(),
    seed=st.integers(0, 2**32),
    texts=st.tuples(*[st.sampled_from(POLICIES)] * 2),
    run=st.sampled_from(RUNS),
    hosts=st.sampled_from(HOSTS),
)
def test_queries_that_move_tell_the_same_as_if_they_had_stayed(load, seed, texts, run, hosts):
    streams, batches, stored = load
    chance, late = random.Random(seed), {name: rows.late for name, rows in streams.items()}
    moving = [name for name in QUERIES if name in {*chance.sample(sorted(QUERIES), 3)} | {"came"}]
    here = chance.sample(sorted(QUERIES.keys() - {*moving, "reader"}), 2)
    alone = Running(QuerySet(table(stored, late, [name for name in QUERIES if name in {*moving, *here}], run)))
    one = Running(QuerySet(table(stored, late, moving, run)), texts[0], hosts=hosts)
    other = Running(QuerySet(table(stored, late, here, run)), texts[1], hosts=hosts, numbers=one.numbers)
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
    stay, moved = one.query_set.split(queries)
    sent = pickle.dumps((moved, extract_state(one.engine, list(moved.table["queries"]))))
    one.become(stay)
    moved, transfer = pickle.loads(sent)
    other.become(other.query_set.merge(moved), transfer)


BY_ARRIVAL = {"schema": {"k": "int64"}}


def query_set(streams=None, run=None, **texts):
    streams = streams or dict.fromkeys("ab", BY_ARRIVAL)
    return QuerySet({"streams": streams, "queries": {n: {"cql": text} for n, text in texts.items()}, "run": run or {}})


def came(**texts):
    return {"queries": {name: {"cql": text} for name, text in texts.items()}}


def rows(**columns):
    return Batch.of(columns)


def values(running, query):
    """What has come out of a query, without timestamps."""
    running.engine.run()
    return [(sign, row) for _, sign, row in running.found.pop(query, [])]


def test_a_query_that_comes_sees_what_comes_from_then_on():
    running = Running(query_set(p="SELECT k FROM a"))
    running.engine.push("a", rows(k=[1]))
    running.become(running.query_set.add(came(q="SELECT k FROM a WHERE k > 0")))
    assert running.engine.ledger.held == 1
    running.engine.push("a", rows(k=[2]))
    assert running.engine.ledger.held == 2  # shared: one copy for both
    assert values(running, "q") == [(1, "{'k': 2}")]
    assert values(running, "p") == [(1, "{'k': 1}"), (1, "{'k': 2}")]
    assert running.engine.ledger.held == running.engine.ledger.held_bytes == 0


def test_goods_of_a_query_that_goes_are_dropped_and_no_longer_counted():
    running = Running(query_set(p="SELECT k FROM a", q="SELECT k + 1 AS k FROM a"), "mtiq")
    running.engine.push("a", rows(k=[1, 2]))
    running.engine.step()
    assert (running.engine.ledger.held, running.engine.ledger.held_bytes) == (2, 16.0)
    gone = next(name for name in "pq" if name not in running.found)
    running.become(running.query_set.remove(gone))
    assert (running.engine.ledger.held, running.engine.ledger.held_bytes) == (0, 0.0)


def test_windows_close_by_the_clock_and_streams_by_arrival_meet_after_others_have_come_and_gone():
    clock = VirtualClock()
    running = Running(query_set(p="SELECT k FROM a [RANGE 2 SECONDS]", q="SELECT k FROM b"), clock=clock)
    running.engine.push("a", rows(k=[7]))
    assert values(running, "p") == [(1, "{'k': 7}")]
    joined = "SELECT x.k AS k FROM a [RANGE 9 SECONDS] AS x, b [RANGE 9 SECONDS] AS y WHERE x.k = y.k"
    running.become(running.query_set.add(came(r=joined)).remove("q"))
    clock.wait_until(2.1)
    assert values(running, "p") == [(-1, "{'k': 7}")]
    running.engine.push("a", rows(k=[8]))
    running.engine.push("b", rows(k=[8]))
    assert values(running, "r") == [(1, "{'k': 8}")]


def test_a_deadline_moves_with_its_query():
    clock = VirtualClock()
    one = Running(query_set(p="SELECT k FROM a [RANGE 2 SECONDS]", q="SELECT k FROM b"), clock=clock)
    other = Running(query_set(r="SELECT k FROM a"), clock=clock)
    one.engine.push("a", rows(k=[7]))
    assert values(one, "p") == [(1, "{'k': 7}")]
    move(one, other, ["p"])
    clock.wait_until(2.1)
    assert values(other, "p") == [(-1, "{'k': 7}")]
    assert one.engine.runner.deadlines == {}


def test_what_was_set_and_measured_goes_on():
    running = Running(query_set(run={"statistics": "average"}, p="SELECT k FROM a WHERE k > 1", q="SELECT k FROM b"))
    for _ in range(3):
        running.engine.push("a", rows(k=[0, 1, 2, 3]))
        running.engine.run()
    running.engine.control.weigh("p", 3.0)
    running.engine.control.require("delay")
    before = running.engine
    running.become(running.query_set.add(came(r="SELECT k + 1 AS k FROM a WHERE k > 1")).remove("q"))
    after = running.engine
    assert after.control.weights == {"p": 3.0, "r": 1.0}
    assert (after.control.qos, after.admitted, after.clock) == (before.control.qos, 12, before.clock)
    mine, theirs = (e.statistics.of(e.plan.station("p.where")) for e in (after, before))
    assert (mine.cost, mine.selectivity, mine.marginal_cost) == (theirs.cost, theirs.selectivity, theirs.marginal_cost)
    assert mine.selectivity != 1.0
    assert isinstance(after.statistics, MeasuredStatistics)
    assert after.statistics.totals[after.plan.station("p.where").index].consumed == 12
    assert after.statistics.totals[after.plan.station("r.select").index].consumed == 0


def test_rows_left_aside_are_still_counted():
    stream = {"a": {"schema": {"k": "int64", "t": "int64"}, "timestamp": "t"}}
    running = Running(query_set(stream, p="SELECT k FROM a"))
    running.engine.runner.on_dead_letter = None
    running.engine.push("a", rows(k=[1, 2], t=[9, 3]))
    running.engine.run()
    running.become(running.query_set.add(came(q="SELECT t FROM a")))
    assert running.engine.runner.rejected_rows == {("p.arrange", "late"): 1}


def test_a_station_whose_query_has_gone_puts_out_no_results_of_its_own():
    running = Running(query_set(p="SELECT * FROM a WHERE k > 1", q="SELECT k + 1 AS k FROM a WHERE k > 1"))
    running.engine.push("a", rows(k=[1, 2]))
    running.become(running.query_set.remove("p"))
    assert values(running, "q") == [(1, "{'k': 3}")]
    assert running.found == {}


def test_one_that_comes_under_the_name_of_one_that_went_begins_anew():
    running = Running(query_set(p="SELECT count(*) AS n FROM a", q="SELECT k FROM b"))
    running.engine.push("a", rows(k=[1, 2]))
    running.engine.run()
    running.found.clear()
    running.become(running.query_set.remove("p").add(came(p="SELECT count(*) AS n FROM a")))
    running.engine.push("a", rows(k=[5]))
    assert values(running, "p") == [(1, "{'n': 1}")]


def test_results_of_one_that_comes_again_are_numbered_anew():
    running = Running(query_set(p="SELECT k FROM a", q="SELECT k FROM b"), hosts=2)
    for number in range(2):
        running.engine.push("a", rows(k=[number]))
        assert values(running, "p") == [(1, f"{{'k': {number}}}")]
        assert running.numbers.pop("p") == 1
        running.become(running.query_set.remove("p"))
        running.become(running.query_set.add(came(p="SELECT k FROM a")))


def test_all_may_go_and_others_come():
    running = Running(query_set(p="SELECT k FROM a"))
    running.engine.push("a", rows(k=[1]))
    running.become(running.query_set.remove("p"))
    running.engine.push("a", rows(k=[2]))
    running.engine.run()
    running.become(running.query_set.add(came(q="SELECT k FROM a")))
    running.engine.push("a", rows(k=[3]))
    assert values(running, "q") == [(1, "{'k': 3}")]
    assert running.finished() == {}


def test_engines_that_have_been_succeeded_are_not_kept():
    running = Running(query_set(p="SELECT k FROM a"), "adaptive")
    first = weakref.ref(running.engine)
    running.become(running.query_set.add(came(q="SELECT k FROM b")))
    running.become(running.query_set.remove("p"))
    gc.collect()
    assert first() is None


class Heard(Observer):
    """Counts turns, and what had been admitted before."""

    def __init__(self):
        self.turns = 0

    def attach(self, engine):
        self.before = engine.admitted, engine.ledger.held

    def turn(self, start, segment, steps):
        self.turns += 1


@pytest.mark.parametrize("text", ["adaptive", "rr", "qos-chain"])
def test_who_decides_goes_on_deciding_and_who_watches_is_told(text):
    running, heard = Running(query_set(p="SELECT k FROM a"), text), Heard()
    before = running.engine
    before.push("b", rows(k=[1]))
    before.push("a", rows(k=[2]))
    running.engine = migrate(before, running.query_set.add(came(q="SELECT k + 1 AS k FROM a")).plan, [heard])
    assert type(running.engine.control.chosen) is type(before.control.chosen)
    assert heard.before == (2, 1)
    running.engine.push("a", rows(k=[1]))
    assert values(running, "q") == [(1, "{'k': 2}")]
    assert heard.turns >= 2
    running.engine.swap(policy("fifo"))


class Choosy(Fifo):
    """Will have none of large plans."""

    def segments(self, plan):
        if len(plan.stations) > 2:
            raise PolicyError("too many")
        return super().segments(plan)


def test_a_policy_may_refuse_and_the_engine_there_was_goes_on():
    running = Running(query_set(p="SELECT k FROM a WHERE k > 0", q="SELECT k + 1 AS k FROM a"))
    running.engine.swap(Choosy())
    running.engine.push("a", rows(k=[1]))
    with pytest.raises(PolicyError, match="too many"):
        running.become(running.query_set.add(came(r="SELECT k + 2 AS k FROM a")))
    running.engine.push("a", rows(k=[2]))
    assert values(running, "p") == [(1, "{'k': 1}"), (1, "{'k': 2}")]
    assert {query: sum(rows.values()) for query, rows in running.finished().items()} == {"q": 2}


def test_what_cannot_be_changed_is_refused():
    operators = [{"name": "x", "cost": 1.0}]
    abstract = QuerySet({"streams": {"s": {}}, "queries": {"p": {"from": "s", "operators": operators}}})
    more = abstract.add({"queries": {"q": {"from": "s", "operators": operators}}})
    with pytest.raises(
        DsmsError, match="TupleRunner runs abstract tuples: queries can be added and removed only in plans of rows"
    ):
        migrate(Engine(abstract.plan, policy("fifo")), more.plan)
    batches = Engine(abstract.plan, policy("fifo"), runner=BatchRunner)
    batches.push("s", 2)
    after = migrate(batches, more.plan)
    after.push("s", 1)
    assert [queue.count for queue in after.ledger.queues] == [3, 1]
    after.run()
    assert after.ledger.held == 0
    arrivals = {"kind": "constant", "rate": 1.0, "count": 3}
    fed = QuerySet({"streams": {"s": {"arrivals": arrivals}}, "queries": {"p": {"from": "s", "operators": operators}}})
    with pytest.raises(DsmsError, match="stream 's' has its own arrivals"):
        migrate(Engine(fed.plan, policy("fifo"), runner=BatchRunner), fed.plan)
    with pytest.raises(DsmsError, match=r"other settings in \[run\]"):
        migrate(batches, query_set(run={"bounds": False}, p="SELECT k FROM a").plan)


def test_queries_that_share_go_together_or_not_at_all():
    running = Running(query_set(p="SELECT k FROM a WHERE k > 1", q="SELECT k + 1 AS k FROM a WHERE k > 1"))
    with pytest.raises(PlanError, match=r"query 'p' cannot move without \['q'\]"):
        extract_state(running.engine, ["p"])
    with pytest.raises(PlanError, match="no query 'x'"):
        extract_state(running.engine, ["x"])
    running.engine.runner.results.update(p=3, z=4)
    transfer = extract_state(running.engine, ["p", "q"])
    assert transfer.results == {"p": 3, "q": 0}
    other = Running(query_set(r="SELECT k FROM a"))
    with pytest.raises(PlanError, match=r"transferred state of 'p\.\w+': no such operator"):
        migrate(other.engine, other.query_set.plan, (), transfer)
    with pytest.raises(PlanError, match=r"transferred state of operator 'p\.\w+', which already exists"):
        migrate(running.engine, running.query_set.plan, (), transfer)


def test_moved_goods_are_accounted_for_whatever_pieces_they_came_in():
    """Two readers of one stream, as many tuples before each, but not as many bytes: one of them only tells the time."""
    text = "SELECT x.k AS k FROM a [ROWS 2] AS x, b [ROWS 2] AS y WHERE x.k = y.k"
    one, other = Running(query_set(p=text)), Running(query_set(q="SELECT k FROM b"))
    one.engine.push("a", rows(k=[1]))  # b gets a watermark
    other.engine.push("b", rows(k=[1]))
    move(one, other, ["p"])
    assert other.engine.ledger.held == 2
    other.engine.push("b", rows(k=[1]))
    assert values(other, "p") == [(1, "{'k': 1}")]
    assert other.engine.ledger.held == other.engine.ledger.held_bytes == 0


def test_what_moves_is_younger_than_nothing_that_comes_after():
    one, other = Running(query_set(p="SELECT k FROM a")), Running(query_set(q="SELECT k FROM b"))
    for number in range(5):
        one.engine.push("a", rows(k=[number]))
    other.engine.push("b", rows(k=[1]))
    one.engine.runner.results["p"] = 7
    move(one, other, ["p"])
    other.engine.push("a", rows(k=[5]))
    assert other.engine.admitted == 6
    assert other.engine.runner.results["p"] == 7
    assert values(other, "p") == [(1, f"{{'k': {number}}}") for number in range(6)]


TEXTS = """
import pickle, sys
from dsms import Batch, Engine, WallClock, policy_named
from dsms.live.migration import migrate
from dsms.live.query_set import QuerySet

found = []
moved, transfer = pickle.load(open(sys.argv[1], "rb"))
empty = QuerySet(moved.table, queries=[])
sink = lambda query, batch: found.extend((query, row) for row in map(str, batch.records()))
engine = Engine(empty.plan, policy_named("fifo"), clock=WallClock(), sink=sink)
engine = migrate(engine, empty.merge(moved).plan, (), transfer)
engine.push("a", Batch.of({"s": ["x", "z", "y"]}))
engine.push("b", Batch.of({"s": ["y", "x"]}))
engine.run()
print(sorted(found))
"""


def test_texts_are_still_found_in_a_process_that_has_other_hashes_for_them(tmp_path):
    streams = {name: {"schema": {"s": "string"}} for name in "ab"}
    asked = {
        "p": "SELECT s, count(*) AS n FROM a GROUP BY s",
        "q": "SELECT x.s AS s FROM a AS x, b AS y WHERE x.s = y.s",
        "r": "SELECT DISTINCT s FROM b",
    }
    running, alone = Running(query_set(streams, **asked)), Running(query_set(streams, **asked))
    for engine in (running.engine, alone.engine):
        engine.push("a", rows(s=["x", "y", "x"]))
        engine.push("b", rows(s=["x"]))
        engine.run()
    (tmp_path / "moved").write_bytes(
        pickle.dumps((running.query_set.split(asked)[1], extract_state(running.engine, asked)))
    )
    alone.found.clear()
    alone.engine.push("a", rows(s=["x", "z", "y"]))
    alone.engine.push("b", rows(s=["y", "x"]))
    alone.engine.run()
    wanted = sorted((query, row) for query, found in alone.found.items() for _, _, row in found)
    done = subprocess.run(
        [sys.executable, "-c", TEXTS, str(tmp_path / "moved")],
        env={**os.environ, "PYTHONPATH": str(Path(dsms.__file__).parent.parent), "PYTHONHASHSEED": "7"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == str(wanted), done.stderr
