"""Policies that know every tuple's fate: refused where there is none to know, and the run goes on as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.strategies import YARDSTICKS, make_path_plan, policy

import dsms
from dsms.clock import Clock, PacedClock, WallClock
from dsms.engine.engine import Engine
from dsms.engine.policy import Policy
from dsms.engine.runners import BatchRunner
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment, Share

ROWS = {"cost": 1e-3, "function": lambda batch: np.ones(len(batch), dtype=bool)}
KNOWN = {"cost": 1e-3, "selectivity": 0.5}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Any, type[Clock] | None]] = {
    "real rows": (ROWS, {}, None, None),
    "fractional tuples": (KNOWN, {"tuples": "fractional"}, None, None),
    "tuples as rows": (KNOWN, {}, BatchRunner, None),
    "a paced clock": (KNOWN, {}, None, PacedClock),
    "a wall clock": (KNOWN, {}, None, WallClock),
}
MESSAGE = "policy '{}' is an oracle that reads the costs and outcomes of queued tuples: it needs individual abstract"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("text", YARDSTICKS)
def test_a_yardstick_is_refused_and_the_run_goes_on_under_the_policy_it_had(text: str, case: str) -> None:
    operator, run, runner, clock = CASES[case]
    plan = make_path_plan(operator, at=[0, 0, 0], **run)
    engine = Engine(plan, policy("fifo"), runner=runner, clock=clock() if clock else None)
    before = engine.control.policy
    with pytest.raises(dsms.PolicyError, match=MESSAGE.format(text.partition(":")[0])):
        engine.swap(policy(text))
    assert engine.control.policy is engine.control.chosen is before
    engine.run()
    assert engine.admitted == 3
    assert engine.ledger.held == pytest.approx(0)
    with pytest.raises(dsms.PolicyError, match=MESSAGE.format(text.partition(":")[0])):
        Engine(plan, policy(text), runner=runner, clock=clock() if clock else None)


@pytest.mark.parametrize("text", YARDSTICKS)
def test_a_yardstick_may_take_over_in_the_middle(text: str) -> None:
    plan = make_path_plan(KNOWN, {"cost": 1.0}, at=[0] * 6, seed=3)
    engine = Engine(plan, policy("rr:tuples=2"))
    for _ in range(3):
        engine.step()
    engine.swap(policy(text))
    engine.run()
    assert engine.ledger.held == 0


class Nameless(Policy):
    """One whose priorities are no numbers, and which would take all there is in a turn."""

    name = "nameless"
    dynamic = False

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_operator()

    def priority(self, segment: Segment) -> float:
        return float("nan")

    def share(self, segment: Segment) -> Share:
        return Share(1000, 1000.0)


def test_of_a_policy_that_is_refused_nothing_stays() -> None:
    engine = Engine(make_path_plan({"cost": 1.0}, at=[0, 0, 0]), policy("fifo"))
    with pytest.raises(dsms.PolicyError, match=r"gives Segment\(a\) no priority"):
        engine.swap(Nameless())
    engine.step()
    assert engine.clock.now() == 1  # one tuple a turn, as before


def test_a_yardstick_is_no_candidate() -> None:
    with pytest.raises(dsms.PolicyError, match="'mss' is an oracle"):
        policy("adaptive:candidates=chain+mss")
