"""`dsms sim --why T`: one decision, compared with calculations by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.paths import PLANS

import dsms
from dsms import DsmsError, PolicyError, why
from dsms.cli import main

K1 = PLANS / "chain-example.toml"


def plan(at: list[float] | None = None, **run: Any) -> dict[str, Any]:
    """p: cost 2, passes all; q: cost 4, passes all; both read every tuple."""
    return {
        "streams": {"s": {"arrivals": {"kind": "list", "at": at or [1, 2]}}},
        "queries": {
            "p": {"from": "s", "operators": [{"name": "a", "cost": 2}]},
            "q": {"from": "s", "operators": [{"name": "b", "cost": 4}]},
        },
        "run": run,
    }


def names(found: dsms.Decision) -> list[tuple[str, float | None, bool]]:
    return [("+".join(c.stations), c.priority, c.chosen) for c in found.candidates]


def test_the_highest_priority_is_chosen():
    """Chain's example: at 2.5 the turn of o1 on the third tuple, begun at 2, is in force; two fifths wait behind it."""
    found = why(K1, "chain", 2.5)
    assert (found.at, found.done, found.number) == (2, 3, 3)
    assert found.chosen == ["o1"]
    assert found.reason == "the highest priority"
    assert names(found) == [("o1", pytest.approx(0.8), True), ("o2", pytest.approx(0.2), False)]
    assert [c.pending for c in found.candidates] == pytest.approx([1, 0.4])
    assert [c.oldest for c in found.candidates] == [2, 0]
    assert found.candidates[1].inputs == pytest.approx({"selectivity": 0, "cost": 5, "slope": 0.2})
    assert found.idle == []


def test_who_has_no_work_is_named():
    found = why(K1, "chain", 0)
    assert (found.chosen, found.idle) == (["o1"], [["o2"]])
    assert found.reason == "no other segment has work"


def test_a_tie_goes_to_the_oldest_tuple():
    """At 3 a has done the first tuple, so b's oldest is the first and a's the second."""
    found = why(plan(), "fifo", 3)
    assert found.chosen == ["b"]
    assert found.reason == "2 have the highest priority: it has the oldest tuple (number 0)"
    assert [c.oldest for c in found.candidates] == [0, 1]


def test_a_tie_of_one_tuple_goes_by_place():
    found = why(plan(), "fifo", 1)
    assert found.chosen == ["a"]
    assert found.reason.endswith("it is further downstream, or comes first in the plan")


def test_a_tie_may_go_to_the_first_in_the_policys_list():
    found = why(plan(), "rb-mcq:ties=query", 1)
    assert found.reason == "the highest priority"  # 1/2 against 1/4
    alike = plan()
    alike["queries"]["q"]["operators"][0]["cost"] = 2
    assert why(alike, "rb-mcq:ties=query", 1).reason == "2 have the highest priority: the first in the policy's list"


def test_freshness_for_the_backlog_of_that_moment():
    """At 3 a has done the first tuple and has one, 1/(1·2); b still has both, 1/(2·4)."""
    found = why(plan(), "fas-mcq", 3)
    assert names(found) == [("a", 0.5, True), ("b", 0.125, False)]
    assert found.candidates[1].inputs == {"pending": 2, "selectivity": 1, "cost": 4, "weight": 1}


def test_one_that_is_overdue_runs_whatever_its_priority():
    """a would run at 1, 3, 5, 7; b has waited since 1, which at 5 is more than 3."""
    found = why(plan([1, 1, 1, 1], max_wait=3), "fas-mcq:beta=0", 5)
    assert found.chosen == ["b"]
    assert found.reason == "overdue: it has waited for more than max_wait = 3, whatever its priority"
    assert names(found) == [("a", 0.5, False), ("b", 0.25, True)]


def test_before_the_first_decision_there_is_none():
    found = why(plan(), "fifo", 0.5)
    assert (found.at, found.chosen, found.candidates, found.number) == (None, None, [], 0)
    assert found.reason == "none had been made by then: the first is at 1"


def test_a_run_in_which_nothing_arrives_has_none():
    assert why(plan(), "fifo", 5, until=0.5).reason == "none was made in this run"


