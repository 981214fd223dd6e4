"""`dsms explain`: segments, priorities and their inputs, compared with calculations by hand; pictures."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from support.paths import PLANS

import dsms
from dsms import DsmsError, PlanError, Policy, PolicyError, Segment, explain, plan_from
from dsms.cli import main

K1 = PLANS / "chain-example.toml"  # o1: cost 1, selectivity 0.2; o2: cost 5, selectivity 0
ALL = [str(plan.name) for plan in sorted(PLANS.glob("*.toml"))]


def two_queries(**run: Any) -> dict[str, Any]:
    """q1: two operators, C = 1 + 0.5·2 = 2, S = 0.25; q2: one of cost 4 that passes everything, of half the weight."""
    return {
        "streams": {"s": {}},
        "queries": {
            "q1": {
                "from": "s",
                "weight": 2,
                "operators": [
                    {"name": "a", "cost": 1, "selectivity": 0.5},
                    {"name": "b", "cost": 2, "selectivity": 0.5},
                ],
            },
            "q2": {"from": "s", "operators": [{"name": "c", "cost": 4}]},
        },
        "run": run,
    }


JOIN = {
    "streams": {"r": {}, "s": {}},
    "queries": {
        "j": {
            "operators": [
                {"name": "join", "cost": 1, "inputs": ["r", "s"]},
                {"name": "out", "cost": 1, "selectivity": 0.5},
            ]
        }
    },
}


def order(found: dsms.Explanation) -> list[tuple[str, float | None]]:
    return [("+".join(segment.stations), segment.priority) for segment in found.segments]


@pytest.mark.parametrize("policy", ["chain", "greedy", "partition-memory"])
def test_chain_example_slopes(policy):
    """Babcock et al., example 1: 0.8 of a tuple goes in 1, the rest, 0.2, in 0.2·5 = 1."""
    assert order(explain(K1, policy)) == [("o1", pytest.approx(0.8)), ("o2", pytest.approx(0.2))]


def test_chain_says_where_the_envelope_turns():
    first, last = explain(K1, "chain").segments
    assert first.why == "1 − 0.2 bytes in 1 of time; the envelope turns at 1, behind o1"
    assert last.why == "0.2 − 0 bytes in 1 of time; the envelope ends at 2, behind o2"
    assert first.inputs == pytest.approx({"selectivity": 0.2, "cost": 1, "slope": 0.8})


def test_a_path_whose_second_operator_is_the_steep_one_is_one_segment():
    """decode frees nothing in 1, known 0.9 in 1: together 0.9 in 2; then 0.1 in 0.1·5 = 0.5, slope 0.2."""
    plan = {
        "streams": {"s": {}},
        "queries": {
            "q": {
                "from": "s",
                "operators": [
                    {"name": "decode", "cost": 1},
                    {"name": "known", "cost": 1, "selectivity": 0.1},
                    {"name": "inspect", "cost": 5},
                ],
            }
        },
    }
    found = explain(plan, "chain")
    assert order(found) == [("decode+known", pytest.approx(0.45)), ("inspect", pytest.approx(0.2))]
    (chart,) = found.charts
    assert chart.path == ["decode", "known", "inspect"]
    assert chart.points == [(0, 1), (1, 1), (2, pytest.approx(0.1)), (pytest.approx(2.5), 0)]
    assert chart.envelope == [0, 2, 3]
    assert chart.chains == [["decode", "known"], ["inspect"]]
    assert chart.slopes == pytest.approx([0.45, 0.2])
    assert chart.deltas == pytest.approx([0.9, 0.1])  # above the envelope just before known, and inspect, are done


def test_greedy_is_made_of_bytes_freed_and_cost():
    """Of the stream's tuples, which two read, each frees half; b and c free all of theirs, as results leave."""
    found = explain(two_queries(), "greedy")
    assert order(found) == [("b", 0.5), ("c", 0.125), ("a", 0.0)]
    assert [s.inputs for s in found.segments] == [
        {"freed": 1, "cost": 2},
        {"freed": 0.5, "cost": 4},
        {"freed": 0, "cost": 1},
    ]
    assert found.segments[0].why == "each frees 1 bytes, takes 2"


