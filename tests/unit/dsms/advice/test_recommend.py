"""`dsms recommend`: scores computed by hand, the reasons for the best policy, and errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from support.paths import PLANS, ROOT

import dsms
from dsms import DsmsError, PolicyError, recommend
from dsms.cli import main
from dsms.cli.arguments import parse_policy_list
from dsms.config.qos import Qos

K1 = str(PLANS / "chain-example.toml")
YARDSTICKS = {"mss", "mss-memory", "tuple-greedy"}


def two(at: list[float] | None = None, **run: Any) -> dict[str, Any]:
    """Two tuples at 0; short takes 1, long 4; every tuple is a result of both."""
    return {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 0] if at is None else at}}},
        "queries": {
            "short": {"from": "s", "operators": [{"name": "a", "cost": 1}]},
            "long": {"from": "s", "operators": [{"name": "b", "cost": 4}]},
        },
        "run": run,
    }


def test_scores_by_hand():
    """rb-mcq: a a b b, results at 1, 2, 6, 10, mean delay 4.75; fifo: a b a b, at 1, 5, 6, 10: 5.5.

    A tuple stays until both have read it: rb-mcq holds two until 6, one until 10: 16/10; fifo two until 5, one until
    10: 15/10. The rate is 4/10 for both.
    """
    found = recommend(two(), "memory=0.5,delay=0.25,rate=0.25", policies=["fifo", "rb-mcq"], seeds=2)
    scores = {trial.policy: trial.score.mean for trial in found.trials}
    assert scores == {
        "fifo": pytest.approx(0.5 + 0.25 * 5.5 / 4.75 + 0.25),
        "rb-mcq": pytest.approx(0.5 * 16 / 15 + 0.25 + 0.25),
    }
    assert found.policy == "rb-mcq"
    assert found.seeds == [1, 2]
    assert recommend(two(), {"memory": 1}, policies=["fifo", "rb-mcq"], seeds=1).policy == "fifo"


def test_what_is_said_for_the_best():
    found = recommend(two(), "memory=0.5,delay=0.5", policies=["fifo", "rb-mcq"], seeds=3)
    assert found.reasons == [
        "rb-mcq has the lowest J, 1.033 ± 0.000 over 3 seeds, for memory 0.5, delay 0.5; "
        "J = 1 would be the best of all in everything at once.",
        "What that costs: queued tuples 1.6, 6.7% above the 1.5 of fifo; delay 4.75, as good as any.",
        "The runner-up is fifo with 1.079 ± 0.000, 0.046 behind and worse in 3 of 3 seeds; "
        "that is more than the spread of that difference over the seeds, 0.",
    ]


def test_a_difference_within_the_spread_is_called_so():
    found = recommend(PLANS / "path.toml", "memory=0.2,delay=0.8", policies=["fifo", "mtiq"], seeds=4, until=120)
    first, second = found.trials
    ahead = [b - a for a, b in zip(first.scores, second.scores, strict=True)]
    mean = sum(ahead) / 4
    spread = (sum((x - mean) ** 2 for x in ahead) / 3) ** 0.5
    assert ("take either" in found.reasons[2]) == (mean <= spread)
    assert f"worse in {sum(x > 0 for x in ahead)} of 4 seeds" in found.reasons[2]


def test_those_that_did_exactly_as_well_are_named():
    found = recommend(two(), policies=["fifo", "rr", "mtiq"], seeds=1)
    assert "rr" in found.reasons[2]
    assert "did exactly as well" in found.reasons[2]


def test_one_seed_shows_no_spread():
    found = recommend(two(), "delay=1", policies=["fifo", "rb-mcq"], seeds=1)
    assert found.trials[0].score.deviation is None
    assert "one seed does not show whether that is chance" in found.reasons[2]


def test_freshness_counts_where_it_is_named():
    """Stale: long for 10 of 10 either way; short until 2 by rb-mcq, and by fifo until 6."""
    found = recommend(two(), "freshness=1", policies=["fifo", "rb-mcq"], seeds=1)
    assert {t.policy: t.score.mean for t in found.trials} == {"rb-mcq": 1, "fifo": pytest.approx(0.8 / 0.6)}


def test_policies_that_know_the_future_are_a_bound_and_never_recommended():
    found = recommend(two(), "delay=1", policies=["mss", "fifo"], seeds=1)
    assert [(trial.policy, trial.yardstick) for trial in found.trials] == [("fifo", False), ("mss", True)]
    assert found.policy == "fifo"
    assert found.trials[1].score.mean == pytest.approx(4.75 / 5.5)  # against the best that is no oracle
    assert "mss, which knows the future and cannot be had, has 0.864" in found.reasons[-1]


def test_all_policies_that_can_run_the_plan_are_tried():
    found = recommend(two(), seeds=1)
    assert {trial.policy for trial in found.trials} == set(dsms.policies())
    assert found.left_out == {}
    fractional = recommend(K1, seeds=1)
    assert set(fractional.left_out) == YARDSTICKS
    assert "individual" in fractional.left_out["mss"]


def test_where_no_result_leaves_only_memory_speaks():
    found = recommend(K1, seeds=2)
    assert found.policy in ("greedy", "chain", "partition-memory", "qos-chain")
    assert found.trials[0].score.mean == pytest.approx(1)
    assert "no delay to compare, so delay speaks for none" in found.reasons[1]
    json.dumps(found.to_json(), allow_nan=False)


def test_a_policy_that_takes_weights_is_told_them():
    found = recommend(two(), "memory=0.25,freshness=0.5,delay=0.25", policies=["qos-chain", "fifo"], seeds=1)
    assert {trial.policy for trial in found.trials} == {"qos-chain:memory=0.5,delay=0.5", "fifo"}
    assert {t.policy for t in recommend(two(), policies=["qos-chain"], seeds=1).trials} == {"qos-chain"}


def test_what_is_wanted_may_be_a_template_or_the_plans_own():
    assert recommend(two(), "memory-delay", policies=["fifo"], seeds=1).qos == {"memory": 0.5, "delay": 0.5}
    own = {**two(), "qos": {"memory": 0.25, "rate": 0.75}}
    assert recommend(own, policies=["fifo"], seeds=1).qos == {"memory": 0.25, "rate": 0.75}
    assert recommend(own, Qos.of("delay=1"), policies=["fifo"], seeds=1).qos == {"delay": 1}


def test_adaptive_is_told_what_is_wanted():
    found = recommend(two(), "memory=0.5,delay=0.5", policies=["adaptive"], seeds=1)
    assert found.policy == "adaptive:qos=memory=0.5+delay=0.5"


@pytest.mark.parametrize(
    ("qos", "message"),
    [
        ("memory=0.5,delay=0.3", "the weights add up to 0.8, not to 1: memory 0.5, delay 0.3"),
        ({"memory": 2}, "add up to 2, not to 1"),
        ("memory=1,speed=0", r"no metric 'speed'; there are \['delay', 'freshness', 'memory', 'rate'\]"),
        ("memory=-1,delay=2", "the weight of memory: '-1' is not a number from 0"),
        ("memory=lots", "the weight of memory: 'lots'"),
        ("memory=nan", "the weight of memory: 'nan'"),
        ("memroy", r"no template 'memroy' \(did you mean 'memory'\?\)"),
        ("memory=1,delay", "'delay' in 'memory=1,delay'.*as in memory=0.5"),
        (Qos.of("memory=0.5,age=0.5"), "no metric 'age'"),
        ("memory=0.5,memory=0.5", "at most once"),
        ("", "as in memory=0.5"),
    ],
)
def test_a_wrong_qos_is_refused(qos, message):
    with pytest.raises(PolicyError, match=message):
        recommend(two(), qos)


def test_other_wrong_calls_are_refused():
    for seeds in (0, 1.5, True):
        with pytest.raises(DsmsError, match=r"seeds: .* is not a whole number from 1"):
            recommend(two(), seeds=seeds)
    with pytest.raises(PolicyError, match="no policy 'fofi'"):
        recommend(two(), policies=["fifo", "fofi"])
    with pytest.raises(PolicyError, match=r"all know the future: add one that does not; there are .*'chain'"):
        recommend(two(), policies=["mss"])
    with pytest.raises(PolicyError, match="individual"):
        recommend(K1, policies=["fifo", "mss"])
    with pytest.raises(DsmsError, match="nothing arrives"):
        recommend(two([]), seeds=1)


def test_policies_are_listed_with_their_parameters():
    assert parse_policy_list("chain,rr:tuples=3,time=0.5,fifo") == ["chain", "rr:tuples=3,time=0.5", "fifo"]
    with pytest.raises(DsmsError, match="expected names of policies"):
        parse_policy_list(",")


def test_progress_is_told():
    reported: list[tuple[str, int, int]] = []
    recommend(two(), policies=["fifo", "rr"], seeds=2, progress=lambda *now: reported.append(now))
    assert reported == [("fifo", 0, 4), ("fifo", 1, 4), ("rr", 2, 4), ("rr", 3, 4)]


ANNOUNCED = """
import sys
from dsms.cli import main, recommend
run = recommend.run
def announce(given):
    print("ready", flush=True)
    return run(given)
