"""Results depend neither on how rows are cut into batches, nor on the order of pushes, nor on the policy.

Rows are compared by query, timestamp and sign, as often as they come. Their order within one instant is left open
here; but a window of ROWS on them tells it, so that a join of several plans has to keep to one order too.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support.queries.generated_cases import POLICIES, GeneratedCase, normalise, pushes, run_case
from support.queries.grammar import QueryGenerator, QueryText
from support.queries.rows import STORED, TYPES, Rows, stored_rows, stream_rows
from support.strategies import DETERMINISTIC, EXAMPLES

from dsms.operators.joins import multijoin

CASES = settings(DETERMINISTIC, max_examples=EXAMPLES or 30)
FAMILIES = ("relations", "groups", "joins", "sets", "named")
WORDS = ("ISTREAM", "DSTREAM", "RSTREAM")

Told = dict[str, Counter[tuple[int, int, tuple[Any, ...]]]]  # by query, how often each row comes: ts, sign, values


@pytest.fixture(autouse=True, scope="module")
def _often() -> Iterator[None]:
    """Joins think about their plans all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multijoin, "REPLAN_INTERVAL_CALLS", 2)
        yield


def over(queries: QueryGenerator, relation: Callable[[], QueryText]) -> QueryText:
    """A stream of the changes of any relation."""
    inner = relation()
    return QueryText(f"{queries.pick(WORDS)} ({inner.cql})", "", inner.columns)