def test_a_rate_is_made_of_outputs_and_cost_only():
    found = explain(two_queries(), "rb-mcq")
    assert order(found) == [("c", 0.25), ("a+b", 0.125)]
    assert found.segments[1].inputs == {"selectivity": 0.25, "cost": 2}


@pytest.mark.parametrize("backlog", ["q1=3,q2=10", {"q1": 3, "q2": 10}, {"a": 3, "q2.c": 10}])
def test_freshness_for_a_given_backlog(backlog):
    """q1: 1·(1 − 0.75³)/(3·2); q2: 0.5·1/(10·4)."""
    found = explain(two_queries(), "fas-mcq", backlog)
    assert order(found) == [("a+b", pytest.approx(0.578125 / 6)), ("c", pytest.approx(0.0125))]
    assert found.segments[0].inputs == {"pending": 3, "selectivity": 0.25, "cost": 2, "weight": 1}
    assert found.parameters == {"ties": "oldest", "beta": 1}


def test_freshness_without_a_backlog_is_for_one_tuple_each():
    """q1: 0.25/2; q2: 0.5·1/4, a tie that goes to plan order, as both are at the same depth."""
    assert order(explain(two_queries(), "fas-mcq")) == [("a+b", 0.125), ("c", 0.125)]


def test_of_a_backlog_what_is_not_named_has_no_work():
    found = explain(two_queries(), "mtiq", {"q1": 3})
    assert order(found) == [("a", 3), ("b", None), ("c", None)]
    assert found.segments[1].why == "no work"


def test_a_backlog_of_fractions_needs_a_fractional_plan():
    assert order(explain(two_queries(tuples="fractional"), "mtiq", {"a": 0.5, "b": 0.75}))[:2] == [
        ("b", 0.75),
        ("a", 0.5),
    ]


def test_the_backlog_of_a_join_is_that_of_all_its_inputs():
    assert order(explain(JOIN, "mtiq", {"j": 3})) == [("join", 3), ("out", None)]
    assert order(explain(JOIN, "mtiq", {"join": 3, "out": 5})) == [("out", 5), ("join", 3)]


def test_equals_stand_in_the_order_in_which_they_would_run():
    assert order(explain(PLANS / "fork.toml", "fifo")) == [("deep", 0), ("left", 0), ("right", 0), ("root", 0)]
    assert explain(K1, "fifo").segments[0].why == "all alike: the oldest tuple goes first"
    assert [name for name, _ in order(explain(two_queries(), "fas-mcq:ties=query"))] == ["a+b", "c"]


def test_a_ring_has_places():
    found = explain(two_queries(), "rr")
    assert order(found) == [("a", 0), ("b", -1), ("c", -2)]
    assert [segment.why for segment in found.segments] == [f"place {n} of 3 in the ring" for n in (1, 2, 3)]


def test_qos_chain_says_what_a_waiting_result_counts_as():
    """I_b = (1 + 2·0.5)/2; a and c free the tuple they share together: (1 + 2·0.25 + 2·1)/(1 + 0.5·2 + 4)."""
    found = explain(two_queries(), "qos-chain:gamma=2")
    assert order(found) == [("b", pytest.approx(1)), ("a", pytest.approx(3.5 / 6)), ("c", pytest.approx(3.5 / 6))]
    assert found.parameters == {"gamma": 2}


