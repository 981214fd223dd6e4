"""The Ray runtime under the virtual clock takes the turns that `dsms sim` takes: the same bytes in the trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.strategies import YARDSTICKS

import dsms
from dsms.cli import main
from dsms.config.live import LiveConfig
from dsms.query.plan_file import read_table

pytestmark = pytest.mark.ray

# The time up to which tuples arrive: some hundred turns each.
UNTIL = {"path": 150.0, "chain-example": 9.0, "fork": 24.0, "join": 40.0, "queries": 0.4}
POLICIES = [name for name in dsms.policies() if name not in YARDSTICKS]  # an oracle knows the future of each tuple


PARAMETERS = ["rr:tuples=3", "rr-query:time=2.0", "mtiq:ratio=0.3,threshold=2", "adaptive:warmup=1,explore=1,every=2"]
PAIRS = [*((plan, policy) for plan in UNTIL for policy in POLICIES), *(("join", policy) for policy in PARAMETERS)]


@pytest.mark.parametrize(("name", "policy"), PAIRS)
def test_a_scheduler_and_hosts_take_the_turns_that_dsms_sim_takes(crew, plans: Path, tmp_path, name, policy):
    plan, until = plans / f"{name}.toml", UNTIL[name]
    inline, actors = tmp_path / "inline.jsonl", tmp_path / "ray.jsonl"
    assert main(["sim", str(plan), "--policy", policy, "--until", str(until), "--trace", str(inline)]) == 0
    table = read_table(plan)
    table = {**table, "run": {**table.get("run", {}), "until": until}}
    setup = LiveConfig(policy=policy, clock="virtual")
    crew.begin("virtual", table, str(tmp_path), plan.name, None, setup, str(actors))
    crew.ask("settle")
    stations = crew.ask("status").stations
    crew.end()
    assert len({station.actor for station in stations}) == min(len(stations), len(crew.hosts)) > 1
    assert actors.read_bytes() == inline.read_bytes()
    assert inline.read_bytes().count(b"\n") > 6
