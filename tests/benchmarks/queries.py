"""Real queries on bids: ours beside Bytewax, one event at a time and in batches, and beside plain numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from benchmarks import bytewax_peer, numpy_peer, ours
from benchmarks.bids import Count, Load, Take, Tally, load_for
from benchmarks.report import Row
from benchmarks.timing import Contender, Times, interleaved, timed

ROWS, MANY, BATCH, REPETITIONS = 1_000_000, 5_000_000, 10_000, 7  # many where a million take milliseconds
QUICK = ("q0", "q1", "q2", "fc")
FEW, FEWER = {"qj": 50_000, "mq": 50_000}, 100_000  # for what takes one event at a time


class Beside(NamedTuple):
    """A peer, and the share of its speed that is wanted of us."""

    kind: str  # "one by one", "batches" or "numpy"
    query: str  # as the peer calls it
    goal: float | None = None


class Case(NamedTuple):
    """A query of ours and all that it is compared with."""

    what: str
    query: str  # as we call it
    beside: tuple[Beside, ...]
    batch: int = BATCH


CASES = (
    Case("Q0 pass", "q0", (Beside("one by one", "q0", 20), Beside("batches", "q0", 0.8),
                           Beside("batches", "q0 uncopied"), Beside("numpy", "q0"))),
    Case("Q1 map", "q1", (Beside("one by one", "q1", 20), Beside("batches", "q1"), Beside("numpy", "q1"))),
    Case("Q1 map", "q1", (Beside("numpy", "q1", 0.5),), 100_000),
    Case("Q2 filter", "q2", (Beside("one by one", "q2", 20), Beside("batches", "q2"), Beside("numpy", "q2"))),
    Case("Q2 filter", "q2", (Beside("numpy", "q2", 0.5),), 100_000),
    Case("FC four filters", "fc", (Beside("one by one", "fc", 20), Beside("batches", "fc", 0.8),
                                   Beside("batches", "fc in one", 0.8), Beside("numpy", "fc", 0.5))),
    Case("FC as four stations", "fc4", (Beside("one by one", "fc"), Beside("batches", "fc"), Beside("numpy", "fc"))),
    Case("QA count and sum", "qa", (Beside("one by one", "qa", 50), Beside("one by one", "qa still"),
                                    Beside("numpy", "qa"), Beside("numpy", "qa small keys"))),
    Case("QJ window join", "qj", (Beside("one by one", "qj", 20), Beside("numpy", "qj", 0.5),
                                  Beside("numpy", "qj small keys"))),
    Case("MQ 250 queries", "mq", (Beside("one by one", "mq", 20), Beside("batches", "mq", 1.5),
                                  Beside("batches", "mq in one", 1.5), Beside("numpy", "mq", 0.5))),
)  # fmt: skip


NAMES = {"one by one": "Bytewax one by one", "batches": "Bytewax in batches", "numpy": "numpy"}


def queries() -> Iterator[Row]:
    """Rows a second of each, from memory; what every contender answers is compared with numpy's answer first."""
    for case in CASES:
        yield from compared(case)


def compared(case: Case) -> Iterator[Row]:
    load = load_for(case.query, MANY if case.query.startswith(QUICK) else ROWS, case.batch)
    contenders: dict[str, Contender] = {"ours": _ours(case.query, load)}
    for peer in case.beside:
        contenders[f"{peer.kind} {peer.query}"] = CONTENDERS[peer.kind](peer.query, load)
    times = interleaved(contenders, REPETITIONS)
    for kind, query, goal in case.beside:
        peer = times[f"{kind} {query}"]
        ratio = peer.median / times["ours"].median
        yield Row(
            f"{case.what}, {case.batch // 1000},000 rows",
            rate(times["ours"]),
            f"{NAMES[kind]}{query[2:]} {rate(peer)}",
            ratio,
            "–" if goal is None else f"≥ {goal:g}",
            None if goal is None else ratio >= goal,
        )


def _checked(query: str, load: Load, found: Tally) -> int:
    """How many results there are; `found` is as it should be."""
    wanted = numpy_peer.answer(query[:2], load)
    assert (found.rows, found.total) == (wanted.rows, wanted.total), f"{query}: {found} found, {wanted} wanted"
    return wanted.rows


def _ours(query: str, load: Load) -> Contender:
    results = _checked(query, load, ours.answer(query, load))

    def contend() -> float:
        count = Count()
        _, work = ours.ready(query, load, count.take)
        seconds, _ = timed(work)
        assert count.rows == results
        return seconds / load.rows

    return contend


def _numpy(query: str, load: Load) -> Contender:
    return _taking(query, load, lambda take: partial(numpy_peer.QUERIES[query], load, take))


def _batched(query: str, load: Load) -> Contender:
    return _taking(query, load, partial(bytewax_peer.batched, query, load))


def _taking(query: str, load: Load, ready: Callable[[Take], Callable[[], None]]) -> Contender:
    """One that hands its results on as they come."""
    tally = Tally()
    ready(tally.take)()
    results = _checked(query, load, tally)

    def contend() -> float:
        count = Count()
        seconds, _ = timed(ready(count.take))
        assert count.rows == results
        return seconds / load.rows

    return contend


def _single(query: str, load: Load) -> Contender:
    """Bytewax one event at a time, on fewer rows so that it takes seconds."""
    few = load_for(query, FEW.get(query[:2], FEWER), 1_000)
    tally = Tally()
    tally.take("q", bytewax_peer.columns_of(query, bytewax_peer.single(query, few)()))
    results = _checked(query, few, tally)

    def contend() -> float:
        seconds, found = timed(bytewax_peer.single(query, few))
        assert len(found) == results
        return seconds / few.rows

    return contend


CONTENDERS = {"one by one": _single, "batches": _batched, "numpy": _numpy}


def rate(times: Times) -> str:
    """Rows a second."""
    rows, _, spread = times.rate.partition("/s")
    count = float(rows.replace(",", ""))
    return f"{count / 1e6:,.1f} M/s{spread}" if count >= 1e6 else f"{count / 1e3:,.0f} k/s{spread}"
