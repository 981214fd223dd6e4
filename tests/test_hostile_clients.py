"""A real gateway and clients that want to do harm: nobody else's rows are touched, and everybody else is served."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificates import certificate
from hostile_frames import PAIR, Hostile, said
from live_parts import HOST, plan_of, running

import dsms
from actors import desk
from actors.cli import console
from actors.gateway import Gateway
from actors.parts import wait_for
from dsms.errors import DsmsError
from dsms.live.setup import Setup
from dsms.live.terms import Terms
from dsms.tokens import CONTROL, PUSH, READ, Pass, Tokens, _digest
from dsms.wire import Ack, Data, Decoder, Error, Hello, Message, WireError

PLAN = plan_of(
    {"s": {"n": "int64", "who": "string"}, "mine": {"n": "int64"}}, all="SELECT n FROM s", good="SELECT n FROM mine"
)
CROWD = """
import socket, sys
for _ in range(30):
    crowd = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60) for _ in range(100)]
    for one in crowd:
        one.close()
"""
FEW_FILES = """
import resource, sys
from live_parts import plan_of, running
from dsms.certificate import Certificate
from dsms.live.terms import Terms
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
with running(plan_of({"mine": {"n": "int64"}}, good="SELECT n FROM mine"),
             terms=Terms(certificate=Certificate(*sys.argv[1:]), hello=4.0)) as (_, _, address):
    print(address, flush=True)
    sys.stdin.read()
"""
TOKENS = Tokens(
    tuple(
        (_digest(token), granted)
        for token, granted in (
            ("evil-token", Pass(PUSH, "evil")), ("good-token", Pass(PUSH, "good")), ("eyes-token", Pass(READ)),
            ("chief-token", Pass(CONTROL)),
        )
    )
)  # fmt: skip
WAIT = 60.0  # seconds, for what takes some on a quiet machine


@contextmanager
def dialled(address: str) -> Iterator[socket.socket]:
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), WAIT) as line:
        yield line


def acknowledged(line: socket.socket, data: bytes, sequence: int = 0) -> bool:
    """Say this, and wait until all up to a number is safe: nothing, for a hello."""
    decoder = Decoder(learns=True)
    line.sendall(data)
    with suppress(ConnectionResetError):
        while data := line.recv(65_536):
            if any(isinstance(each, Ack) and each.sequence >= sequence for each in decoder.feed(data)):
                return True
    return False


def heard(line: socket.socket) -> list[Message | WireError]:
    """All that is said until the other side hangs up."""
    decoder, found = Decoder(learns=True), list[Message | WireError]()
    with suppress(ConnectionResetError):
        while data := line.recv(65_536):
            found += decoder.feed(data)
    return found


def pushed(client: Any, first: int, count: int = 10) -> None:
    client.push("mine", {"n": np.arange(first, first + count)})


def good_rows(domain: Any) -> list[int]:
    return sorted(row["n"] for row in domain.records("good"))


def settled(gateway: Gateway, connections: int) -> bool:
    return wait_for(lambda: gateway.status()["connections"] == connections, WAIT)


@pytest.mark.parametrize("token", ["evil-token", "eyes-token", "no-token"])
def test_whatever_a_hostile_client_says_the_rows_of_others_come_through_once_each(token: str) -> None:
    with running(PLAN, terms=Terms(TOKENS)) as (domain, gateway, address):
        hostile = Hostile(7)
        with dsms.connect(address, token="good-token", producer="good") as client:
            for number in range(150):
                with dialled(address) as line, suppress(OSError):
                    line.settimeout(0.5)  # it may have said but half a hello
                    if acknowledged(line, hostile.hello(token, producer="evil")):
                        for _ in range(10):
                            line.sendall(hostile.frame())
                if number % 10 == 0:
                    pushed(client, number)
            client.flush(WAIT)
            assert settled(gateway, 1)
        assert good_rows(domain) == list(range(150))
        assert domain.records("all") == [] or token == "evil-token"
        assert gateway.status()["rejected"] > 20


def test_a_reader_cannot_pass_for_a_producer() -> None:
    """Neither is the producer's connection taken over, nor a number of its frames used up."""
    with running(PLAN, terms=Terms(TOKENS)) as (domain, gateway, address):
        with dsms.connect(address, token="good-token", producer="good") as client:
            pushed(client, 0)
            with dialled(address) as line:
                numbers = [said(Data("s", number, _rows(666), PAIR)) for number in (2, 3, 10**9)]
                assert acknowledged(line, said(Hello("good", "eyes-token")))
                line.sendall(b"".join(numbers) + b"\xff" * 8)
                errors = [each for each in heard(line) if isinstance(each, Error)]
            assert [error.sequence for error in errors] == [2, 3, 10**9, None]
            pushed(client, 10)
            client.flush(WAIT)
        assert good_rows(domain) == list(range(20))
        assert domain.records("all") == []
        assert gateway.status()["rejected"] == 4


