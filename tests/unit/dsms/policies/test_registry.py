"""Policies by name: how a text is read, what a wrong one is told, and policies that other packages bring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsms import Policy, PolicyError, policies, policy_named, simulate
from dsms.engine.policy import limits_turns
from dsms.policies import BUILT_IN_POLICIES
from dsms.policies.fifo import Fifo
from dsms.policies.mtiq import MostTuplesInQueue
from dsms.policies.registry import parameters
from dsms.policies.round_robin import RoundRobin, RoundRobinByQuery

PLAN = """
[streams.s]
arrivals = { kind = "list", at = [0, 0, 0] }

[queries.q]
from = "s"
operators = [{ name = "o1", cost = 1.0 }, { name = "o2", cost = 2.0 }]
"""

# What other people may write: a policy with parameters of every kind, and one without any.
MODULE = """
from dataclasses import dataclass
from typing import ClassVar

from dsms import Policy, Share


@dataclass
class Downstream(Policy):
    name: ClassVar[str] = "downstream"
    upward: bool = False
    label: str = "none"
    most: int | float = 1

    def segments(self, plan):
        return plan.by_operator()

    def priority(self, segment):
        depth = segment.stations[-1].depth
        return -depth if self.upward else depth

    def share(self, segment):
        return Share(self.most, float("inf"))


class Fixed(Policy):
    name = "fixed"

    def segments(self, plan):
        return plan.by_operator()

    def priority(self, segment):
        return 0.0
"""


def package(folder: Path, entry_points: str, module: str = MODULE) -> Path:
    """A folder that looks as if another author's package with these entry points is installed there."""
    info = folder / "other_policies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-policies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dsms.policies]\n{entry_points}\n")
    (folder / "other_policies.py").write_text(module)
    return folder


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another author's policies are installed."""
    points = "downstream = other_policies:Downstream\nfixed = other_policies:Fixed\nfifo = other_policies:Downstream"
    monkeypatch.delitem(sys.modules, "other_policies", raising=False)
    monkeypatch.syspath_prepend(package(tmp_path, points))


