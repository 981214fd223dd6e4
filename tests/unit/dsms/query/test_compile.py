"""CQL queries in plans: stored relations, user functions, operators beside them, and errors."""

from __future__ import annotations

import sys

import pytest

import dsms
from dsms import Batch, Engine, WallClock, plan_from, policy_named
from dsms.errors import PlanError

BIDS = {"bids": {"schema": {"who": "int64", "price": "int64"}}}
FUNCTIONS = """
def doubled(price):
    return price * 2

def spoken(price):
    return f"{price} euros"

def cheap(batch):
    return batch.columns["price"] < 100
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "pricing.py").write_text(FUNCTIONS)
    monkeypatch.delitem(sys.modules, "pricing", raising=False)
    return tmp_path


def results(table, folder, policy="fifo", **batches):
    """The results of each query for these rows, with their signs."""
    plan, got = plan_from(table, folder=folder), {}
    engine = Engine(
        plan,
        policy_named(policy),
        clock=WallClock(),
        sink=lambda query, rows: got.setdefault(query, []).extend(
            (int(sign), *row.values()) for sign, row in zip(rows.each("sign"), rows.records(), strict=True)
        ),
    )
    for stream, columns in batches.items():
        engine.push(stream, Batch.of(columns))
        engine.run()
    engine.end()
    engine.run()
    return got


def test_functions_of_the_users_in_expressions_vectorised_and_per_row(folder):
    table = {
        "streams": BIDS,
        "functions": {
            "twice": {"function": "pricing:doubled", "returns": "int64"},
            "spoken": {"function": "pricing:spoken", "returns": "string", "per_row": True},
        },
        "queries": {"q": {"cql": "SELECT twice(price) AS p, spoken(price) AS s FROM bids WHERE twice(price) > 10"}},
    }
    got = results(table, folder, bids={"who": [1, 2], "price": [5, 7]})
    assert got == {"q": [(1, 14, "7 euros")]}


def test_a_join_with_a_stored_relation(folder):
    (folder / "people.csv").write_text("who,name\n1,Ann\n2,Bo\n2,Bob\n")
    table = {
        "streams": BIDS,
        "relations": {"people": {"schema": {"who": "int64", "name": "string"}, "source": {"csv": "people.csv"}}},
        "queries": {"q": {"cql": "SELECT p.name, b.price FROM bids AS b, people AS p WHERE b.who = p.who"}},
    }
    got = results(table, folder, bids={"who": [2, 3, 1], "price": [5, 6, 7]})
    assert got == {"q": [(1, "Bo", 5), (1, "Bob", 5), (1, "Ann", 7)]}


def test_an_operator_of_the_users_reads_a_written_query(folder):
    table = {
        "streams": BIDS,
        "queries": {
            "low": {"from": "all", "operators": [{"name": "cheap", "function": "pricing:cheap"}]},
            "all": {"cql": "SELECT price, who FROM bids"},
        },
    }
    got = results(table, folder, bids={"who": [1, 2], "price": [5, 700]})
    assert got == {"all": [(1, 5, 1), (1, 700, 2)], "low": [(1, 5, 1)]}


def test_user_code_over_batches_inside_a_query_in_python(folder):
    query = dsms.stream("bids").apply("pricing:cheap", {"who": "int64", "price": "int64"}).select("who")
    got = results({"streams": BIDS, "queries": {"q": {"cql": query}}}, folder, bids={"who": [1, 2], "price": [5, 700]})
    assert got == {"q": [(1, 1)]}


def test_a_split_is_not_exclusive(folder):
    low, high = dsms.stream("bids").split("price < 10", "price > 3")
    table = {"streams": BIDS, "queries": {"low": {"cql": low}, "high": {"cql": high}}}
    got = results(table, folder, bids={"who": [1, 2, 3], "price": [2, 5, 20]})
    assert got == {"low": [(1, 1, 2), (1, 2, 5)], "high": [(1, 2, 5), (1, 3, 20)]}


@pytest.mark.parametrize(("order", "policy"), [("preserving", "fifo"), ("weak", "chain"), (3, "mtiq")])
def test_the_order_of_joins_is_a_setting_and_changes_no_result_in_the_end(folder, order, policy):
    table = {
        "streams": {"a": BIDS["bids"], "b": BIDS["bids"]},
        "queries": {
            "q": {"cql": "SELECT a.who FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.who = b.who"},
        },
        "run": {"order": order},
    }
    got = results(table, folder, policy, a={"who": [1, 2, 2], "price": [1, 1, 1]}, b={"who": [2, 3], "price": [1, 1]})
    assert sorted(got["q"]) == [(1, 2), (1, 2)]


@pytest.mark.parametrize(("change", "message"), [
    ({"queries": {"q": {"cql": "SELECT who FROM bids", "from": "bids"}}}, r"queries\.q: 'from' beside `cql`"),
    ({"queries": {"q": {"cql": 7}}}, r"queries\.q\.cql: 7 is neither CQL text"),
    ({"queries": {"bids": {"cql": "SELECT who FROM bids"}}}, r"queries\.bids: 'bids' is also the name of a stream"),
    ({"relations": {"bids": {"schema": {"k": "int64"}, "source": Batch.of({"k": [1]})}}}, r"relations\.bids: 'bids'"),
    ({"functions": {"f": {"function": "nowhere:f", "returns": "int64"}}}, r"functions\.f\.function: .*'nowhere'"),
    ({"streams": {"bids": {"schema": {"at": "int64"}, "timestamp": "at", "late": 5}}}, r"late: 5 is not a duration"),
    ({"functions": {"f": {"function": "pricing:doubled"}}}, r"functions\.f\.returns: missing; .*returns = \"int64\""),
    ({"functions": {"f": {"function": "pricing:halved", "returns": "int64"}}}, r"no 'halved' in 'pricing'"),
    ({"functions": {"f": {"function": "pricing:doubled", "returns": "int"}}}, r"returns: 'int' is not a valid choice"),
    ({"relations": {"r": {"schema": {"k": "int"}, "source": {"csv": "r.csv"}}}}, r"r\.schema.*'int' is"),
    ({"relations": {"r": {"schema": {"k": "int64"}, "source": {"csv": "r.csv"}}}}, r"relations\.r\.source.*r\.csv"),
    ({"streams": {"bids": {"schema": {"who": "int64"}, "late": "1s"}}}, r"streams\.bids\.late"),
    ({"run": {"order": "strict"}}, r"run\.order: 'strict' is not one of"),
    ({"run": {"order": 0}}, r"run\.order: 0 is not one of"),
    ({"run": {"tuples": "fractional"}}, r"queries\.q\.cql: fractional tuples have no columns"),
])  # fmt: skip
def test_what_cannot_be_planned_is_refused_with_its_place(folder, change, message):
    table = {"streams": BIDS, "queries": {"q": {"cql": "SELECT who FROM bids"}}, **change}
    with pytest.raises(PlanError, match=message):
        plan_from(table, folder=folder)


@pytest.mark.parametrize(
    "misplaced",
    [
        dsms.stream("people"),
        dsms.stream("people").distinct(),
        dsms.stream("people").where("k > 1"),
        dsms.stream("bids").union(dsms.stream("people")),
        dsms.stream("people").join(dsms.stream("towns"), on="k"),
    ],
    ids=["alone", "distinct", "where", "union", "two relations"],
)
def test_a_stored_relation_can_only_be_joined_with_a_stream(misplaced):
    known = {"schema": {"k": "int64"}, "source": Batch.of({"k": [1]})}
    plan = {
        "streams": {"bids": {"schema": {"k": "int64"}}},
        "relations": {"people": known, "towns": known},
        "queries": {"q": {"cql": misplaced}},
    }
    with pytest.raises(PlanError, match=r"queries\.q.*'people' is a stored relation: it can only be joined with a str"):
        plan_from(plan)