def test_a_name_of_others_cannot_be_used() -> None:
    with running(PLAN, terms=Terms(TOKENS)) as (_, gateway, address), dialled(address) as line:
        line.sendall(said(Hello("good", "evil-token")))
        [error] = heard(line)
        assert error == Error("hello: producer is 'good'; with this token it begins with 'evil'", None, None)
        assert gateway.status()["rejected"] == 1


def test_a_conversation_that_is_replayed_changes_nothing() -> None:
    frames = b"".join(said(Data("s", number, _rows(number), PAIR)) for number in (1, 2, 3))
    with running(PLAN, terms=Terms(TOKENS)) as (domain, _, address):
        for _ in range(5):
            with dialled(address) as line:
                assert acknowledged(line, said(Hello("good", "good-token")))
                assert acknowledged(line, frames + frames, 3)
        assert [row["n"] for row in domain.records("all")] == [1, 2, 3]


def test_half_frames_of_many_are_forgotten_with_them() -> None:
    frame = said(Data("s", 1, _rows(*range(1000)), PAIR))
    with running(PLAN, terms=Terms(TOKENS)) as (domain, gateway, address):
        for cut in range(1, len(frame), len(frame) // 100):
            with dialled(address) as line:
                assert acknowledged(line, said(Hello(f"evil {cut}", "evil-token")))
                line.sendall(frame[:cut])
        assert settled(gateway, 0)
        with dsms.connect(address, token="good-token", producer="good") as client:
            pushed(client, 0)
        assert (good_rows(domain), domain.records("all")) == (list(range(10)), [])


def holds(gateway: Gateway, size: int) -> bool:
    return gateway._desk._held == size


def test_half_frames_of_all_together_have_a_limit_and_whoever_holds_most_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "UNFINISHED", 400_000)
    frame = said(Data("s", 1, _rows(*range(10_000)), PAIR))
    sizes = (100_000, 150_000, 100_000, 100_000)
    with running(PLAN) as (domain, gateway, address), ExitStack() as stack:
        lines = [stack.enter_context(dialled(address)) for _ in sizes]
        for number, (line, size) in enumerate(zip(lines, sizes, strict=True)):
            assert acknowledged(line, said(Hello(f"p{number}", "")))
            line.sendall(frame[:size])
            assert number == 3 or wait_for(partial(holds, gateway, sum(sizes[: number + 1])), WAIT)
        [error] = heard(lines[1])
        assert isinstance(error, Error)
        assert error.reason.startswith("400000 bytes of frames that are not complete are held here")
        assert acknowledged(lines[0], frame[100_000:], 1)
        assert len(domain.records("all")) == 10_000
        for line in lines:
            line.close()
        assert settled(gateway, 0)
        assert gateway._desk._held == 0


def test_slow_ones_are_let_go_and_keep_nobody_out() -> None:
    """A hundred who say a byte now and then, where fifty may be: whoever says hello gets in meanwhile."""
    with running(PLAN, terms=Terms(TOKENS, connections=50, hello=3.0)) as (domain, gateway, address):
        hello, slow = said(Hello("evil", "evil-token")), [dialled(address) for _ in range(100)]
        lines = [each.__enter__() for each in slow]
        for byte in range(3):
            for line in lines:
                with suppress(OSError):
                    line.sendall(hello[byte : byte + 1])
            with dsms.connect(address, token="good-token", producer="good") as client:
                pushed(client, byte * 10)
        reasons = {each.reason for line in lines for each in heard(line) if isinstance(each, Error)}
        assert reasons <= {"50 clients are connected here; no more are taken", "no hello within 3 s"}
        assert settled(gateway, 0)
        assert good_rows(domain) == list(range(30))
        assert gateway.status()["rejected"] == 100
        for each in slow:
            each.__exit__(None, None, None)


