"""The commands of the live system, against one that is played by a plain object: what they ask, print and answer."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import dsms
from actors.cli import asking, grids, up
from actors.cli.view import fitted, view
from dsms.cli import main
from dsms.errors import DsmsError
from dsms.live.setup import Setup

ROOT = Path(__file__).parent.parent
LIVE = ROOT / "tests" / "plans" / "live.toml"
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
COMMANDS = POINTS["dsms.commands"]


def station(name: str, queue: int, actor: int = 0) -> dict[str, Any]:
    figures = {"rate_in": 1234.5, "rate_out": 12.345, "cost": 2.5e-6, "selectivity": 0.25, "busy": 0.125}
    return {"name": name, "query": name.partition(".")[0], "actor": actor, "queue": queue, "priority": None, **figures}


def phase(policy: str, since: float, until: float | None = None, **more: Any) -> dict[str, Any]:
    figures = dict.fromkeys(("swap_seconds", "memory_mean", "memory_max", "latency_mean", "latency_p99", "staleness"))
    return {
        "policy": policy,
        "since": since,
        "until": until,
        "reason": "start",
        "turns": 7,
        "results": 9,
        **figures,
        **more,
    }


def domain(name: str = "0", **more: Any) -> dict[str, Any]:
    late = {"mean": 0.002, "p50": 0.0015, "p99": 0.02}
    return {
        "domain": name, "node": "here", "policy": "chain", "decides": "chain", "state": "running", "error": None,
        "clock": "wall", "budget": 1.0, "now": 200.0, "held": 1500, "held_bytes": 48_000, "turns": 1234, "swaps": 1,
        "utilisation": 0.71, "idle_with_work": 0.034, "latency": late, "staleness": 0.25, "qos": "memory=1",
        "streams": [{"name": "bids", "rows": 5000, "rate": 100.0}],
        "queries": [
            {"name": f"high{name}", "weight": 2.0, "results": 321, "rate": 5.5, "latency": late, "staleness": 0.1},
            {"name": f"busy{name}", "weight": 1.0, "results": 0, "rate": None, "latency": None, "staleness": None},
        ],
        "stations": [station(f"high{name}.where", 30), station(f"busy{name}.group", 1200, 1)],
        "phases": [phase("fifo", 0.0, 60.0), phase("chain", 60.0, reason="[asked] for", swap_seconds=0.0042)],
        **more,
    }  # fmt: skip


def status_of(*domains: dict[str, Any]) -> dict[str, Any]:
    door = {
        "address": "127.0.0.1:7411",
        "connections": 2,
        "rows": 5000,
        "bytes": 160_000,
        "rejected": 3,
        "subscribers": 1,
    }
    return {
        "name": "dsms",
        "since": 1e9,
        "version": "0.1.0",
        "gateways": [door],
        "outlet": {},
        "domains": list(domains),
    }


class FakeDeployment:
    """The Deployment's methods, and what was asked of them."""

    def __init__(self, *domains: dict[str, Any]) -> None:
        self.domains = domains or (domain(),)
        self.asked: list[tuple[Any, ...]] = []

    def status(self) -> dict[str, Any]:
        return status_of(*self.domains)

    def swap(self, policy: str, reason: str = "", domain: str | None = None) -> list[dict[str, Any]]:
        self.asked.append(("swap", policy, reason, domain))
        return [
            {"domain": one["domain"], "before": one["policy"], "after": policy, "seconds": 0.0123}
            for one in self.domains
        ]

    def require(self, qos: str, domain: str | None = None) -> None:
        self.asked.append(("require", qos, domain))
        for one in self.domains:
            one["qos"] = qos

    def weigh(self, query: str, weight: float) -> None:
        self.asked.append(("weigh", query, weight))
        for each in (each for one in self.domains for each in one["queries"] if each["name"] == query):
            each["weight"] = weight

    def why(self, count: int = 1, domain: str | None = None) -> list[dict[str, Any]]:
        self.asked.append(("why", count, domain))
        found = dsms.why(ROOT / "tests/plans/chain-example.toml", "chain", 2.5).to_json()
        return [{**found, "domain": "0"}] * count

    def pause(self, domain: str | None = None) -> None:
        self.asked.append(("pause", domain))

    def resume(self, domain: str | None = None) -> None:
        self.asked.append(("resume", domain))

    def add(self, table: dict[str, Any], folder: str, file: str) -> list[str]:
        self.asked.append(("add", table, folder, file))
        return list(table["queries"])

    def remove(self, query: str) -> None:
        self.asked.append(("remove", query))
        if query not in ("high0", "busy0"):
            raise DsmsError(f"no query {query!r}; there are ['busy0', 'high0']")

    def move(self, query: str, domain: str) -> dict[str, Any]:
        self.asked.append(("move", query, domain))
        return {"queries": [query, "busy0"], "seconds": 0.25}

    def down(self) -> None:
        self.asked.append(("down",))


