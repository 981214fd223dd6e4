"""Query results equal DuckDB's on the same rows: random data, random queries, every policy, any batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support.queries.changes_grammar import changes, pairs
from support.queries.generated_cases import POLICIES, Found, GeneratedCase, normalise, pushes, run_case
from support.queries.grammar import QueryGenerator, QueryText
from support.queries.rows import STORED, TYPES, Rows, stored_rows, stream_rows
from support.strategies import DETERMINISTIC, EXAMPLES, policy

import dsms
from dsms.clock import WallClock
from dsms.engine.engine import Engine
from dsms.errors import PolicyError

FAMILIES = ("selection", "join", "difference", "anti join", "aggregate", "union", "named", "changes", "pairs")
CASES = settings(DETERMINISTIC, max_examples=EXAMPLES or 56)
DUCK = duckdb.connect()

Answers = dict[str, Counter[tuple[Any, ...]]]  # by query, the final count of each row


@st.composite
def cases(draw: st.DrawFn, family: str) -> GeneratedCase:
    """Draw rows and queries of one family."""
    since = draw(st.sampled_from([0, 0, -30, 1_000_000_007]))
    names = ["a", "b", "c", "d"][: draw(st.integers(2, 4))]
    span = draw(st.sampled_from([60, 20, 200, 5]))
    most = 60 if family in ("selection", "changes") else 24
    streams = {name: draw(stream_rows(since, span, most)) for name in names}
    end = max((instant for rows in streams.values() for instant in rows.columns["ts"]), default=0)
    lengths = (span // 2, span, 2 * span, span // 4, span // 2, span, 2 * span, 1)
    sliding = family != "pairs" and draw(st.integers(0, 3)) == 0
    queries = QueryGenerator(draw, names, end, lengths, sliding, stored=["dim"])
    asked: dict[str, QueryText] = {}
    if family == "named":
        asked["flowing"] = queries.flowing["flowing"] = draw_stream_query(queries)
        asked["first"] = queries.named["first"] = queries.relation(0)
        queries.named["second"] = asked["second"] = queries.relation(0)
    asked["q"] = {
        "selection": queries.selection, "join": queries.join, "difference": queries.difference,
        "anti join": queries.anti_join, "aggregate": queries.aggregate, "union": queries.union,
        "named": queries.relation, "changes": lambda: changes(queries), "pairs": lambda: pairs(queries),
    }[family]()  # fmt: skip
    order = draw(st.sampled_from(["preserving", "preserving", "weak", 1, 5]))
    batches = draw(pushes(streams))
    chosen, together = draw(st.sampled_from(POLICIES)), draw(st.sampled_from([1, 1, 3, 1000]))
    return GeneratedCase(family, streams, draw(stored_rows()), asked, chosen, order, batches, together)


def draw_stream_query(queries: QueryGenerator) -> QueryText:
    """Draw a query whose results are a stream, over which others can put windows."""
    if queries.pick([True, False]):
        return changes(queries, "ISTREAM")
    part = queries.selected_stream(queries.stream(nested=False), "{}")
    return QueryText(part.cql, part.sql[1:-1], part.columns)


def add_up(rows: list[tuple[int, int, tuple[Any, ...]]], in_order: bool) -> Counter[tuple[Any, ...]]:
    """Return the final rows; no row may be retracted before it is inserted, nor out of order if order is kept."""
    total: Counter[tuple[Any, ...]] = Counter()
    missing: set[tuple[Any, ...]] = set()
    instant = None
    for ts, sign, values in rows:
        if in_order and instant is not None and ts != instant:
            assert ts > instant, f"{ts} after {instant}"
            assert not missing, f"retracted at {instant} but never inserted: {missing}"
        instant = ts
        row = tuple(map(normalise, values))
        total[row] += sign
        (missing.add if total[row] < 0 else missing.discard)(row)
    assert not missing, f"retracted but never inserted: {missing}"
    return +total


def ask_duckdb(case: GeneratedCase) -> Answers:
    """Return DuckDB's results by query."""
    for name, rows in [*case.streams.items(), ("dim", case.stored)]:
        for statement in rows.table(name):
            DUCK.execute(statement)
    answers = {}
    for name, part in case.queries.items():
        found = DUCK.execute(f"SELECT {', '.join(part.columns)} FROM ({part.sql})").fetchall()
        answers[name] = Counter(tuple(map(normalise, row)) for row in found)
    return answers


