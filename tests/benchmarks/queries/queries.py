"""Times queries on bids: ours beside Bytewax, one event at a time and in batches, and beside plain numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from benchmarks.queries import bytewax_peer, numpy_peer, ours
from benchmarks.queries.bids import BatchedRows, ResultChecksum, ResultCount, Take, load_for
from benchmarks.report import BenchmarkRow
from benchmarks.timing import Contender, Timings, interleave, measure_time

ROWS, BATCH, REPETITIONS = 1_000_000, 10_000, 7
QUICK_FACTOR = 5  # as many times the rows where a million take milliseconds
QUICK = ("q0", "q1", "q2", "fc")
FEW, FEWER = {"qj": 50_000, "mq": 50_000}, 100_000  # for what takes one event at a time


class Peer(NamedTuple):
    """A peer, and the share of its speed that we must reach."""

    kind: str  # "one by one", "batches" or "numpy"
    query: str  # as the peer calls it
    goal: float | None = None


class QueryCase(NamedTuple):
    """A query of ours and all that it is compared with."""

    what: str
    query: str  # as we call it
    beside: tuple[Peer, ...]
    batch: int = BATCH


CASES = (
    QueryCase("Q0 pass", "q0", (Peer("one by one", "q0", 20), Peer("batches", "q0", 0.8),
                           Peer("batches", "q0 uncopied"), Peer("numpy", "q0"))),
    QueryCase("Q1 map", "q1", (Peer("one by one", "q1", 20), Peer("batches", "q1"), Peer("numpy", "q1"))),
    QueryCase("Q1 map", "q1", (Peer("numpy", "q1", 0.5),), 100_000),
    QueryCase("Q2 filter", "q2", (Peer("one by one", "q2", 20), Peer("batches", "q2"), Peer("numpy", "q2"))),
    QueryCase("Q2 filter", "q2", (Peer("numpy", "q2", 0.5),), 100_000),
    QueryCase("FC four filters", "fc", (Peer("one by one", "fc", 20), Peer("batches", "fc", 0.8),
                                   Peer("batches", "fc in one", 0.8), Peer("numpy", "fc", 0.5))),
    QueryCase("FC as four stations", "fc4", (Peer("one by one", "fc"), Peer("batches", "fc"), Peer("numpy", "fc"))),
    QueryCase("QA count and sum", "qa", (Peer("one by one", "qa", 50), Peer("one by one", "qa still"),
                                    Peer("numpy", "qa"), Peer("numpy", "qa small keys"))),
    QueryCase("QJ window join", "qj", (Peer("one by one", "qj", 20), Peer("numpy", "qj", 0.5),
                                  Peer("numpy", "qj small keys"))),
    QueryCase("MQ 250 queries", "mq", (Peer("one by one", "mq", 20), Peer("batches", "mq", 1.5),
                                  Peer("batches", "mq in one", 1.5), Peer("numpy", "mq", 0.5))),
)  # fmt: skip


NAMES = {"one by one": "Bytewax one by one", "batches": "Bytewax in batches", "numpy": "numpy"}


def queries(rows: int = ROWS, repetitions: int = REPETITIONS) -> Iterator[BenchmarkRow]:
    """Measure rows a second from memory; each contender's answer is compared with numpy's first."""
    for case in CASES:
        yield from compare_case(case, rows, repetitions)


def compare_case(case: QueryCase, rows: int, repetitions: int) -> Iterator[BenchmarkRow]:
    load = load_for(case.query, QUICK_FACTOR * rows if case.query.startswith(QUICK) else rows, case.batch)
    few = min(rows, FEW.get(case.query, FEWER))
    contenders: dict[str, Contender] = {"ours": _ours(case.query, load)}
    for peer in case.beside:
        read = load_for(case.query, few, 1_000) if peer.kind == "one by one" else load
        contenders[f"{peer.kind} {peer.query}"] = CONTENDERS[peer.kind](peer.query, read)
    times = interleave(contenders, repetitions)
    for kind, query, goal in case.beside:
        theirs = times[f"{kind} {query}"]
        ratio = theirs.median / times["ours"].median
        yield BenchmarkRow(
            f"{case.what}, {case.batch // 1000},000 rows",
            rate(times["ours"]),
            f"{NAMES[kind]}{query[2:]} {rate(theirs)}",
            ratio,
            "–" if goal is None else f"≥ {goal:g}",
            None if goal is None else ratio >= goal,
        )


def _check_answer(query: str, load: BatchedRows, found: ResultChecksum) -> int:
    """How many results there are; `found` is as it should be."""
    wanted = numpy_peer.answer(query[:2], load)
    assert (found.rows, found.total) == (wanted.rows, wanted.total), f"{query}: {found} found, {wanted} expected"
    return wanted.rows


def _ours(query: str, load: BatchedRows) -> Contender:
    results = _check_answer(query, load, ours.answer(query, load))

    def contend() -> float:
        count = ResultCount()
        _, work = ours.prepare(query, load, count.take)
        seconds, _ = measure_time(work)
        assert count.rows == results
        return seconds / load.rows

    return contend


def _numpy(query: str, load: BatchedRows) -> Contender:
    return _taking(query, load, lambda take: partial(numpy_peer.QUERIES[query], load, take))


def _batched(query: str, load: BatchedRows) -> Contender:
    return _taking(query, load, partial(bytewax_peer.batched, query, load))


def _taking(query: str, load: BatchedRows, ready: Callable[[Take], Callable[[], None]]) -> Contender:
    """One that hands its results on as they come."""
    tally = ResultChecksum()
    ready(tally.take)()
    results = _check_answer(query, load, tally)

    def contend() -> float:
        count = ResultCount()
        seconds, _ = measure_time(ready(count.take))
        assert count.rows == results
        return seconds / load.rows

    return contend


def _single(query: str, few: BatchedRows) -> Contender:
    """Bytewax, one event at a time; on few rows, so that it takes seconds."""
    tally = ResultChecksum()
    tally.take("q", bytewax_peer.columns_of(query, bytewax_peer.single(query, few)()))
    results = _check_answer(query, few, tally)

    def contend() -> float:
        seconds, found = measure_time(bytewax_peer.single(query, few))
        assert len(found) == results
        return seconds / few.rows

    return contend


CONTENDERS = {"one by one": _single, "batches": _batched, "numpy": _numpy}


def rate(times: Timings) -> str:
    """Rows a second."""
    rows, _, spread = times.rate.partition("/s")
    count = float(rows.replace(",", ""))
    return f"{count / 1e6:,.1f} M/s{spread}" if count >= 1e6 else f"{count / 1e3:,.0f} k/s{spread}"