recommend.run = announce
sys.exit(main(sys.argv[1:]))
"""


class TestRecommendCommand:
    def test_the_table(self, capsys):
        plan = str(PLANS / "path.toml")
        arguments = ["--until", "60", "--seeds", "2", "--policies", "fifo,chain", "--policies", "rr:tuples=3,mss"]
        assert main(["recommend", plan, *arguments]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        lines = [line.split() for line in out.splitlines() if line.strip()]
        shown = [line[0] for line in lines if line[0] in ("fifo", "chain", "rr:tuples=3", "mss")]
        assert set(shown[:3]) == {"fifo", "chain", "rr:tuples=3"}
        assert shown[3] == "mss"  # yardsticks last
        assert ["Recommended:", shown[0]] in lines
        assert out.count(" ± ") >= 4

    def test_json(self, capsys):
        assert main(["recommend", K1, "--seeds", "1", "--qos", "memory=1", "--json"]) == 0
        reported = json.loads(capsys.readouterr().out)
        assert reported["policy"] == reported["trials"][0]["policy"]
        assert reported["qos"] == {"memory": 1}
        assert reported["trials"][0]["memory_mean"]["mean"] == pytest.approx(1.2)
        assert reported["trials"][0]["latency_mean"] == {"mean": None, "deviation": None}

    @pytest.mark.parametrize(("name", "start"), [("r.png", b"\x89PNG"), ("r.svg", b"<?xml")])
    def test_a_picture(self, name, start, tmp_path, capsys):
        file = tmp_path / name
        plan = str(PLANS / "path.toml")
        assert main(["recommend", plan, "--until", "60", "--seeds", "2", "--plot", str(file)]) == 0
        assert file.read_bytes().startswith(start)
        if name == "r.svg":
            text = file.read_text(encoding="utf-8")
            for shown in ("memory: mean queued tuples", "latency: mean", "fifo", "knows the future"):
                assert shown in text

    def test_a_picture_without_results(self, tmp_path, capsys):
        file = tmp_path / "r.svg"
        assert main(["recommend", K1, "--seeds", "1", "--policies", "fifo", "--plot", str(file)]) == 0
        assert "no result left" in file.read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--qos", "memory=0.9"], "add up to 0.9, not to 1"),
            (["--policies", "fifo,fofi"], "no policy 'fofi'"),
            (["--plot", "r.gif"], "['.png', '.svg']"),
        ],
    )
    def test_a_wrong_call_is_told_why(self, arguments, message, capsys):
        assert main(["recommend", K1, *arguments]) == 2
        assert message in capsys.readouterr().err

    def test_a_wrong_number_of_seeds_is_told_by_the_parser(self, capsys):
        with pytest.raises(SystemExit):
            main(["recommend", K1, "--seeds", "0"])
        assert "'0' is not a whole number from 1" in capsys.readouterr().err

    def test_ctrl_c_leaves_cleanly(self):
        running = subprocess.Popen(
            [sys.executable, "-c", ANNOUNCED, "recommend", str(PLANS / "bursts.toml"), "--seeds", "1000"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": "."},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
        assert (running.returncode, out, err) == (130, "", "dsms: stopped\n")