def test_a_policy_that_knows_the_future_sees_tuples_as_the_seed_draws_them():
    """Certain outcomes: q1's tuple passes neither or both; c gives one result in 4."""
    plan = two_queries()
    for operator in plan["queries"]["q1"]["operators"]:
        operator["selectivity"] = 1
    found = explain(plan, "mss", {"q1": 2, "q2": 1})
    assert order(found) == [("a+b", pytest.approx(1 / 3)), ("c", 0.25)]
    assert found.segments[0].inputs == {"pending": 2, "cost": 3, "results": 1, "freed": 0.5}
    assert order(explain(plan, "mss-memory")) == [("c", 0.125), ("a", -0.5), ("b", None)]
    assert order(explain(plan, "tuple-greedy")) == [("a+b", -3), ("c", -4)]
    with pytest.raises(PolicyError, match=r"'mss-memory' looks at the outcomes.*at 'b'.*--why"):
        explain(plan, "mss-memory", {"b": 1})
    with pytest.raises(PolicyError, match="individual"):
        explain(K1, "mss")


@pytest.mark.parametrize("plan", ALL)
@pytest.mark.parametrize("policy", dsms.policies())
def test_every_policy_explains_every_plan(plan, policy):
    """Every operator is in a segment, priorities fall, and JSON can represent all of them."""
    try:
        found = explain(PLANS / plan, policy)
    except PolicyError:
        assert policy in ("mss", "mss-memory", "tuple-greedy")
        return
    printed = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert printed.keys() == {"policy", "turn", "segments"}
    assert printed["policy"] == policy
    known = [s["priority"] for s in printed["segments"] if s["priority"] is not None]
    assert known == sorted(known, reverse=True)
    assert known
    assert {name for s in printed["segments"] for name in s["stations"]} == {
        station.name for station in dsms.read_plan(PLANS / plan).stations
    }


def test_a_policy_may_give_its_own_reasons():
    @dataclass
    class AlphabeticalPolicy(Policy):
        """By name: the last in the alphabet first."""

        name: ClassVar[str] = "named"
        dynamic: ClassVar[bool] = False

        def segments(self, plan: dsms.Plan) -> list[Segment]:
            return plan.by_operator()

        def priority(self, segment: Segment) -> float:
            return float(ord(segment.names[0][-1]))

        def reasons(self, segment: Segment) -> dict[str, float | str]:
            return {"letter": segment.names[0][-1], "code": self.priority(segment)}

    found = explain(K1, AlphabeticalPolicy())
    assert order(found) == [("o2", 50), ("o1", 49)]
    assert found.segments[0].why == "letter 2, code 50"
    assert found.segments[0].inputs == {"letter": "2", "code": 50}


def test_explaining_leaves_the_policy_given_as_it_was():
    policy = dsms.policy_named("rr")
    engine = dsms.Engine(plan_from(two_queries()), policy)
    engine.push("s", 5)
    engine.step()
    before = policy.priority(engine.ledger.queues[0].segments[0])
    explain(K1, policy)
    assert policy.priority(engine.ledger.queues[0].segments[0]) == before


def test_an_endless_stream_can_be_explained():
    plan = two_queries()
    plan["streams"]["s"] = {"arrivals": {"kind": "poisson", "rate": 1.0}}
    assert order(explain(plan, "rb-mcq"))[0] == ("c", 0.25)


@pytest.mark.parametrize(
    ("backlog", "message"),
    [
        ("q3=1", r"no query or operator 'q3'; there are \['a', 'b', 'c', 'q1', 'q2'\]"),
        ("q1=-1", "backlog of 'q1': -1.0 is not a whole number from 0"),
        ("q1=1.5", "backlog of 'q1': 1.5 is not a whole number from 0"),
        ("q1=inf", "backlog of 'q1': inf"),
        ("q1=nan", "backlog of 'q1': nan"),
        ("q1=many", "'q1=many'.*expected NAME=COUNT"),
        ("q1", "expected NAME=COUNT, as in 'q1=3,q2=10'"),
        ("", "NAME=COUNT"),
        ("q1=1,q1=2", "'q1=2'.*named once"),
        ("q1=1,a=2", "both 'q1' and 'a' set the number of tuples at 'a'"),
    ],
)
def test_a_wrong_backlog_is_refused(backlog, message):
    with pytest.raises(DsmsError, match=message):
        explain(two_queries(), "mtiq", backlog)
    with pytest.raises(DsmsError, match=message):  # also where it would change nothing
        explain(two_queries(), "fifo", backlog)