def check(case: GeneratedCase, seen: Counter[str]) -> None:
    """Compare the results of a case, and count what it covers."""
    note(f"{case.policy}, {case.order}, {case.together}, {case.batches}")
    for name, part in case.queries.items():
        note(f"{name}: {part.cql}\n   {part.sql}")
    expected, found = compare(case)
    seen["cases"] += 1
    seen["eager"] += case.order != "preserving"
    seen["some rows"] += bool(expected["q"])
    seen["taken back"] += any(sign < 0 for _, sign, _ in found["q"])


def compare(case: GeneratedCase) -> tuple[Answers, Found]:
    """Assert that both have the same rows with the same counts, and return them."""
    expected, found = ask_duckdb(case), run_case(case)
    for name, rows in found.items():
        total = add_up(rows, case.order == "preserving")
        assert total == expected[name], f"{name}: too many {total - expected[name]}, too few {expected[name] - total}"
    return expected, found


LEFT = Rows(TYPES, {
    "ts": [1, 2, 3, 4, 5], "k": [1, 2, 2, None, 3], "v": [1, 1, 2, 5, None], "f": [1.0, 2.0, 2.5, None, 3.0],
    "b": [True, False, None, True, True], "s": ["a", "b", None, "b", "a"], "u": [1, 2, 2, 5, 3],
})  # fmt: skip
RIGHT = Rows(TYPES, {
    "ts": [1, 3, 3, 6], "k": [2, 2, 1, None], "v": [2, 3, 1, None], "f": [2.0, 2.0, 1.0, -0.0],
    "b": [False, True, None, True], "s": ["b", "a", "b", None], "u": [2, 3, 3, 9],
})  # fmt: skip
DIM = Rows(STORED, {"k": [1, 2, 2, None], "label": ["one", "two", "zwei", "two"], "rate": [1.0, 2.0, None, 3.0]})