class Live:
    """A cluster on which at most one deployment runs; `log` is what was done to it."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.running: dict[str, FakeDeployment] = {"dsms": FakeDeployment()}

    def connect(self, address: str, timeout: float = 10.0) -> None:
        self.log.append(("connect", address))
        if address == "nowhere:1":
            raise DsmsError("no Ray cluster at nowhere:1")

    def local(self, budgets: int) -> None:
        self.log.append(("local", budgets))

    def disconnect(self) -> None:
        self.log.append("disconnect")

    def deployment(self, name: str) -> FakeDeployment:
        if name not in self.running:
            raise DsmsError(f"no deployment {name!r}; there are {sorted(self.running)}")
        return self.running[name]

    def up(
        self, table: dict[str, Any], folder: str, file: str, *, name: str, progress: Callable[[str], None], **how: Any
    ) -> None:
        progress("starting 8 stations")
        self.log.append((name, list(table["queries"]), folder, file, how))
        self.running[name] = FakeDeployment()


@pytest.fixture
def live(monkeypatch) -> Live:
    """Commands talk to this instead of Ray."""
    cluster = Live()
    for module in (asking, up):
        monkeypatch.setattr(module, "part", lambda name: cluster)
    monkeypatch.setattr(
        asking, "ask", lambda handle, method, *a, timeout, **named: getattr(handle, method)(*a, **named)
    )
    points = [EntryPoint(name, value, "dsms.commands") for name, value in COMMANDS.items()]
    monkeypatch.setattr("dsms.cli.entry_points", lambda group: points if group == "dsms.commands" else [])
    return cluster


@pytest.fixture
def call(live, capsys) -> Callable[..., tuple[int, str, str]]:
    def answer(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(words)
        return code, *capsys.readouterr()

    return answer


def asked(live: Live) -> list[tuple[Any, ...]]:
    return live.running["dsms"].asked


def squeezed(text: str) -> list[str]:
    """Its lines, one space between words."""
    return [" ".join(line.split()) for line in text.splitlines()]


def drawn(status: dict[str, Any], height: int = 60, width: int = 100) -> str:
    console = Console(record=True, width=width, height=height, file=io.StringIO())
    console.print(view(status, height))
    return console.export_text()


def test_loading_the_commands_does_not_load_ray():
    modules = ", ".join(COMMANDS.values())
    code = f"import sys, {modules}; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


@pytest.mark.parametrize("command", COMMANDS)
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
    ],
)  # fmt: skip
def test_every_command_connects_asks_the_system_of_that_name_and_leaves(words, call, live):
    assert call(*words)[0] == 0
    assert live.log == [("connect", "auto"), "disconnect"]
    live.log.clear()
    code, out, err = call(*words, "--name", "other", "--address", "head:6379")
    assert (code, out) == (2, "")
    assert err == "dsms: no deployment 'other'; there are ['dsms']\n"
    assert live.log == [("connect", "head:6379"), "disconnect"]
    assert call(*words, "--address", "nowhere:1")[::2] == (2, "dsms: no Ray cluster at nowhere:1\n")
    code, _, err = call(*words, "--address", "local")
    assert code == 2
    assert "`dsms up` starts for itself" in err


def test_status_shows_domains_queries_stations_and_gateways(call):
    code, out, _ = call("status")
    lines = squeezed(out)
    assert code == 0
    assert out.startswith("dsms: up 3 min 20 s, dsms 0.1.0\n")
    assert "0 running chain 71.0% 1,500 1.5 ms 20 ms 25.0% 3.4% 1,234" in lines
    assert "high0 2 321 5.5 1.5 ms 20 ms 10.0%" in lines
    assert "busy0 1 0 – – – –" in lines
    assert "busy0.group 1,200 ████████████ 1,234 12.3 2.5 µs 0.25 12.5% – 1 busy0" in lines
    assert "127.0.0.1:7411 2 1 5,000 160,000 3" in lines
    assert out.index("busy0.group") < out.index("high0.where")


def test_status_as_json_is_what_the_system_says(call, live):
    code, out, _ = call("status", "--json")
    assert code == 0
    assert json.loads(out) == live.running["dsms"].status()


def test_status_of_several_domains_shows_them_all(call, live):
    live.running["dsms"] = FakeDeployment(domain("a"), domain("b", state="failed", error="boom"))
    _, out, _ = call("status")
    lines = [line.split() for line in out.splitlines()]
    assert "domain b has failed: boom" in out
    assert [line[0] for line in lines if line[1:2] in (["running"], ["failed"])] == ["a", "b"]
    assert [line[1] for line in lines if line and line[0] in ("highb", "busya.group")] == ["b", "a"]


def test_queries_are_listed_added_and_removed(call, live, tmp_path):
    assert "high0" in call("queries")[1] == call("queries", "list")[1]
    file = tmp_path / "more.toml"
    file.write_text('[queries.low]\ncql = "SELECT * FROM bids WHERE price < 5"\n')
    assert call("queries", "add", str(file)) == (0, "added: low\n", "")
    assert call("queries", "remove", "high0") == (0, "removed: high0\n", "")
    code, _, err = call("queries", "remove", "hihg")
    assert (code, err) == (2, "dsms: no query 'hihg'; there are ['busy0', 'high0']\n")
    table = {"queries": {"low": {"cql": "SELECT * FROM bids WHERE price < 5"}}}
    assert asked(live)[0] == ("add", table, str(tmp_path), str(file))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("queries", "add"), "`dsms queries add` takes FILE after it, and nothing is given"),
        (("queries", "remove"), "`dsms queries remove` takes NAME after it, and nothing is given"),
        (("queries", "list", "x"), "`dsms queries list` takes nothing after it, and 'x' is given"),
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
    ],
)
def test_a_wrong_call_is_told_before_anything_is_asked(words, said, call, live, tmp_path, monkeypatch):
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


def test_policy_shows_who_decides_since_when_and_the_phases(call, live):
    live.running["dsms"] = FakeDeployment(domain(policy="adaptive:select=best", decides="chain"))
    code, out, _ = call("policy")
    lines = squeezed(out)
    assert code == 0
    said = "adaptive:select=best (chain) since 60.0 s, [asked] for (in 4.2 ms); it is 200.0 s"
    assert lines[0] == f"domain 0: {said}"
    assert [line for line in lines if line.startswith(("chain", "fifo"))] == [
        "chain 60.0 s now 4.2 ms – – 9 – – – [asked] for",
        "fifo 0.0 s 60.0 s – – – 9 – – – start",
    ]


def test_policy_swaps_and_says_from_what_to_what_and_how_fast(call, live):
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
    assert call("down")[1] == "dsms is down\n"
    assert asked(live) == [("pause", "1"), ("resume", None), ("move", "high0", "1"), ("down",)]


@pytest.mark.parametrize("words", [("status",), ("policy", "fifo"), ("queries", "remove", "high0"), ("top", "--once")])
def test_a_system_that_does_not_answer_is_a_failure_not_a_wrong_call(words, call, live, monkeypatch):
    def silent(*_: Any, **__: Any) -> None:
        raise asking.FailedError("no answer within 15 s")

    monkeypatch.setattr(asking, "ask", silent)
    code, out, err = call(*words)
    assert (code, out) == (1, "")
    assert err.startswith("dsms: 'dsms' was asked for")
    assert err.endswith(": no answer within 15 s\n")
    assert live.log[-1] == "disconnect"


def test_up_deploys_the_plan_with_what_the_options_say_instead(call, live, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    words = "--policy fifo --clock paced --budget 0.5 --domains 2 --actors 4 --gateways 2 --host 0.0.0.0 --port 0"
    code, out, err = call("up", str(LIVE), "--name", "a", *words.split(), "--replace", "--token-file", str(token))
    assert code == 0
    assert out.splitlines() == [
        "a runs: fifo decides, by the paced clock",
        "queries: high0, busy0 (2 stations, 1 stream, 1 domain)",
        "rows to: 127.0.0.1:7411",
    ]
    assert err == "dsms: connecting to Ray\ndsms: starting 8 stations\n"
    setup = Setup("fifo", "paced", 0.5, 2, 4, 2, "0.0.0.0", 0)
    how = {"setup": setup, "replace": True, "token": "secret"}
    queries = ["high", "euros", "busy", "outbid"]
    assert live.log == [("connect", "auto"), ("a", queries, str(LIVE.parent), str(LIVE), how), "disconnect"]


def test_up_without_options_goes_by_the_plan(call, live):
    assert call("up", str(LIVE))[0] == 0
    assert live.log[1][-1] == {"setup": Setup("chain"), "replace": False, "token": None}


def test_a_start_that_fails_leaves_the_cluster(call, live, monkeypatch):
    def up(*_: Any, **__: Any) -> None:
        raise DsmsError("'dsms' runs already; --replace takes it down first")

    monkeypatch.setattr(live, "up", up)
    code, _, err = call("up", str(LIVE))
    assert (code, live.log[-1]) == (2, "disconnect")
    assert "runs already" in err


@pytest.mark.parametrize("down", [None, asking.FailedError("no answer")])
def test_up_in_the_foreground_stays_until_ctrl_c_and_takes_all_down(down, call, live, monkeypatch):
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    def ends(self: FakeDeployment) -> None:
        live.log.append("down")
        if down is not None:
            raise down

    monkeypatch.setattr(FakeDeployment, "down", ends)
    monkeypatch.setattr(up, "Event", lambda: SimpleNamespace(wait=lambda: interrupted(None)))
    code, out, err = call("up", str(LIVE), "--address", "local", "--domains", "2")
    assert code == 0
    assert "rows to: 127.0.0.1:7411" in out
    assert err.splitlines()[2:4] == ["elsewhere: export RAY_ADDRESS=here:6379", "Ctrl-C takes it down"]
    assert live.log[0] == ("local", 2)
    assert live.log[-2:] == ["down", "disconnect"]


def test_top_shows_once_where_there_is_no_terminal(call):
    code, out, _ = call("top")
    assert code == 0
    assert out == call("top", "--once")[1]
    for text in ("dsms  up 3 min 20 s", "71.0%", "1,500", "20 ms", "busy0.group", "fifo"):
        assert text in out


def test_top_looks_again_until_ctrl_c(call, live, monkeypatch):
    from actors.cli import top

    looks = iter([False, False])

    def wait(every: float) -> bool:
        live.log.append(every)
        try:
            return next(looks)
        except StopIteration:
            raise KeyboardInterrupt from None

    screen = Console(force_terminal=True, width=100, height=30, file=io.StringIO())
    monkeypatch.setattr(top, "Console", lambda: screen)
    monkeypatch.setattr(top, "Event", lambda: SimpleNamespace(wait=wait))
    assert call("top", "--every", "0.5")[0] == 0
    assert live.log == [("connect", "auto"), 0.5, 0.5, 0.5, "disconnect"]
    assert screen.file.getvalue().count("busy0.group") == 3


def test_the_view_puts_the_longest_queue_first_and_the_latest_phase():
    text = drawn(status_of(domain()))
    places = [
        text.index(word) for word in ("dsms  up", "running", "high0", "busy0.group", "high0.where", "chain  60.0")
    ]
    assert places == sorted(places)
    assert squeezed(text)[-2:] == [
        "chain 60.0 s now 4.2 ms – – 9 – – – [asked] for",
        "fifo 0.0 s 60.0 s – – – 9 – – – start",
    ]


def test_the_view_of_several_domains_says_whose_each_row_is_and_what_has_failed():
    text = drawn(status_of(domain("a"), domain("b", state="failed", error="boom\nTraceback")))
    assert "domain b: boom\n" in text
    assert [line.split()[:2] for line in text.splitlines() if "group" in line] == [
        ["busya.group", "a"],
        ["busyb.group", "b"],
    ]


def test_what_does_not_fit_is_counted():
    many = domain(stations=[station(f"q.s{place}", place) for place in range(100)])
    text = drawn(status_of(many), height=30)
    shown = [line for line in text.splitlines() if line.startswith("q.s")]
    assert shown[0].startswith("q.s99 ")
    assert f"station ({len(shown)} of 100)" in text
    assert len(text.splitlines()) == 30


def test_a_narrow_view_keeps_the_columns_on_the_left():
    text = drawn(status_of(domain()), width=40)
    assert "busy0.group 1,200 ████████████ 1,234" in squeezed(text)
    assert "priority" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 40


@given(st.integers(1, 60), st.integers(20, 200), st.integers(0, 3), st.integers(0, 50), st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_a_view_keeps_to_the_height_whatever_there_is(height, width, domains, stations, phases):
    one = {
        "stations": [station(f"query.station{place}", place) for place in range(stations)],
        "phases": [phase("adaptive:select=best", place) for place in range(phases)],
        "error": "boom " * 40,
    }
    text = drawn(status_of(*(domain(str(place), **one) for place in range(domains))), height, width)
    assert 1 <= len(text.splitlines()) <= height
    assert max(len(line) for line in text.splitlines()) <= width


@given(st.lists(st.integers(0, 20), max_size=5), st.integers(-3, 60))
def test_room_is_shared_out_fairly_and_to_the_last_line(wanted, room):
    got = fitted(wanted, room)
    assert sum(got) == min(max(room, 0), sum(wanted))
    assert all(mine <= want for mine, want in zip(got, wanted, strict=True))
    short = [mine for mine, want in zip(got, wanted, strict=True) if mine < want]
    assert all(mine <= least + 1 for least in short for mine in got)


@pytest.mark.parametrize(
    ("share", "bar"), [(0.0, ""), (0.0001, "▏"), (0.5, "██████"), (0.51, "██████▏"), (1.0, "████████████")]
)
def test_a_bar_is_as_long_as_its_share(share, bar):
    assert grids.bar(share) == bar


@pytest.mark.parametrize(
    ("time", "said"),
    [(0.4, "0 s"), (42, "42 s"), (200, "3 min 20 s"), (3600, "1 h 0 min"), (3 * 86400 + 4 * 3600 + 59, "3 d 4 h")],
)
def test_a_long_time_is_said_in_two_units(time, said):
    assert grids.elapsed(time) == said


def test_the_live_plan_is_on_two_streams_of_which_one_has_timestamps():
    plan = dsms.read_plan(LIVE)
    assert [(stream.name, stream.timestamp) for stream in plan.streams] == [("bids", "at"), ("clicks", None)]
    assert [query.name for query in plan.queries] == ["high", "euros", "busy", "outbid"]


class Remote:
    """A handle whose every method answers with a reference to what `ray.get` then makes of it."""

    def __getattr__(self, method: str) -> Any:
        return SimpleNamespace(remote=lambda *given, **named: (method, given, named))


def test_asking_waits_for_the_answer_but_not_for_ever(monkeypatch):
    import ray

    monkeypatch.setattr(ray, "get", lambda reference, timeout: (*reference, timeout))
    assert asking.ask(Remote(), "swap", "fifo", domain="0", timeout=3.0) == ("swap", ("fifo",), {"domain": "0"}, 3.0)


def test_what_goes_wrong_far_away_is_said_here(monkeypatch):
    import ray
    from ray.exceptions import ActorDiedError, GetTimeoutError, RayTaskError

    def answer(error: Exception) -> str:
        def get(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(ray, "get", get)
        with pytest.raises(DsmsError) as caught:
            asking.ask(Remote(), "status")
        return f"{type(caught.value).__name__}: {caught.value}"

    assert answer(GetTimeoutError("late")) == "FailedError: no answer within 15 s; it may still be carried out"
    assert answer(ActorDiedError()).startswith("FailedError: it has ended or cannot be reached (")
    theirs = RayTaskError("status", "Traceback", DsmsError("no query 'x'")).as_instanceof_cause()
    assert answer(theirs) == "DsmsError: no query 'x'"
    theirs = RayTaskError("status", "Traceback", KeyError("x")).as_instanceof_cause()
    assert answer(theirs) == "FailedError: KeyError: 'x'"


def test_without_ray_the_commands_say_what_to_install(monkeypatch):
    def absent(name: str) -> None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")

    monkeypatch.setattr(asking, "import_module", absent)
    with pytest.raises(DsmsError, match=r"install dsms\[ray\]"):
        asking.part("cluster")