@st.composite
def cases(draw: st.DrawFn, family: str) -> tuple[GeneratedCase, GeneratedCase]:
    """The same rows and queries twice, run in different ways."""
    since, span = draw(st.sampled_from([0, -30, 1_000_000_007])), draw(st.sampled_from([60, 20, 5]))
    names = ["a", "b", "c"][: draw(st.integers(2, 3))]
    streams = {name: draw(stream_rows(since, span, 18)) for name in names}
    queries = QueryGenerator(draw, names, 0, (span // 2, span, span // 4, 1), draw(st.booleans()), stored=["dim"])
    asked: dict[str, QueryText] = {}
    if family == "named":
        asked["n"] = queries.flowing["n"] = over(queries, lambda: queries.relation(0))
        queries.streams, names = ["n"], queries.streams
        asked["m"] = queries.named["m"] = queries.pick([queries.aggregate, queries.relation])(0)
        queries.streams = [*names, "n"]
    asked["q"] = {
        "relations": lambda: queries.relation(2),
        "groups": lambda: over(queries, queries.aggregate),
        "joins": lambda: over(queries, queries.pick([queries.join, queries.anti_join])),
        "sets": lambda: over(queries, queries.pick([queries.union, queries.difference])),
        "named": lambda: over(queries, queries.relation),
    }[family]()
    stored = draw(stored_rows())
    ways = st.tuples(st.sampled_from(POLICIES), pushes(streams), st.sampled_from([1, 1, 3, 1000]))
    one, other = (
        GeneratedCase(family, streams, stored, asked, chosen, "preserving", batches, together)
        for chosen, batches, together in (draw(ways), draw(ways))
    )
    return one, other


def told(case: GeneratedCase) -> Told:
    """All that came of a case, whatever its order within an instant."""
    rows = run_case(case)
    return {name: Counter((ts, sign, tuple(map(normalise, row))) for ts, sign, row in rows[name]) for name in rows}


def agree(one: GeneratedCase, other: GeneratedCase) -> Told:
    """Both ways of running it tell the same."""
    first, second = told(one), told(other)
    for name, rows in first.items():
        assert rows == second[name], f"{name}: only first {rows - second[name]}, only then {second[name] - rows}"
    return first


def check(both: tuple[GeneratedCase, GeneratedCase], seen: Counter[str]) -> None:
    """Compare, count, and say of what fails which case it was."""
    for name, part in both[0].queries.items():
        note(f"{name}: {part.cql}")
    for case in both:
        note(f"{case.policy}, {case.together}, {case.batches}")
    rows = agree(*both)
    seen["cases"] += 1
    seen["some rows"] += bool(rows["q"])


@pytest.mark.parametrize("family", FAMILIES)
def test_random_queries_of_every_family_tell_the_same_however_rows_are_cut(family):
    """Enough cases for a hundred and fifty in all, many of them with results."""
    seen: Counter[str] = Counter()

    @CASES
    @given(both=cases(family))
    def check_all(both: tuple[GeneratedCase, GeneratedCase]) -> None:
        check(both, seen)

    check_all()
    assert seen["cases"] >= min(CASES.max_examples, 150 / len(FAMILIES))
    assert seen["some rows"] >= 0.375 * seen["cases"]  # 15 of 40


FIVE = {"k": [0, 1, 0, 1, 0], "ts": [5, 7, 7, 12, 30]}
ROWS = Rows(TYPES, {name: FIVE.get(name, [None] * 5) for name in TYPES})
NONE = Rows(STORED, {name: [] for name in STORED})


@pytest.mark.parametrize("texts", [
    {"n": "SELECT ISTREAM(count(*) AS n) FROM a WHERE k = 1",
     "m": "SELECT count(*) AS c, sum(n) AS s, min(n) AS lo FROM n"},
    {"n": "SELECT ISTREAM(count(*) AS n, max(k) AS k) FROM a [RANGE 4 MICROSECONDS]",
     "m": "SELECT ISTREAM(sum(n) AS s) FROM n [ROWS 2]"},
    {"n": "SELECT DSTREAM(count(*) AS n) FROM a [NOW]", "m": "SELECT n, count(*) AS c FROM n GROUP BY n"},
    {"n": "SELECT RSTREAM(count(*) AS n) FROM a [RANGE 10 MICROSECONDS SLIDE 5 MICROSECONDS] WHERE k = 1",
     "m": "SELECT RSTREAM(sum(n) AS s) FROM n [RANGE 5 MICROSECONDS SLIDE 5 MICROSECONDS]"},
    {"n": "ISTREAM (SELECT k FROM a [ROWS 2] EXCEPT SELECT k FROM a [NOW] WHERE k = 1)",
     "m": "SELECT count(*) AS c FROM n [RANGE 6 MICROSECONDS]"},
    {"n": "SELECT count(*) AS c FROM a AS x ANTI JOIN a [RANGE 3 MICROSECONDS] AS y ON x.k = y.k",
     "m": "RSTREAM (SELECT max(c) AS c FROM n AS x)"},
    {"n": "SELECT count(*) AS c FROM a WHERE k = 7", "m": "ISTREAM (SELECT c + 1 AS c FROM n AS x)"},
])  # fmt: skip
def test_every_cut_of_five_rows_tells_the_same(texts):
    """All sixteen ways, each worked off after every push and all at once."""
    queries = {name: QueryText(text, "", {}) for name, text in texts.items()}
    whole = GeneratedCase("written", {"a": ROWS}, NONE, queries, "fifo", "preserving", [("a", 0, 5)], 1)
    for mask in range(16):
        ends = [0, *(place for place in range(1, 5) if mask >> (place - 1) & 1), 5]
        batches = [("a", start, stop) for start, stop in pairwise(ends)]
        for together, policy in ((1, "chain"), (1000, "greedy")):
            agree(whole, replace(whole, batches=batches, together=together, policy=policy))


def numbered(chance: random.Random, name: str) -> Rows:
    """Rows that can be told apart, many at an instant."""
    count, span = chance.choice([6, 30, 60]), chance.choice([5, 30])
    columns: dict[str, list[Any]] = {column: [None] * count for column in TYPES}
    columns["ts"] = sorted(chance.randrange(span) for _ in range(count))
    columns["k"], columns["v"] = ([chance.randrange(most) for _ in range(count)] for most in (3, 5))
    columns["s"] = [f"{name}{number}" for number in range(count)]
    return Rows(TYPES, columns)


@pytest.mark.parametrize("text", [
    "SELECT x.s AS p, y.s AS q, z.s AS r FROM a [ROWS 5] AS x, b [ROWS 5] AS y, c [ROWS 5] AS z"
    " WHERE x.k = y.k AND y.v = z.v",
    "SELECT x.s AS p, y.s AS q, x.v AS r FROM a [ROWS 5] AS x, b [ROWS 5] AS y ANTI JOIN c [ROWS 2] AS z ON y.v = z.v"
    " WHERE x.k = y.k",
    "SELECT y.s AS p, count(*) AS q, max(z.s) AS r FROM a [ROWS 5] AS x, b [ROWS 5] AS y, c [ROWS 5] AS z"
    " WHERE x.k = y.k AND y.v = z.v GROUP BY y.s",
])  # fmt: skip
@pytest.mark.parametrize("seed", range(8, 14))
def test_the_last_rows_of_a_joins_changes_are_the_same_whichever_plan_it_has_come_to(text, seed):
    chance = random.Random(seed)
    streams = {name: numbered(chance, name) for name in "abc"}
    queries = {"n": QueryText(f"ISTREAM ({text})", "", {}), "m": QueryText("SELECT p, q, r FROM n [ROWS 2]", "", {})}

    def cut(size: int) -> list[tuple[str, int, int]]:
        made = [(name, at, at + size) for name, rows in streams.items() for at in range(0, len(rows), size)]
        return sorted(made, key=lambda push: streams[push[0]].columns["ts"][push[1]])

    one = GeneratedCase("written", streams, NONE, queries, "fifo", "preserving", cut(1), 1)
    for size in (3, 7, 100):
        agree(one, replace(one, batches=cut(size), policy="chain"))