def refusal(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        policy_named(text)
    return str(caught.value)


def sim(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`dsms sim` in a process that finds the packages of this folder."""
    (folder / "plan.toml").write_text(PLAN)
    return subprocess.run(
        [Path(sys.executable).parent / "dsms", "sim", "plan.toml", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_name_alone_is_the_policy_with_its_defaults() -> None:
    assert policy_named("rr") == RoundRobin()
    assert policy_named("rr-query") == RoundRobinByQuery()


def test_every_policy_of_ours_is_known_by_its_name() -> None:
    known = policies()
    assert [known[name].name for name in BUILT_IN_POLICIES] == list(BUILT_IN_POLICIES)
    assert [type(policy_named(name)) for name in BUILT_IN_POLICIES] == [known[name] for name in BUILT_IN_POLICIES]


def test_parameters_are_read_by_their_types() -> None:
    assert policy_named("rr:tuples=30") == RoundRobin(tuples=30)
    assert policy_named("rr:time=0.01") == RoundRobin(time=0.01)
    assert policy_named("mtiq:ratio=0.3,threshold=50") == MostTuplesInQueue(ratio=0.3, threshold=50.0)


def test_every_operator_level_policy_takes_raindrops_workload_rule() -> None:
    for name in ("fifo", "greedy", "mtiq", "rr"):
        policy = policy_named(f"{name}:ratio=0.5,threshold=10")
        assert limits_turns(policy)


def test_parameters_of_a_policy_are_told_with_their_types() -> None:
    assert parameters(RoundRobinByQuery) == {"tuples": int | None, "time": float | None}


def test_an_unknown_policy_is_told_from_those_that_exist() -> None:
    known = sorted(policies())
    assert refusal("fiffo") == f"no policy 'fiffo' (did you mean 'fifo'?); there are {known}"
    assert refusal("xyzzy:tuples=1") == f"no policy 'xyzzy'; there are {known}"
    assert refusal("") == f"no policy ''; there are {known}"


def test_a_policy_is_named_in_small_letters() -> None:
    assert refusal("FIFO").startswith("no policy 'FIFO'")


def test_an_unknown_parameter_is_told_from_those_that_exist() -> None:
    there = "there are ['ratio', 'threshold', 'time', 'tuples']"
    assert refusal("rr:tupels=3") == f"policy 'rr' has no parameter 'tupels' (did you mean 'tuples'?); {there}"
    assert refusal("rr:30") == f"policy 'rr' has no parameter '30'; {there}"


def test_what_a_policy_keeps_for_itself_is_no_parameter() -> None:
    assert refusal("rr:_at=3").startswith("policy 'rr' has no parameter '_at'")
    assert refusal("rr:name=x").startswith("policy 'rr' has no parameter 'name'")


def test_a_value_of_the_wrong_kind_is_refused() -> None:
    assert refusal("rr:tuples=many") == "policy 'rr': tuples is 'many': expected a whole number"
    assert refusal("rr:tuples=1.5") == "policy 'rr': tuples is '1.5': expected a whole number"
    assert refusal("rr:tuples=") == "policy 'rr': tuples is '': expected a whole number"
    assert refusal("rr:time=soon") == "policy 'rr': time is 'soon': expected a number"


def test_a_value_out_of_range_is_refused() -> None:
    assert refusal("rr:tuples=0") == "rr: tuples is 0: expected a positive number"
    assert refusal("rr-query:tuples=-3") == "rr-query: tuples is -3: expected a positive number"
    for value in ("0.0", "-1.0", "nan", "inf"):
        assert refusal(f"rr:time={value}") == f"rr: time is {value}: expected a positive number"
    for value in ("0.0", "1.5", "nan", "-0.5"):
        assert refusal(f"mtiq:ratio={value}") == f"mtiq: ratio is {value}: expected a number above 0 and up to 1"
    for value in ("-1.0", "nan"):
        assert refusal(f"fifo:threshold={value}") == f"fifo: threshold is {value}: expected a number of at least 0"


def test_a_parameter_given_twice_is_refused() -> None:
    message = "policy 'rr': 'tuples=4': give each parameter once, as tuples=VALUE"
    assert refusal("rr:tuples=3,tuples=4") == message


def test_a_parameter_without_a_value_is_refused() -> None:
    assert refusal("rr:tuples") == "policy 'rr': 'tuples': give each parameter once, as tuples=VALUE"


def test_a_colon_with_nothing_after_it_is_refused() -> None:
    message = "policy 'rr:': expected parameters after the colon, as in 'rr:tuples=30'"
    assert refusal("rr:") == message


@pytest.mark.usefixtures("others")
def test_policies_of_another_package_are_known_by_their_entry_points() -> None:
    assert {"downstream", "fixed"} <= policies().keys()
    assert policy_named("downstream").name == "downstream"
    assert "'downstream'" in refusal("nosuch")


@pytest.mark.usefixtures("others")
def test_another_package_does_not_replace_a_policy_of_ours() -> None:
    assert policies()["fifo"] is Fifo


@pytest.mark.usefixtures("others")
def test_parameters_may_be_texts_truths_and_alternatives() -> None:
    policy = policy_named("downstream:upward=TRUE,label=x=y,most=2.5")
    assert vars(policy) == {"upward": True, "label": "x=y", "most": 2.5}
    assert vars(policy_named("downstream:upward=false,most=3"))["most"] == 3
    assert refusal("downstream:upward=1") == "policy 'downstream': upward is '1': expected true or false"
    assert refusal("downstream:most=x") == "policy 'downstream': most is 'x': expected a whole number or a number"


@pytest.mark.usefixtures("others")
def test_a_policy_need_not_have_parameters() -> None:
    assert parameters(policies()["fixed"]) == {}
    assert refusal("fixed:a=1") == "policy 'fixed' has no parameter 'a'; there are none"


@pytest.mark.usefixtures("others")
def test_a_policy_may_be_given_as_an_object(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    policy: Policy = policy_named("downstream")
    by_object, by_name = (simulate(tmp_path / "plan.toml", given) for given in (policy, "downstream"))
    assert by_object == by_name


def test_a_third_partys_policy_runs_from_the_command_line(tmp_path: Path) -> None:
    package(tmp_path, "downstream = other_policies:Downstream")
    done = sim(tmp_path, "--policy", "downstream", "--policy", "downstream:upward=true", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    runs = json.loads(done.stdout)["runs"]
    assert [run["policy"] for run in runs] == ["downstream", "downstream:upward=true"]
    # Through to the end one after the other (3, 6, 9), or all of them through the first operator first (5, 7, 9).
    assert [run["latency"]["mean"] for run in runs] == [6, 7]


def test_a_broken_policy_of_another_package_does_not_stop_ours(tmp_path: Path) -> None:
    package(tmp_path, "broken = other_policies:Missing")
    done = sim(tmp_path, "--policy", "fifo")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_a_broken_policy_of_another_package_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    package(tmp_path, "broken = other_policies:Missing")
    done = sim(tmp_path, "--policy", "broken")
    assert "Traceback" not in done.stderr
    assert "'broken'" in done.stderr
    assert done.returncode == 2
