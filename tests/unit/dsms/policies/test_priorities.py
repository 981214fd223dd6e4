"""Simple policies rank by their rule; `dsms.explain` gives the order for a backlog, without a run."""

from __future__ import annotations

from typing import Any

import pytest

import dsms
from dsms import PolicyError, policy_named

# Of its tuples `cheap` frees all memory in 1 unit of time, `dear` in 4.
PLAN: dict[str, Any] = {
    "streams": {"s": {}, "t": {}},
    "queries": {
        "a": {"from": "s", "operators": [{"name": "dear", "cost": 4.0}]},
        "b": {"from": "t", "operators": [{"name": "cheap", "cost": 1.0}]},
    },
}


@pytest.mark.parametrize(("policy", "expected"), [("greedy", ["cheap", "dear"]), ("mtiq", ["dear", "cheap"])])
def test_greedy_ranks_by_freed_memory_and_mtiq_by_the_queue(policy: str, expected: list[str]) -> None:
    found = dsms.explain(dsms.plan_from(PLAN), policy, {"dear": 3, "cheap": 1})
    assert [name for segment in found.segments for name in segment.stations] == expected


def test_a_wrong_parameter_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"ratio is 2\.0: expected a number above 0 and up to 1"):
        policy_named("mtiq:ratio=2")