def test_a_fractional_plan_refuses_less_than_nothing():
    with pytest.raises(DsmsError, match=r"backlog of 'o1': -0.5 is not a number from 0"):
        explain(K1, "mtiq", {"o1": -0.5})


def test_a_plan_that_is_not_there_is_refused():
    with pytest.raises(PlanError, match=r"nowhere\.toml"):
        explain("nowhere.toml", "chain")


class TestExplainCommand:
    def test_json(self, capsys):
        assert main(["explain", str(K1), "--policy", "chain", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed.keys() == {"policy", "turn", "segments"}
        assert [(s["stations"], s["priority"]) for s in printed["segments"]] == [
            (["o1"], pytest.approx(0.8)),
            (["o2"], pytest.approx(0.2)),
        ]

    def test_text_has_the_segments_and_the_chart_of_every_path(self, capsys):
        assert main(["explain", str(K1), "--policy", "chain"]) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert "Chain: runs the operators on the steepest part of their path's progress chart first." in lines
        assert any(line.startswith("1 o1 0.8 0.2 1 1 − 0.2 bytes in 1") for line in lines)
        assert "q: o1 → o2" in lines
        assert "o1 1 0.2 o1 0.8 0.8" in lines  # after, time, bytes left, envelope, slope, delta
        assert "o2 2 0 o2 0.2 0.2" in lines

    def test_text_says_what_backlog_it_is_for(self, capsys):
        plan = str(PLANS / "queries.toml")
        assert main(["explain", plan, "--policy", "mtiq", "--backlog", "alarms=3,copy=10"]) == 0
        out = capsys.readouterr().out
        assert "Priorities depend on the backlog: here alarms=3,copy=10" in out
        assert out.index("copy  ") < out.index("decode  ")
        assert main(["explain", plan, "--policy", "chain", "--backlog", "alarms=3"]) == 0
        assert "do not depend on the backlog" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--policy", "chian"], "no policy 'chian' (did you mean 'chain'?)"),
            (["--policy", "fas-mcq:beta=2"], "beta is 2.0"),
            (["--policy", "mtiq", "--backlog", "o3=1"], "no query or operator 'o3'"),
            (["--policy", "chain", "--plot", "c.pdf"], "picture 'c.pdf'"),
            (["--policy", "chain", "--plot", "c"], "['.png', '.svg']"),
            (["--policy", "chain", "--plot", "/no/such/c.png"], "there is no folder '/no/such'"),
        ],
    )
    def test_a_wrong_call_is_told_why(self, arguments, message, capsys):
        assert main(["explain", str(K1), *arguments]) == 2
        out, err = capsys.readouterr()
        assert message in err
        assert not out

    @pytest.mark.parametrize(("name", "start"), [("c.png", b"\x89PNG"), ("c.SVG", b"<?xml")])
    def test_a_picture(self, name, start, tmp_path, capsys):
        file = tmp_path / name
        assert main(["explain", str(PLANS / "bursts.toml"), "--policy", "chain", "--plot", str(file)]) == 0
        assert file.read_bytes().startswith(start)
        if name.endswith("SVG"):
            text = file.read_text(encoding="utf-8")
            for shown in ("scan: decode → known → inspect", "inspect", "lower envelope", "time spent", "22,000"):
                assert shown in text

    def test_without_matplotlib_the_error_names_the_extra(self, monkeypatch, capsys):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        assert main(["explain", str(K1), "--policy", "chain", "--plot", "c.png"]) == 2
        assert "install dsms[plot]" in capsys.readouterr().err
