"""The live commands against a plain object: what they call, print and return."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from support.live.fake_deployment import FakeCluster, FakeDeployment, collapse_spaces, domain, status_of
from support.paths import ROOT

import dsms
from actors.cli import down, top, up
from actors.control import client as asking
from dsms.cli import main
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError, FailedError
from dsms.live.monitor.status import (
    CheckpointStatus,
    DomainStatus,
    GatewayStatus,
    IngestStatus,
    LimitStatus,
    QuarantineStatus,
    RecordingStatus,
    RecoveryStatus,
    RejectedRowsStatus,
    WatchdogStatus,
)
from dsms.net.tokens import Tokens

LIVE = ROOT / "tests" / "plans" / "live.toml"
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
ALL = POINTS["dsms.commands"]
COMMANDS = {name: module for name, module in ALL.items() if module.startswith("actors.")}


@pytest.fixture
def live(monkeypatch) -> FakeCluster:
    """Commands talk to this instead of Ray."""
    cluster = FakeCluster()
    for module in (asking, down, up):
        monkeypatch.setattr(module, "import_runtime", lambda name: cluster)
    monkeypatch.setattr(up, "describe_environment", lambda: "RAY_ADDRESS=here:6379")
    monkeypatch.setattr(
        asking, "ask", lambda handle, method, *a, timeout, **named: getattr(handle, method)(*a, **named)
    )
    points = [EntryPoint(name, value, "dsms.commands") for name, value in COMMANDS.items()]
    monkeypatch.setattr("dsms.cli.command_table.entry_points", lambda group: points if group == "dsms.commands" else [])
    return cluster


@pytest.fixture
def call(live, capsys) -> Callable[..., tuple[int, str, str]]:
    def answer(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(words)
        return code, *capsys.readouterr()

    return answer


def asked(live: FakeCluster) -> list[tuple[Any, ...]]:
    return live.running["dsms"].asked


def test_loading_the_commands_loads_no_large_library():
    modules = ", ".join(value.partition(":")[0] for value in ALL.values())
    code = f"import sys, {modules}; sys.exit(bool({{'ray', 'pyspark', 'matplotlib', 'nicegui'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("demo", "doctor")]
)  # which ask no system
def test_every_command_says_what_it_does_and_how_to_reach_a_system(command, live, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert "--name NAME" in text
    assert "--address auto|" in text
    assert live.log == []


@pytest.mark.parametrize(
    "words",
    [
        ("status",), ("down",), ("top", "--once"), ("queries",), ("queries", "remove", "high0"), ("policy",),
        ("policy", "fifo"), ("qos",), ("weights",), ("why",), ("pause",), ("resume",), ("move", "high0", "0"),
        ("checkpoint",),
    ],
)  # fmt: skip
def test_every_command_connects_asks_the_system_of_that_name_and_leaves(words, call, live):
    assert call(*words)[0] == 0
    assert [done for done in live.log if done != ("tear_down", "dsms")] == [("connect", "auto"), "disconnect"]
    live.log.clear()
    live.running["dsms"] = FakeDeployment()
    code, out, err = call(*words, "--name", "other", "--address", "head:6379")
    assert (code, out) == (2, "")
    assert err == "dsms: no deployment 'other'; there are ['dsms']\n"
    assert live.log == [("connect", "head:6379"), "disconnect"]
    assert call(*words, "--address", "nowhere:1")[::2] == (2, "dsms: no Ray cluster at nowhere:1\n")
    code, _, err = call(*words, "--address", "local")
    assert code == 2
    assert "a private Ray that `dsms up` starts" in err


def test_status_shows_domains_queries_stations_and_gateways(call):
    code, out, _ = call("status")
    lines = collapse_spaces(out)
    assert code == 0
    assert out.startswith("dsms: up 3 min 20 s, dsms 0.1.0\n")
    assert "0 running chain 71.0% 1,500 1.5 ms 20 ms 25.0% 3.4% 1,234" in lines
    assert "high0 2 321 5.5 1.5 ms 20 ms 10.0% 12" in lines
    assert "busy0 1 0 – – – – –" in lines
    assert "busy0.group 1,200 ████████████ 1,234 12.3 2.5 µs 0.25 12.5% – 1 busy0" in lines
    assert "127.0.0.1:7411 2 1 5,000 160,000 3" in lines
    assert out.index("busy0.group") < out.index("high0.where")


def test_status_as_json_is_what_the_system_says(call, live):
    code, out, _ = call("status", "--json")
    assert code == 0
    assert json.loads(out) == live.running["dsms"].status().to_json()


def test_status_of_several_domains_shows_them_all(call, live):
    live.running["dsms"] = FakeDeployment(domain("a"), domain("b", state="failed", error="boom"))
    _, out, _ = call("status")
    lines = [line.split() for line in out.splitlines()]
    assert "domain b has failed: boom" in out
    assert [line[0] for line in lines if line[1:2] in (["running"], ["failed"])] == ["a", "b"]
    assert [line[1] for line in lines if line and line[0] in ("highb", "busya.group")] == ["b", "a"]


def test_silent_parts_are_reported_and_the_others_shown(call, live, monkeypatch):
    live.running["dsms"] = FakeDeployment(domain(), DomainStatus.silent("1", "it died"))
    whole = live.running["dsms"].status()
    gateways = [*whole.gateways, GatewayStatus(None, error="no answer")]
    monkeypatch.setattr(FakeDeployment, "status", lambda self: replace(whole, gateways=gateways))
    for command in ("status", "top"):
        code, out, _ = call(command)
        assert code == 0
        assert "domain 1 has failed: it died\ngateway 1 has failed: no answer\n" in out
        assert "high0" in out
    assert "domain 1: –; it has failed: it died" in call("policy")[1]


def test_status_shows_stalls_quarantines_and_rejected_rows(call, live):
    stalled = WatchdogStatus(1, "operator 'f' (host 3) does not return", "f", 40.0)
    aside = RejectedRowsStatus("high.where", "error", 1200, "ValueError: no")
    full = IngestStatus(True, 3.5, 100, LimitStatus(None, 1e9))
    live.running["dsms"] = FakeDeployment(
        domain("a", watchdog=stalled, quarantine=[QuarantineStatus("busy0", "operator 'g' failed")]),
        domain("b", ingest=full, rejected=[aside]),
    )
    code, out, _ = call("status")
    lines = collapse_spaces(out)
    assert code == 0
    assert [line.split()[:2] for line in lines if line[:2] in ("a ", "b ")] == [["a", "stalled"], ["b", "full"]]
    for said in (
        "domain a is stalled: operator 'f' (host 3) does not return",
        "domain a: query busy0 is quarantined: operator 'g' failed",
        "domain b: operator high.where rejected 1,200 rows (error), the first because of: ValueError: no",
    ):
        assert said in out


def test_queries_are_listed_added_and_removed(call, live, tmp_path):
    assert "high0" in call("queries")[1] == call("queries", "list")[1]
    file = tmp_path / "more.toml"
    file.write_text('[queries.low]\ncql = "SELECT * FROM bids WHERE price < 5"\n')
    assert call("queries", "add", str(file)) == (0, "added: low\n", "")
    assert call("queries", "remove", "high0") == (0, "removed: high0\n", "")
    assert call("queries", "release", "high0") == (0, "released: high0, busy0\n", "")
    code, _, err = call("queries", "remove", "hihg")
    assert (code, err) == (2, "dsms: no query 'hihg'; there are ['busy0', 'high0']\n")
    table = {"queries": {"low": {"cql": "SELECT * FROM bids WHERE price < 5"}}}
    assert asked(live)[0] == ("add", table, str(tmp_path), str(file))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("queries", "add"), "`dsms queries add` takes FILE after it, not nothing"),
        (("queries", "remove"), "`dsms queries remove` takes NAME after it, not nothing"),
        (("queries", "list", "x"), "`dsms queries list` takes nothing after it, not 'x'"),
        (("queries", "add", "no.toml"), "no.toml: cannot be read: No such file or directory"),
        (("queries", "add", "empty.toml"), "empty.toml: queries: there is no query"),
        (("queries", "add", "wrong.toml"), "wrong.toml: is not TOML"),
        (("policy", "chian"), "did you mean 'chain'?"),
        (("qos", "memory=2"), "the weights add up to 2, not to 1"),
        (("up",), "`dsms up` needs a PLAN"),
        (("up", "no.toml"), "no.toml: cannot be read"),
        (("up", str(LIVE), "--port", "80"), "--port 80 cannot be the port"),
        (("up", str(LIVE), "--policy", "chian"), "did you mean 'chain'?"),
        (("up", str(LIVE), "--token-file", "no.txt"), "--token-file no.txt: cannot be read"),
        (("up", str(LIVE), "--token-file", "empty.txt"), "--token-file empty.txt: it is empty"),
        (("up", str(LIVE), "--token-file", "open.txt"), "others may read it (mode 0644)"),
        (("up", str(LIVE), "--certificate", "c.pem"), "a certificate without a key"),
        (("up", str(LIVE), "--key", "k.pem"), "a key without a certificate"),
        (("up", str(LIVE), "--certificate", "c.pem", "--key", "no.pem"), "no.pem: cannot be read"),
        (("up", str(LIVE), "--certificate", "c.pem", "--key", "open.txt"), "others may read it (mode 0644)"),
        (("up", str(LIVE), "--certificate", "open.txt", "--key", "empty.txt"), "cannot be used"),
    ],
)
def test_a_wrong_call_is_reported_before_the_deployment_is_called(words, said, call, live, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty.toml").write_text("[streams.s]\n")
    Path("wrong.toml").write_text("[[[")
    for name, text, mode in (("empty.txt", "\n", 0o600), ("open.txt", "secret", 0o644)):
        Path(name).write_text(text)
        Path(name).chmod(mode)
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert live.log == []


def test_policy_shows_the_policy_in_charge_and_the_phases(call, live):
    live.running["dsms"] = FakeDeployment(domain(policy="adaptive:select=best", decides="chain"))
    code, out, _ = call("policy")
    lines = collapse_spaces(out)
    assert code == 0
    said = "adaptive:select=best (chain) since 60.0 s ([asked] for); it is 200.0 s"
    assert lines[0] == f"domain 0: {said}"
    assert [line for line in lines if line.startswith(("chain", "fifo"))] == [
        "chain 60.0 s now 4.2 ms – – 9 – – – [asked] for",
        "fifo 0.0 s 60.0 s – – – 9 – – – start",
    ]


def test_policy_swaps_and_shows_before_after_and_duration(call, live):
    assert call("policy", "rr:tuples=30", "--reason", "a burst", "--domain", "0") == (
        0,
        "domain 0: chain → rr:tuples=30, in 12.3 ms\n",
        "",
    )
    call("policy", "fifo")
    assert asked(live) == [("swap", "rr:tuples=30", "a burst", "0"), ("swap", "fifo", "asked for", None)]


def test_qos_and_weights_are_shown_and_set(call, live):
    assert call("qos") == (0, "domain 0: memory=1\n", "")
    assert call("qos", "memory=0.7,delay=0.3") == (0, "domain 0: memory=0.7,delay=0.3\n", "")
    assert call("qos", "--domain", "7")[::2] == (2, "dsms: no domain '7'; there are ['0']\n")
    assert "high0" in call("weights")[1]
    assert call("weights", "high0=5", "busy0=0.5") == (0, "high0: 2 → 5\nbusy0: 1 → 0.5\n", "")
    assert asked(live) == [("require", "memory=0.7,delay=0.3", None), ("weigh", "high0", 5.0), ("weigh", "busy0", 0.5)]


def test_weights_are_all_set_or_none(call, live):
    code, _, err = call("weights", "high0=5", "low=1")
    assert code == 2
    assert "no query 'low'" in err
    for wrong in ("high0", "=3", "high0=0", "high0=much"):
        with pytest.raises(SystemExit) as end:
            call("weights", wrong)
        assert end.value.code == 2
    assert asked(live) == []


def test_why_shows_the_last_decisions_with_candidates_and_priorities(call, live):
    code, out, _ = call("why", "--last", "2", "--domain", "0")
    assert code == 0
    assert out.count("Domain 0, chain:") == 2
    assert out.count("► ") == 2
    assert "Chosen: o1" in out
    assert "priority" in out
    assert asked(live) == [("why", 2, "0")]
    assert [one["chosen"] for one in json.loads(call("why", "--json")[1])] == [["o1"]]


def test_why_before_anything_was_decided_says_so(call, live, monkeypatch):
    monkeypatch.setattr(FakeDeployment, "why", lambda *_, **__: [])
    assert call("why") == (0, "No decision has been made yet: nothing has arrived.\n", "")


def test_pause_resume_move_and_down_say_what_was_done(call, live):
    assert call("pause", "--domain", "1")[1] == "dsms, domain 1, is paused\n"
    assert call("resume")[1] == "dsms runs\n"
    assert call("move", "high0", "1")[1] == "high0 (with busy0) runs in domain 1; the move took 250 ms\n"
    asked_for = asked(live)
    assert call("down")[1] == "dsms is down\n"
    assert asked_for == [("pause", "1"), ("resume", None), ("move", "high0", "1"), ("down",)]


def test_down_kills_a_deployment_that_does_not_answer(call, live, monkeypatch):
    def silent(*_: Any, **__: Any) -> None:
        raise FailedError("no answer within 120 s")

    monkeypatch.setattr(asking, "ask", silent)
    code, out, err = call("down")
    assert (code, out) == (0, "dsms is down\n")
    assert "no answer within 120 s; killing its remaining actors" in err
    assert live.log == [("connect", "auto"), ("tear_down", "dsms"), "disconnect"]


@pytest.mark.parametrize("words", [("status",), ("policy", "fifo"), ("queries", "remove", "high0"), ("top", "--once")])
def test_a_system_that_does_not_answer_is_a_failure_not_a_wrong_call(words, call, live, monkeypatch):
    def silent(*_: Any, **__: Any) -> None:
        raise FailedError("no answer within 40 s")

    monkeypatch.setattr(asking, "ask", silent)
    code, out, err = call(*words)
    assert (code, out) == (1, "")
    assert err.startswith("dsms: call ")
    assert err.endswith(": no answer within 40 s\n")
    assert live.log[-1] == "disconnect"


def test_up_deploys_the_plan_with_what_the_options_say_instead(call, live, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    words = "--policy fifo --clock paced --budget 0.5 --domains 2 --actors 4 --gateways 2 --host 0.0.0.0 --port 0"
    code, out, err = call("up", str(LIVE), "--name", "a", *words.split(), "--replace", "--token-file", str(token))
    assert code == 0
    assert out.splitlines() == [
        "a runs: policy fifo, paced clock",
        "queries: high0, busy0 (2 operators, 1 stream, 1 domain)",
        "rows to: 127.0.0.1:7411",
    ]
    assert err == (
        "dsms: rows, results and tokens travel to and from 0.0.0.0 unencrypted: --certificate and --key enable TLS\n"
        "dsms: connecting to Ray\ndsms: starting 8 stations\n"
    )
    setup = LiveConfig("fifo", "paced", 0.5, 2, 4, 2, "0.0.0.0", 0)
    how = {"setup": setup, "replace": True, "tokens": Tokens.of(control="secret")}
    queries = ["high", "euros", "busy", "outbid"]
    assert live.log == [("connect", "auto"), ("a", queries, str(LIVE.parent), str(LIVE), how), "disconnect"]


def test_up_without_options_goes_by_the_plan(call, live):
    assert call("up", str(LIVE))[0] == 0
    assert live.log[1][-1] == {"setup": LiveConfig("chain"), "replace": False, "tokens": None}


def test_up_records_to_a_folder_of_this_directory_and_says_where(call, live, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorded = domain(recorded=RecordingStatus(str(tmp_path / "runs/0")))
    monkeypatch.setattr(FakeDeployment, "status", lambda self: replace(status_of(recorded), name=self.name))
    _, out, _ = call("up", str(LIVE), "--record", "runs")
    assert live.log[1][-1]["setup"] == LiveConfig("chain", record=str(tmp_path / "runs"))
    assert out.splitlines()[-1] == f"recorded to: {tmp_path}/runs/0"


def test_up_and_status_say_where_metrics_are(call, live, monkeypatch):
    where = "http://127.0.0.1:9471/metrics"
    monkeypatch.setattr(FakeDeployment, "status", lambda self: replace(status_of(domain()), metrics=where))
    _, out, _ = call("up", str(LIVE), "--metrics", "9471")
    assert live.log[1][-1]["setup"] == LiveConfig("chain", metrics=9471)
    assert out.splitlines()[-1] == f"metrics at: {where}"
    assert call("status")[1].splitlines()[1] == f"metrics at {where}"


def test_status_says_where_a_domain_is_recorded_to_or_why_it_is_not(call, live):
    failed = RecordingStatus("/runs/b", "recording to '/runs/b' failed: No space left on device")
    kept = RecordingStatus("/runs/a")
    live.running["dsms"] = FakeDeployment(domain("a", recorded=kept), domain("b", recorded=failed))
    lines = call("status")[1].splitlines()
    assert lines[1:3] == ["domain a: recorded to /runs/a", f"domain b: {failed.error}"]


def test_a_start_that_fails_leaves_the_cluster(call, live, monkeypatch):
    def up(*_: Any, **__: Any) -> None:
        raise DsmsError("'dsms' runs already; --replace takes it down first")

    monkeypatch.setattr(live, "up", up)
    code, _, err = call("up", str(LIVE))
    assert (code, live.log[-1]) == (2, "disconnect")
    assert "runs already" in err


@pytest.mark.parametrize("failure", [None, FailedError("no answer")])
def test_up_in_the_foreground_stays_until_ctrl_c_and_takes_all_down(failure, call, live, monkeypatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    def ends(self: FakeDeployment) -> None:
        live.log.append("down")
        if failure is not None:
            raise failure

    monkeypatch.setattr(FakeDeployment, "down", ends)
    monkeypatch.setattr(up, "wait_for_signal", interrupted)
    code, out, err = call("up", str(LIVE), "--address", "local", "--domains", "2")
    assert code == 0
    assert "rows to: 127.0.0.1:7411" in out
    assert err.splitlines()[2:4] == ["for other terminals: export RAY_ADDRESS=here:6379", "Ctrl-C ends it"]
    assert live.log[0] == ("local", 2)
    assert live.log[-2:] == ["down", "disconnect"]


def test_top_shows_once_where_there_is_no_terminal(call):
    code, out, _ = call("top")
    assert code == 0
    assert out == call("top", "--once")[1]
    for text in ("dsms  up 3 min 20 s", "71.0%", "1,500", "20 ms", "busy0.group", "fifo"):
        assert text in out


def test_top_looks_again_until_ctrl_c(call, live, monkeypatch):
    looks = iter([False, False])

    def wait(every: float) -> bool:
        live.log.append(every)
        try:
            return next(looks)
        except StopIteration:
            raise KeyboardInterrupt from None

    shown = io.StringIO()
    screen = Console(force_terminal=True, width=100, height=30, file=shown)
    monkeypatch.setattr(top, "Console", lambda: screen)
    monkeypatch.setattr(top, "Event", lambda: SimpleNamespace(wait=wait))
    assert call("top", "--every", "0.5")[0] == 0
    assert live.log == [("connect", "auto"), 0.5, 0.5, 0.5, "disconnect"]
    assert shown.getvalue().count("busy0.group") == 3


def test_the_live_plan_is_on_two_streams_of_which_one_has_timestamps():
    plan = dsms.read_plan(LIVE)
    assert [(stream.name, stream.timestamp) for stream in plan.streams] == [("bids", "at"), ("clicks", None)]
    assert [query.name for query in plan.queries] == ["high", "euros", "busy", "outbid"]


def test_up_resumes_from_the_durable_folder(call, live, tmp_path):
    assert call("up", str(LIVE), "--durable", str(tmp_path), "--checkpoint", "0.5", "--resume")[0] == 0
    how = live.log[1][-1]
    assert how["setup"] == LiveConfig("chain", durable=str(tmp_path), checkpoint=0.5)
    assert how["resume"] is True


def test_resume_needs_a_folder_and_a_yes_if_the_plan_is_another(call, live, tmp_path, monkeypatch):
    code, _, err = call("up", str(LIVE), "--resume")
    assert code == 2
    assert err == "dsms: --resume needs --durable DIR, or `durable` in [live]: the folder of the checkpoint\n"
    live.diff_with_checkpoint = lambda *given: "a keep their state; b start empty; none go"
    code, out, err = call("up", str(LIVE), "--durable", str(tmp_path), "--resume")
    assert (code, live.log) == (2, [])
    assert out == "the plan differs from the stored one: a keep their state; b start empty; none go\n"
    assert "--yes continues with the new plan" in err
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", lambda question: "n")
    assert call("up", str(LIVE), "--durable", str(tmp_path), "--resume")[0] == 1
    assert live.log == []
    monkeypatch.setattr("builtins.input", lambda question: "y")
    assert call("up", str(LIVE), "--durable", str(tmp_path), "--resume")[0] == 0
    assert call("up", str(LIVE), "--durable", str(tmp_path), "--resume", "--yes")[0] == 0


def test_checkpoint_and_status_show_durability(call, live, monkeypatch):
    saved = "checkpoint 7, 12,345 bytes in 250 ms, turns paused for 4 ms"
    assert call("checkpoint")[1] == f"dsms: {saved}\n"
    last = CheckpointStatus(**FakeDeployment().checkpoint(), age=0.5)
    durable = RecoveryStatus("/d", last, "no space left", 2, 3.0, 4.5)
    monkeypatch.setattr(FakeDeployment, "status", lambda self: replace(status_of(domain()), durable=durable))
    assert call("status")[1].splitlines()[1:4] == [
        f"durable in /d: {saved}, 500 ms ago",
        "recovered 2 times, in 3 s (median), 4.5 s at worst",
        "not durable now: no space left",
    ]