def test_thousands_of_connections_do_not_push_out_who_is_known() -> None:
    with (
        running(PLAN, terms=Terms(TOKENS, connections=20)) as (domain, gateway, address),
        dsms.connect(address, token="good-token", producer="good") as client,
    ):
        crowd = subprocess.Popen([sys.executable, "-c", CROWD, address.rsplit(":", 1)[1]])
        number = 0
        while crowd.poll() is None:
            pushed(client, number)
            client.flush(WAIT)
            number += 10
        assert crowd.returncode == 0
        assert settled(gateway, 1)
        assert good_rows(domain) == list(range(number))
        assert gateway.status()["rejected"] > 0


def test_a_gateway_that_has_run_out_of_files_by_unfinished_handshakes_serves_again_when_they_are_over(
    tmp_path: Path,
) -> None:
    """They are no connections yet, so nothing but time and the system's own limit bounds them."""
    made = certificate(tmp_path)
    folders = os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parent.parent)))
    process = subprocess.Popen(
        [sys.executable, "-c", FEW_FILES, made.chain, made.key],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": folders},
    )  # fmt: skip
    with process, ExitStack() as stack:
        assert process.stdin is not None
        assert process.stdout is not None
        stack.callback(process.stdin.close)  # which ends it
        address = process.stdout.readline().strip()
        silent = [stack.enter_context(dialled(address)) for _ in range(150)]
        with dsms.connect(address, ca=made.chain, timeout=WAIT) as client:
            pushed(client, 0)
            client.flush(WAIT)
        assert all(not each.recv(1) for each in silent[:50])


def test_where_all_who_are_there_are_known_one_more_is_refused() -> None:
    with running(PLAN, terms=Terms(connections=2)) as (_, gateway, address):
        with dsms.connect(address), dsms.connect(address):
            with pytest.raises(DsmsError, match="2 clients are connected here; no more are taken"):
                dsms.connect(address)
            assert gateway.status()["rejected"] == 1
        assert settled(gateway, 0)
        dsms.connect(address).close()


def test_a_frame_above_the_limit_is_refused_before_it_is_there() -> None:
    with running(PLAN, terms=Terms(frame=65_536)) as (_, gateway, address), dialled(address) as line:
        frame = said(Data("s", 1, _rows(*range(10_000)), PAIR))
        line.sendall(said(Hello("p", "")) + frame[:100])
        assert heard(line)[-1] == Error(f"a frame of {len(frame) - 8} bytes is announced; at most 65536 are taken")
        assert gateway.status()["rejected"] == 1


def test_tokens_are_in_no_status_and_no_metric() -> None:
    with running(PLAN, terms=Terms(TOKENS)) as (_, gateway, address):
        for token in ("good-token", "chief-token", "wrong-token"):
            with dialled(address) as line:
                line.sendall(said(Hello("good", token)) + b"\xff" * 8)
                assert "-token" not in repr(heard(line))
        assert "-token" not in repr((gateway.status(), gateway.metrics(), vars(gateway)))
        with pytest.raises(DsmsError) as refused:
            dsms.connect(address, token="wrong-token")
        assert "-token" not in str(refused.value)
        assert gateway.metrics()["dsms_ingest_rejected_total"] == [(("g",), 4)]


def _rows(*numbers: int) -> Any:
    who = np.array(["evil"] * len(numbers) + [None], dtype=object)[:-1]
    return dsms.Batch.of({"n": np.array(numbers, dtype=np.int64), "who": who})


def test_by_default_everything_listens_on_loopback() -> None:
    assert {Setup().host, Setup().metrics_host, console.HOST} == {HOST}
