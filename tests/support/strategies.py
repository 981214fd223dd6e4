"""Random plans for property tests, and a second bookkeeping of a run to hold the engine's own against."""

from __future__ import annotations

import copy
import functools
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import dsms
from dsms.data.outcomes import tuple_identities
from dsms.engine.engine import Engine
from dsms.engine.ledger import Queue
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners import PieceRunner, Runner, Step, TupleRunner
from dsms.plan.graph import Plan, Station, Stream
from dsms.plan.segment import Segment

# Up to the usual number, the same plans every time; `make fuzz` draws many others each time, `make quick` fewer. They
# are small as drawn; add Phase.shrink to see the smallest that fails, in minutes.
USUAL_EXAMPLES = 25
EXAMPLES = int(os.environ.get("DSMS_EXAMPLES", "0"))
DETERMINISTIC = settings(
    derandomize=EXAMPLES <= USUAL_EXAMPLES,
    database=None,
    deadline=None,
    max_examples=EXAMPLES or USUAL_EXAMPLES,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
)
FEW = settings(DETERMINISTIC, max_examples=EXAMPLES // 3 or 10)  # where a plan is run under every policy

# Exact in binary, so that instants tie as they do on paper.
COSTS = (0.25, 0.5, 1.0, 2.0)
GAPS = (0.0, 0.0, 0.0, 0.25, 1.0, 3.5, 12.0)
SELECTIVITIES = (1.0, 0.5, 0.3, 1.7, 2.0, 1.0, 0.0)
MOST = 48  # tuples that may come into one operator: copies of copies must not explode

PARAMETERS = (
    "rr:tuples=3", "rr:time=1.5", "rr-query:tuples=2", "rr-query:time=2.0", "mtiq:ratio=0.3,threshold=2",
    "fifo:ratio=0.5,threshold=1", "chain:ratio=0.5,threshold=1", "fas-mcq:beta=0.25", "rb-mcq:ties=query",
    "tuple-greedy:goal=memory",
    "adaptive:warmup=1,explore=1,every=2,candidates=greedy+fifo+rr",
)  # fmt: skip


POLICIES = (*dsms.policies(), *PARAMETERS)  # every registered policy must pass
YARDSTICKS = ("mss", "mss-memory", "tuple-greedy", "tuple-greedy:goal=memory")  # these know every tuple's fate

_named = functools.cache(dsms.policy_named)


def policy(text: str) -> Policy:
    """A policy of one's own; looking a name up among what is installed takes longer than most runs here."""
    return copy.copy(_named(text))


def is_suitable(text: str, plan: Plan, runner: Any = None) -> bool:
    """Whether a policy can run this plan: one that must know fates needs tuples that have some, drawn beforehand."""
    return text not in YARDSTICKS or (runner is None and plan.abstract and not plan.settings.fractional)


# --- plans


@st.composite
def arrival_tables(draw: st.DrawFn, operators: Sequence[str], carrying: bool) -> dict[str, Any]:
    """A list with ties and bursts, now and then with a cost or a size of its own for every tuple."""
    gaps = draw(st.lists(st.sampled_from(GAPS), min_size=2, max_size=10))
    table: dict[str, Any] = {"kind": "list", "at": np.cumsum(gaps).tolist()}
    factors = st.lists(st.sampled_from((0.5, 1.0, 3.0)), min_size=len(gaps), max_size=len(gaps))
    kind = draw(st.sampled_from(("", "", "", "cost", "cost of one", "size", "both"))) if carrying else ""
    if kind in ("cost", "both"):
        table["cost"] = draw(factors)
    if kind == "cost of one":
        table["cost"] = {draw(st.sampled_from(operators)): draw(factors)}
    if kind in ("size", "both"):
        table["size"] = draw(factors)
    return table


@st.composite
def plan_tables(
    draw: st.DrawFn,
    tuples: Sequence[str] = ("individual", "individual", "fractional"),
    selectivity: Sequence[str] = ("random", "spread"),
) -> dict[str, Any]:
    """A plan as `plan_from` takes it: paths, forks, unions, diamonds, queries that read each other's operators."""
    run = {
        "tuples": draw(st.sampled_from(tuples)),
        "selectivity": draw(st.sampled_from(selectivity)),
        "buffers": draw(st.sampled_from(("shared", "private"))),
        "in_service": draw(st.booleans()),
        "bounds": draw(st.sampled_from((True, True, False))),
        "seed": draw(st.integers(0, 3)),
    }
    if draw(st.integers(0, 3)) == 3:
        run["slice"] = draw(st.sampled_from((0.5, 1.5, 4.0)))
    fractional = run["tuples"] == "fractional"
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    names = [f"{query}{i}" for query, length in zip("abc", lengths, strict=False) for i in range(length)]
    streams, volume, size = {}, {}, {}
    for name in ("s", "t", "u")[: draw(st.integers(1, 3))]:
        table = draw(arrival_tables(names, carrying=not fractional))
        streams[name] = {"arrivals": table, "size": draw(st.sampled_from((1.0, 1.0, 4.0)))}
        volume[name], size[name] = len(table["at"]), streams[name]["size"]
    queries = {}
    for query, length in zip("abc", lengths, strict=False):
        before = draw(st.sampled_from(list(volume)))
        operators = []
        for i in range(length):
            inputs = [before]
            if draw(st.integers(0, 2)) == 2:
                inputs = draw(st.lists(st.sampled_from(list(volume)), min_size=1, max_size=3, unique=True))
            while sum(volume[name] for name in inputs) > MOST:
                inputs.pop()
            into = sum(volume[name] for name in inputs)
            operator = draw(operator_tables(fractional, into))
            before = operator["name"] = f"{query}{i}"
            operator["inputs"] = inputs
            if len({size[name] for name in inputs}) > 1:
                operator.setdefault("size", 2.0)  # test_measures has the union that leaves it open
            size[before] = operator.get("size", size[inputs[0]])
            volume[before] = into * math.ceil(operator["selectivity"])
            operators.append(operator)
        if draw(st.integers(0, 4)) == 4:
            operators.reverse()  # the order in a file need not be the order of the tuples' way
        queries[query] = {"operators": operators, "weight": draw(st.sampled_from((1.0, 1.0, 3.0)))}
    return {"streams": streams, "queries": queries, "run": run}


@st.composite
def operator_tables(draw: st.DrawFn, fractional: bool, into: int) -> dict[str, Any]:
    possible = [s for s in SELECTIVITIES if into * math.ceil(s) <= MOST]
    operator: dict[str, Any] = {
        "cost": draw(st.sampled_from(COSTS)),
        "selectivity": draw(st.sampled_from(possible)),
    }
    extra = draw(st.sampled_from(("", "", "", "startup", "startup only", "take", "size", "all")))
    if extra in ("startup", "startup only", "all"):
        operator["startup"] = draw(st.sampled_from((0.25, 1.0)))
    if extra == "startup only":
        operator["cost"] = 0.0
    if extra in ("take", "all"):
        operator["take"] = draw(st.sampled_from((0.25, 0.5, 1.5, 2.0) if fractional else (1, 2, 3)))
    if extra in ("size", "all"):
        operator["size"] = draw(st.sampled_from((0.5, 2.0)))
    return operator


def make_path_plan(
    *operators: dict[str, Any], at: Sequence[float], stream: dict[str, Any] | None = None, **run: Any
) -> Plan:
    """A plan of one query, its operators one after the other, named a, b, c … unless they have names."""
    named = [{"name": name, **operator} for name, operator in zip("abcdefgh", operators, strict=False)]
    arrivals = {"kind": "list", "at": list(at)}
    return dsms.plan_from({
        "streams": {"s": {"arrivals": arrivals, **(stream or {})}},
        "queries": {"q": {"from": "s", "operators": named}},
        "run": run,
    })  # fmt: skip


def has_split_tuples(plan: Plan) -> bool:
    """Whether fractional tuples are put together and cut again, so that a result is of several arrivals."""
    return plan.settings.fractional and any(station.operator.take is not None for station in plan.stations)


# --- what must come out, known before any run


@dataclass
class ExpectedResults:
    results: Counter[tuple[str, float]]  # (query, arrival)
    amounts: dict[str, float]  # by query
    consumed: dict[str, float]  # by station
    produced: dict[str, float]


def expect_results(plan: Plan) -> ExpectedResults:
    """Every tuple followed through the plan by itself, station by station: no queue, no time, no policy."""
    flows: dict[int, list[tuple[int, Any, float, float]]] = {}  # of a producer: (seq, identity, arrival, amount)
    arrived = [
        (instant, place, number)
        for place, stream in enumerate(plan.streams)
        for number, instant in enumerate(stream.arrivals(0).between(0.0, math.inf).tolist() if stream.arrivals else ())
    ]
    for seq, (instant, place, number) in enumerate(sorted(arrived)):
        stream = plan.streams[place]
        who = tuple_identities(stream.name, np.array([number]))
        flows.setdefault(id(stream), []).append((seq, who, instant, 1.0))
    found = ExpectedResults(Counter(), {query.name: 0.0 for query in plan.queries}, {}, {})
    for station in plan.stations:
        into = [
            (seq, port, n, *rest)
            for port, producer in enumerate(station.inputs)
            for n, (seq, *rest) in enumerate(flows.get(id(producer), ()))
        ]
        out = flows[id(station)] = []
        operator: Any = station.operator.fresh(plan.settings)
        for seq, port, _, who, instant, amount in sorted(into, key=lambda entry: entry[:3]):
            if plan.settings.fractional:
                made = amount * operator.selectivity
                out += [(seq, who, instant, made)] if made else []
            else:
                _, born = operator.child_identities(who, operator.outputs(who), port)
                out += [(seq, born[i : i + 1], instant, 1.0) for i in range(len(born))]
        found.consumed[station.name] = sum(entry[-1] for entry in into)
        found.produced[station.name] = sum(entry[-1] for entry in out)
        if station.sink:
            found.results.update((station.query.name, instant) for _, _, instant, _ in out)
            found.amounts[station.query.name] += found.produced[station.name]
    return found


# --- what did happen


@dataclass
class TupleRecord:
    """A tuple, or a piece of one, as it was put out."""

    seq: int
    amount: float
    unit: float  # bytes of a whole tuple
    arrived: float
    born: float  # when it came into the queues


@dataclass
class QueueRead:
    """What a station took from one of its queues at once."""

    record: TupleRecord  # the first it took
    amount: float
    begin: float
    end: float


@dataclass
class RunFigures:
    """What a run is said to have cost, worked out from the intervals in which things were where."""

    turns: int
    switches: int
    tuples: tuple[float, float]  # maximum, integral
    bytes: tuple[float, float]
    latencies: list[float]
    outputs: dict[str, float]
    stale: dict[str, float]
    longest_wait: float


class QueueHistory(Observer):
    """Queues as lists that are only ever appended to, with a pointer for each reader, kept from events alone."""

    trusted = True

    def __init__(self) -> None:
        self.turns: list[tuple[float, Segment, list[float]]] = []  # start, segment, ends of its steps
        self.results: list[tuple[str, TupleRecord]] = []  # by query; a result is born when it leaves
        self.admitted = 0

    def attach(self, engine: Engine) -> None:
        self.plan = engine.plan
        self.written: dict[int, list[TupleRecord]] = {id(p): [] for p in (*self.plan.streams, *self.plan.stations)}
        self.reads: dict[tuple[int, int], list[QueueRead]] = {
            (station.index, port): [] for station in self.plan.stations for port in range(len(station.inputs))
        }
        self._pointers = dict.fromkeys(self.reads, (0, 0.0))  # the record a reader is at, how much of it is read
        self._sizes = [s.arrivals(0).carries.get("size") if s.arrivals else None for s in self.plan.streams]

    def arrive(self, now: float, stream: int, count: int) -> None:
        producer, sizes = self.plan.streams[stream], self._sizes[stream]
        records = self.written[id(producer)]
        for _ in range(count):
            unit = producer.size if sizes is None or self.plan.settings.fractional else float(sizes[len(records)])
            records.append(TupleRecord(self.admitted, 1.0, unit, now, now))
            self.admitted += 1

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        now, ends = start, []
        for queue, taken, made, cost, since, gone, _ in steps:
            end = now + cost
            first = self._take(queue, taken, now, end)
            assert since == first.born, f"{queue} took a tuple that had come at {since}, its head came at {first.born}"
            station = queue.station
            pieces = [made] * bool(made) if self.plan.settings.fractional else [1.0] * int(made)
            unit = station.operator.size or first.unit
            out = [TupleRecord(first.seq, amount, unit, first.arrived, end) for amount in pieces]
            self.written[id(station)] += out
            assert list(gone) == [first.arrived] * (len(out) if station.sink else 0)
            if station.sink:
                self.results += [(station.query.name, record) for record in out]
            now = end
            ends.append(end)
        self.turns.append((start, segment, ends))

    def _take(self, queue: Queue, amount: float, begin: float, end: float) -> TupleRecord:
        key = (queue.station.index, queue.port)
        records = self.written[id(queue.station.inputs[queue.port])]
        at, done = self._pointers[key]
        first = records[at]
        assert first.born <= begin, f"{queue} took at {begin} what comes at {first.born}"
        self.reads[key].append(QueueRead(first, amount, begin, end))
        left = amount
        while at < len(records) and left >= (rest := records[at].amount - done) - 1e-9:
            left, at, done = left - rest, at + 1, 0.0
        if left > 1e-9:
            assert at < len(records), f"{queue} took {left} more than there was"
            done += left
        self._pointers[key] = (at, done)
        return first

    def waiting(self, queue: Queue) -> list[tuple[int, float, float]]:
        """What must be in this queue now: (sequence number, amount, bytes) of each."""
        at, done = self._pointers[queue.station.index, queue.port]
        left = self.written[id(queue.station.inputs[queue.port])][at:]
        return [(r.seq, r.amount - (done if i == 0 else 0.0), r.unit) for i, r in enumerate(left)]

    def consumed(self, station: Station) -> float:
        return sum(r.amount for port in range(len(station.inputs)) for r in self.reads[station.index, port])

    def produced(self, station: Station) -> float:
        return sum(record.amount for record in self.written[id(station)])

    # --- figures up to an instant, whatever came after

    def figures(self, until: float) -> RunFigures:
        held = [(since, min(gone, until), n, b) for since, gone, n, b in self._held() if since < until]
        edges = sorted({0.0, until, *(x for since, gone, _, _ in held for x in (since, gone))})
        levels = [[sum(w[k] for w in held if w[0] <= a and w[1] >= b) for a, b in pairwise(edges)] for k in (2, 3)]
        integrals = [sum((gone - since) * w[k] for since, gone, *w in held) for k in (0, 1)]
        done = [segment for _, segment, ends in self.turns if ends[0] <= until]
        left = [(query, record) for query, record in self.results if record.born <= until]
        readings = [r for readings in self.reads.values() for r in readings]
        waits = [min(r.begin, until) - r.record.born for r in readings if r.record.born <= until]
        outputs = {q.name: sum(r.amount for name, r in left if name == q.name) for q in self.plan.queries}
        return RunFigures(
            turns=len(done),
            switches=sum(a is not b for a, b in pairwise(done)),
            tuples=(max(levels[0], default=0.0), integrals[0]),
            bytes=(max(levels[1], default=0.0), integrals[1]),
            latencies=[record.born - record.arrived for _, record in left],
            outputs=outputs,
            stale={q.name: self._stale(q.name, until) for q in self.plan.queries},
            longest_wait=max(waits, default=0.0),
        )

    def sample(self, instant: float) -> float:
        """What is held after the arrivals of this instant and before the next is taken off a queue."""
        taken_later = not self.plan.settings.in_service
        return sum(n for a, b, n, _ in self._held() if a <= instant and (instant < b or (taken_later and instant == b)))

    def _stale(self, query: str, until: float) -> float:
        ways = [(r.arrived, min(r.born, until)) for name, r in self.results if name == query and r.arrived < until]
        return union_length(ways)

    def _held(self) -> list[tuple[float, float, float, float]]:
        """Everything that was ever held: (since, until, tuples, bytes), a shared tuple once, a private one a reader."""
        held = []
        producers: list[Stream | Station] = [*self.plan.streams, *self.plan.stations]
        for producer in producers:
            readers = [
                (consumer.index, port)
                for consumer in dict.fromkeys(producer.consumers)
                for port, read in enumerate(consumer.inputs)
                if read is producer
            ]
            for record, amount, gone in self._slabs(producer, readers):
                until = [max(gone)] if self.plan.settings.buffers == "shared" else gone
                held += [(record.born, instant, amount, amount * record.unit) for instant in until]
        return held

    def _slabs(
        self, producer: Stream | Station, readers: Sequence[tuple[int, int]]
    ) -> list[tuple[TupleRecord, float, list[float]]]:
        """A producer's output, cut wherever it was written or read: of each part, when each reader was through."""
        if not readers:
            return []
        in_service = self.plan.settings.in_service
        written = np.cumsum([0.0, *(record.amount for record in self.written[id(producer)])])
        read = [np.cumsum([0.0, *(r.amount for r in self.reads[key])]) for key in readers]
        edges = np.unique(np.concatenate([written, *read]))
        slabs = []
        for low, high in pairwise(edges.tolist()):
            if high - low < 1e-9:
                continue  # two sums of the same fractions
            middle = (low + high) / 2
            record = self.written[id(producer)][int(np.searchsorted(written, middle)) - 1]
            gone = []
            for key, ends in zip(readers, read, strict=True):
                at = int(np.searchsorted(ends, middle)) - 1
                through = self.reads[key][at] if at < len(self.reads[key]) else None
                gone.append(math.inf if through is None else through.end if in_service else through.begin)
            slabs.append((record, high - low, gone))
        return slabs


def union_length(intervals: Sequence[tuple[float, float]]) -> float:
    """How long at least one of the intervals lasts."""
    edges = sorted({edge for interval in intervals for edge in interval})
    return sum(b - a for a, b in pairwise(edges) if any(since <= a and b <= until for since, until in intervals))


# --- the contents of queues


def list_queue(runner: Runner, queue: Queue) -> list[tuple[int, float, float]]:
    """What a runner keeps for a queue: (sequence number, amount, bytes of a whole tuple) of each, the first first."""
    if isinstance(runner, TupleRunner):
        line = queue.payload
        return [(seq, 1.0, (line.sizes or {}).get(key, line.size)) for seq, key, *_ in line.tuples]
    if isinstance(runner, PieceRunner):
        return [(seq, amount, queue.buffer.size) for seq, amount, *_ in queue.payload]
    found = []
    hosts: Any = runner.__dict__["_hosts"]
    for batch, _ in hosts[queue.station.index]._queues[queue.port]:
        sizes = batch.each("size").tolist()
        if runner.plan.settings.fractional:
            found += [(int(batch.first("seq")), size, queue.buffer.size) for size in sizes]
        else:
            found += [(int(seq), 1.0, size) for seq, size in zip(batch.each("seq").tolist(), sizes, strict=True)]
    return found


def is_takeable(engine: Engine, queue: Queue) -> bool:
    """Whether the head of this queue is the oldest that its station can still get, by all that is known."""
    station, first = queue.station, list_queue(engine.runner, queue)[0][0]
    for port, producer in enumerate(station.inputs):
        if port == queue.port:
            continue
        here = list_queue(engine.runner, engine.ledger.inputs[station.index][port])
        above = [
            seq
            for upstream in find_upstream_queues(producer, engine)
            for seq, _, _ in list_queue(engine.runner, upstream)
        ]
        if engine.plan.settings.bounds:
            least = min([seq for seq, _, _ in here] + above, default=math.inf)
        elif here:
            least = here[0][0]
        else:
            least = math.inf if engine.ledger.has_ended and not above else -math.inf
        if (least, port) < (first, queue.port):
            return False
    return True


def find_upstream_queues(producer: Station | Stream, engine: Engine) -> list[Queue]:
    """All queues that what this producer puts out may have to pass before."""
    if isinstance(producer, Stream):
        return []
    mine = list(engine.ledger.inputs[producer.index])
    return mine + [queue for upstream in producer.inputs for queue in find_upstream_queues(upstream, engine)]