@pytest.mark.parametrize("text", [
    "SELECT x.k, x.v FROM a AS x ANTI JOIN b AS m ON x.k = m.k AND x.k = m.v",
    "SELECT x.k, x.v FROM a AS x ANTI JOIN b AS m ON x.k = m.k AND x.v = m.k",
    "SELECT x.k, y.v AS w FROM a AS x, b AS y ANTI JOIN b AS m ON x.k = m.k AND y.k = m.v WHERE x.k = y.k",
    "SELECT x.k, d.label FROM a AS x, dim AS d ANTI JOIN b AS m ON d.k = m.k WHERE x.k = d.k AND d.rate > 0",
    "SELECT x.k, y.v AS w FROM a AS x, b AS y WHERE x.k = y.k AND x.k = y.v",
    "SELECT x.k, y.v AS w FROM a AS x, b AS y WHERE x.k = y.k AND x.v = y.k",
    "SELECT x.k, z.ts AS w FROM a AS x, b AS y, a AS z WHERE x.k = y.k AND y.v = z.k AND z.v = x.k",
    "SELECT x.k, z.ts AS w FROM a AS x, b AS y, a AS z WHERE x.k = y.k",
    "SELECT x.k, y.f FROM a AS x, b AS y WHERE x.k = y.f",
    "SELECT k, x.f FROM a AS x JOIN b AS y USING (k, s)",
    "SELECT x.k FROM a AS x ANTI JOIN a AS y USING (s)",
    "SELECT k, v FROM a EXCEPT SELECT v, k FROM b",
    "SELECT k FROM a EXCEPT SELECT k FROM a",
    "SELECT k FROM a EXCEPT SELECT k FROM b EXCEPT SELECT v FROM b",
    "SELECT k FROM a UNION SELECT v FROM b EXCEPT SELECT v FROM a",
    "SELECT k FROM a UNION ALL (SELECT v AS k FROM b UNION SELECT v AS k FROM a)",
    "SELECT k FROM a UNION SELECT v FROM b UNION ALL SELECT v FROM a",
    "SELECT k + 1 AS z, count(*) AS n FROM a GROUP BY z",
    "SELECT k, sum(v) + count(*) * 2 AS n, max(f) - min(f) AS d FROM a GROUP BY k HAVING n > 1",
    "SELECT max(n) AS m, sum(n) AS t FROM (SELECT k, count(*) AS n FROM a GROUP BY k) AS x",
    "SELECT x.k FROM (SELECT k, count(*) AS n FROM a GROUP BY k) AS x"
    " ANTI JOIN (SELECT v, count(*) AS n FROM b GROUP BY v) AS y ON x.n = y.n",
    "SELECT f, count(*) AS n FROM b GROUP BY f",
    "SELECT x.k FROM (SELECT k FROM a UNION ALL SELECT v AS k FROM b) AS x, b AS y WHERE x.k = y.k",
    "SELECT x.k, d.label FROM a AS x, dim AS d, dim AS e WHERE x.k = d.k AND d.label = e.label",
    "SELECT x.k FROM a AS x, b AS y WHERE x.k = y.k OR x.v = y.v",
    "SELECT x.k FROM a AS x, b AS y WHERE false",
])  # fmt: skip
@pytest.mark.parametrize("size", [1, 1000])
def test_difficult_sql_gives_the_results_of_duckdb(text, size):
    streams = {"a": LEFT, "b": RIGHT}
    batches = [(name, at, at + size) for name, rows in streams.items() for at in range(0, len(rows), size)]
    compare(
        GeneratedCase(
            "written", streams, DIM, {"q": QueryText(text, text, {"*": ""})}, "fifo", "preserving", batches, 1
        )
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_and_batch_size_gives_the_results_of_duckdb(name, size):
    streams = {"a": LEFT, "b": RIGHT}
    batches = [(name, at, at + size) for at in range(0, 6, size) for name in streams]
    texts = {
        "q": "SELECT x.k, y.v AS w FROM a AS x, b AS y ANTI JOIN b AS m ON x.k = m.k AND y.k = m.v WHERE x.k = y.k",
        "g": "SELECT k, sum(v) AS s, max(f) AS m FROM a GROUP BY k",
        "e": "SELECT k FROM a EXCEPT SELECT v FROM b",
    }
    queries = {query: QueryText(text, text, {"*": ""}) for query, text in texts.items()}
    compare(GeneratedCase("written", streams, DIM, queries, name, "preserving", batches, 2))


@pytest.mark.parametrize("family", FAMILIES)
def test_random_queries_of_every_family_give_the_results_of_duckdb(family):
    """Five hundred cases in all; many have results, and many have retractions."""
    seen: Counter[str] = Counter()

    @CASES
    @given(case=cases(family))
    def check_all(case: GeneratedCase) -> None:
        check(case, seen)

    check_all()
    assert seen["cases"] >= min(CASES.max_examples, 500 / len(FAMILIES))
    assert seen["some rows"] >= 0.4 * seen["cases"]
    assert seen["eager"] > 0
    if family in ("join", "difference", "anti join", "aggregate"):
        assert seen["taken back"] > 0


@pytest.mark.parametrize("name", dsms.policies())
def test_a_policy_for_abstract_tuples_refuses_real_rows(name):
    plan = dsms.plan_from({"streams": {"a": {"schema": TYPES}}, "queries": {"q": {"cql": "SELECT k FROM a"}}})
    if name in POLICIES:
        Engine(plan, policy(name), clock=WallClock())
    else:
        with pytest.raises(PolicyError):
            Engine(plan, policy(name), clock=WallClock())