def test_after_the_last_decision_it_is_still_the_last():
    found = why(plan(), "fifo", 1000)
    assert (found.at, found.done, found.number) == (9, 13, 4)
    assert found.reason == "no other segment has work; it was the last: nothing was left to do from 13 on"


def test_between_two_turns_nothing_waited():
    found = why(plan([1, 50]), "fifo", 20)
    assert (found.at, found.done) == (3, 7)
    assert found.reason == "no other segment has work; its turn was over at 7, and nothing was waiting until 50"


def test_a_decision_that_the_cut_fell_into():
    found = why(plan(), "fifo", 9.5, until=10, cut=True)
    assert (found.at, found.chosen, found.reason) == (9, None, "the run was cut in its turn")


def test_one_that_waits_for_an_older_tuple_is_named():
    """At 6 slow and both have done the first; what waits at both's other input is younger than slow's second."""
    join = {
        "streams": {"r": {"arrivals": {"kind": "list", "at": [0, 0]}}, "s": {"arrivals": {"kind": "list", "at": [1]}}},
        "queries": {
            "j": {
                "operators": [
                    {"name": "slow", "cost": 5, "inputs": ["r"]},
                    {"name": "both", "cost": 1, "inputs": ["slow", "s"]},
                ]
            },
            "k": {"from": "s", "operators": [{"name": "other", "cost": 1}]},
        },
    }
    found = why(join, "fifo", 6)
    assert (found.chosen, found.blocked, found.idle) == (["slow"], [["both"]], [])
    assert [c.stations for c in found.candidates] == [["slow"], ["other"]]


@pytest.mark.parametrize("policy", dsms.policies())
@pytest.mark.parametrize(("name", "until"), [("bursts", 1.5), ("join", 40), ("queries", 1.5)])
def test_every_policy_says_why_it_did_what_the_trace_says(name, until, policy, tmp_path):
    file = tmp_path / "turns"
    dsms.simulate(PLANS / f"{name}.toml", policy, until=until, trace=file)
    turns = [json.loads(line) for line in file.read_text().splitlines()]
    for turn in (turns[0], turns[len(turns) // 2], turns[-1]):
        found = why(PLANS / f"{name}.toml", policy, turn["t"], until=until)
        assert found.at == turn["t"]
        assert set(turn["stations"]) <= set(found.chosen)
        assert turns[found.number - 1]["t"] == turn["t"]
        assert [c.chosen for c in found.candidates].count(True) == 1
        json.dumps(found.to_json(), allow_nan=False)


def test_a_wrong_instant_is_refused():
    for wrong in (-1, float("nan"), "now"):
        with pytest.raises(DsmsError, match=r"why at .*the instant is not a number from 0"):
            why(plan(), "fifo", wrong)
    with pytest.raises(PolicyError, match="no policy 'fofi'"):
        why(plan(), "fofi", 1)


def test_the_command_prints_it_below_the_table(capsys):
    assert main(["sim", str(K1), "--policy", "chain", "--why", "2.5"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "The decision of chain in force at 2.5:" in lines
    assert "number 3 of the run, made at 2, its turn until 3." in lines
    assert "Chosen: o1: the highest priority." in lines
    assert any(line.startswith("► o1 0.8 1 #2 0.2 1 1 − 0.2") for line in lines)
    assert any(line.startswith("o2 0.2 0.4 #0 0 5 0.2 − 0") for line in lines)


def test_the_command_says_it_in_json(capsys):
    assert main(["sim", str(K1), "--policy", "chain", "--why", "0", "--seed", "3", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == {"plan", "seed", "runs", "why"}
    assert printed["why"]["chosen"] == ["o1"]
    assert printed["why"]["idle"] == [["o2"]]


def test_the_command_before_the_first_decision(capsys):
    assert main(["sim", str(PLANS / "path.toml"), "--until", "50", "--why", "0"]) == 0
    assert "none had been made by then: the first is at" in capsys.readouterr().out


def test_the_command_wants_one_policy(capsys):
    assert main(["sim", str(K1), "--policy", "chain", "--policy", "fifo", "--why", "1"]) == 2
    assert "give one --policy, not 2" in capsys.readouterr().err
