"""Operators and policies give the same results in one process and on Ray actors."""

from __future__ import annotations

import pytest
from support.queries.generated_cases import POLICIES

from dsms.data.batch import Batch

STREAM = {"schema": {"k": "int64", "v": "int64", "at": "int64"}, "timestamp": "at", "late": "2us"}
DIM = {"k": [1, 2, 2], "label": ["one", "two", "zwei"]}
PUSHES = [
    ("a", {"k": [1, 2, 1], "v": [10, 20, 30], "at": [1, 2, 4]}),
    ("b", {"k": [1, 3], "v": [5, 6], "at": [2, 3]}),
    ("a", {"k": [3, 2], "v": [40, 50], "at": [9, 7]}),
    ("b", {"k": [1], "v": [7], "at": [8]}),
]
# By name: a query, and its results as sign and values.
OPERATORS = {
    "filter": ("SELECT k, v FROM a WHERE v > 20", [(1, 1, 30), (1, 2, 50), (1, 3, 40)]),
    "project": ("SELECT v * 2 AS w, k - 1 AS j FROM a WHERE k <> 1", [(1, 40, 1), (1, 100, 1), (1, 80, 2)]),
    "merge": (
        "SELECT k, v FROM a UNION ALL SELECT k, v FROM b",
        [(1, 1, 10), (1, 2, 20), (1, 1, 5), (1, 3, 6), (1, 1, 30), (1, 2, 50), (1, 1, 7), (1, 3, 40)],
    ),
    "match": (
        "SELECT x.v AS p, y.v AS q FROM a [RANGE 5 MICROSECONDS] AS x, b [ROWS 2] AS y WHERE x.k = y.k",
        [(1, 10, 5), (1, 30, 5), (-1, 10, 5), (-1, 30, 5), (1, 30, 7), (1, 40, 6)],
    ),
    "label": (
        "SELECT a.v, dim.label FROM a, dim WHERE a.k = dim.k",
        [(1, 10, "one"), (1, 20, "two"), (1, 20, "zwei"), (1, 30, "one"), (1, 50, "two"), (1, 50, "zwei")],
    ),
    "difference": ("SELECT k FROM a EXCEPT SELECT k FROM b", [(1, 1), (-1, 1), (1, 2)]),
    "unmatched": (
        "SELECT x.v AS v FROM a [ROWS 2] AS x ANTI JOIN b [ROWS 1] AS y ON x.k = y.k",
        [(1, 10), (-1, 10), (1, 20), (1, 10), (-1, 10), (1, 30), (-1, 20), (1, 50), (-1, 30), (1, 40)],
    ),
    "group": (
        "SELECT k, count(*) AS n, sum(v) AS s FROM a GROUP BY k",
        [(1, 1, 1, 10), (1, 2, 1, 20), (-1, 1, 1, 10), (1, 1, 2, 40), (-1, 2, 1, 20), (1, 2, 2, 70), (1, 3, 1, 40)],
    ),
    "highest": (
        "SELECT max(v) AS top FROM a [RANGE 3 MICROSECONDS]",
        [(1, 10), (-1, 10), (1, 20), (-1, 20), (1, 30), (-1, 30), (1, 50)],
    ),
    "once": ("SELECT DISTINCT k FROM a [ROWS 2]", [(1, 1), (1, 2), (-1, 1), (1, 3)]),
    "came": ("SELECT ISTREAM(count(*) AS n) FROM a [ROWS 2]", [(1, 1), (1, 2)]),
    "went": ("SELECT DSTREAM(k, v) FROM a [RANGE 2 MICROSECONDS]", [(1, 1, 10), (1, 2, 20), (1, 1, 30)]),
    "stood": (
        "SELECT RSTREAM(k, v) FROM a [RANGE 4 MICROSECONDS SLIDE 4 MICROSECONDS]",
        [(1, 1, 10), (1, 2, 20), (1, 1, 30), (1, 2, 50), (1, 3, 40)],
    ),
    "own": ("SELECT graded(v) AS g FROM a WHERE graded(v) > 2", [(1, 3), (1, 5), (1, 4)]),
    "reader": ("SELECT sum(w) AS s FROM project [ROWS 2]", [(1, 40), (-1, 40), (1, 140), (-1, 140), (1, 180)]),
}
GRADING = "def graded(v):\n    return v // 10\n"


@pytest.fixture
def begun(runtime, tmp_path):
    """Opens a domain for some of these queries."""
    (tmp_path / "grading.py").write_text(GRADING)

    def begin(names, policy="fifo"):
        table = {
            "streams": {"a": STREAM, "b": STREAM},
            "relations": {"dim": {"schema": {"k": "int64", "label": "string"}, "source": Batch.of(DIM)}},
            "functions": {"graded": {"function": "grading:graded", "returns": "int64"}},
            "queries": {name: {"cql": OPERATORS[name][0]} for name in names},
        }
        return runtime(table, policy)

    return begin


def results(live):
    """By query, sign and values of all rows, in order."""
    return {query: [(sign, *row.values()) for _, sign, row in found] for query, found in live.results().items()}


def push_each_row(live, pushes):
    for stream, columns in pushes:
        for row in zip(*columns.values(), strict=True):
            live.push(stream, Batch.of({name: [value] for name, value in zip(columns, row, strict=True)}))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_the_expected_results(begun, name):
    live = begun(["project", name] if name == "reader" else [name])
    for stream, columns in PUSHES:
        live.push(stream, Batch.of(columns))
    live.end()
    assert results(live)[name] == OPERATORS[name][1]
    assert live.held() == (0, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_results_are_the_same_under_every_policy(begun, policy):
    """The policy is swapped with rows in the queues, and swapped back while rows are processed."""
    live = begun(OPERATORS, policy)
    live.pause()
    push_each_row(live, PUSHES[:2])
    assert live.held()[0] >= 5
    live.swap(POLICIES[POLICIES.index(policy) - 1])
    live.resume()
    push_each_row(live, PUSHES[2:])
    live.swap(policy)
    live.end()
    assert results(live) == {name: expected for name, (_, expected) in OPERATORS.items()}
    assert live.held() == (0, 0)


def test_late_rows_become_dead_letters(begun):
    live = begun(["filter"])
    for instants in ([9], [3, 8], [6]):
        live.push("a", Batch.of({"k": instants, "v": [30] * len(instants), "at": instants}))
    live.end()
    assert results(live) == {"filter": [(1, 8, 30), (1, 9, 30)]}
    aside = [(each["where"], each["kind"], each["row"]) for each in live.aside()]
    assert aside == [("filter.arrange", "late", {"k": k, "v": 30, "at": k}) for k in (3, 6)]
