"""A real gateway under attack by hostile clients: it serves all other clients and keeps their rows intact."""

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
from support.live.certificates import make_certificate
from support.live.hostile_frames import PAIR, HostileClient, encode_message
from support.live.in_process_domain import HOST, make_plan, run_plan
from support.paths import ROOT, TESTS

import dsms
from actors.cli import console
from actors.deployment.actor_handles import wait_until
from actors.ingest import session_table
from actors.ingest.gateway import Gateway
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.net.access import AccessPolicy
from dsms.net.tokens import CONTROL, PUSH, READ, Permission, Tokens, _digest
from dsms.net.wire import Ack, Data, Decoder, Error, Hello, Message, WireError

PLAN = make_plan(
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
from dsms.net.access import AccessPolicy
from dsms.net.certificate import Certificate
from support.live.in_process_domain import make_plan, run_plan
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
with run_plan(make_plan({"mine": {"n": "int64"}}, good="SELECT n FROM mine"),
              terms=AccessPolicy(certificate=Certificate(*sys.argv[1:]), hello=4.0)) as (_, _, address):
    print(address, flush=True)
    sys.stdin.read()
"""
TOKENS = Tokens(
    tuple(
        (_digest(token), permission)
        for token, permission in (
            ("evil-token", Permission(PUSH, "evil")), ("good-token", Permission(PUSH, "good")),
            ("eyes-token", Permission(READ)), ("chief-token", Permission(CONTROL)),
        )
    )
)  # fmt: skip
WAIT_S = 60.0  # for waits that take a few seconds on an idle machine


@contextmanager
def open_socket(address: str) -> Iterator[socket.socket]:
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), WAIT_S) as line:
        yield line


def send_and_wait(line: socket.socket, data: bytes, sequence: int = 0) -> bool:
    """Send bytes and wait for the acknowledgement of a sequence, 0 for a hello; return whether it came."""
    decoder = Decoder(learns=True)
    line.sendall(data)
    with suppress(ConnectionResetError):
        while data := line.recv(65_536):
            if any(isinstance(each, Ack) and each.sequence >= sequence for each in decoder.feed(data)):
                return True
    return False


def receive_all(line: socket.socket) -> list[Message | WireError]:
    """Receive messages until the gateway closes the connection."""
    decoder, messages = Decoder(learns=True), list[Message | WireError]()
    with suppress(ConnectionResetError):
        while data := line.recv(65_536):
            messages += decoder.feed(data)
    return messages


def push_rows(client: Any, first: int, count: int = 10) -> None:
    client.push("mine", {"n": np.arange(first, first + count)})


def good_rows(domain: Any) -> list[int]:
    return sorted(row["n"] for row in domain.records("good"))


def wait_for_connections(gateway: Gateway, connections: int) -> bool:
    return wait_until(lambda: gateway.status()["connections"] == connections, WAIT_S)


@pytest.mark.parametrize("token", ["evil-token", "eyes-token", "no-token"])
def test_a_hostile_client_cannot_lose_or_duplicate_the_rows_of_others(token: str) -> None:
    with run_plan(PLAN, terms=AccessPolicy(TOKENS)) as (domain, gateway, address):
        hostile = HostileClient(7)
        with dsms.connect(address, token="good-token", producer="good") as client:
            for number in range(150):
                with open_socket(address) as line, suppress(OSError):
                    line.settimeout(0.5)  # the hello may be incomplete, so that no answer comes
                    if send_and_wait(line, hostile.hello(token, producer="evil")):
                        for _ in range(10):
                            line.sendall(hostile.frame())
                if number % 10 == 0:
                    push_rows(client, number)
            client.flush(WAIT_S)
            assert wait_for_connections(gateway, 1)
        assert good_rows(domain) == list(range(150))
        assert domain.records("all") == [] or token == "evil-token"
        assert gateway.status()["rejected"] > 20


def test_a_reader_cannot_act_as_a_producer() -> None:
    """It neither replaces the producer's connection nor uses up sequences of its frames."""
    with run_plan(PLAN, terms=AccessPolicy(TOKENS)) as (domain, gateway, address):
        with dsms.connect(address, token="good-token", producer="good") as client:
            push_rows(client, 0)
            with open_socket(address) as line:
                numbers = [encode_message(Data("s", number, _rows(666), PAIR)) for number in (2, 3, 10**9)]
                assert send_and_wait(line, encode_message(Hello("good", "eyes-token")))
                line.sendall(b"".join(numbers) + b"\xff" * 8)
                errors = [each for each in receive_all(line) if isinstance(each, Error)]
            assert [error.sequence for error in errors] == [2, 3, 10**9, None]
            push_rows(client, 10)
            client.flush(WAIT_S)
        assert good_rows(domain) == list(range(20))
        assert domain.records("all") == []
        assert gateway.status()["rejected"] == 4


def test_a_client_cannot_use_another_producer_s_name() -> None:
    with run_plan(PLAN, terms=AccessPolicy(TOKENS)) as (_, gateway, address), open_socket(address) as line:
        line.sendall(encode_message(Hello("good", "evil-token")))
        [error] = receive_all(line)
        reason = "permission denied: producer is 'good'; with this token it must begin with 'evil'"
        assert error == Error(reason, None, None)
        assert gateway.status()["rejected"] == 1


def test_replayed_frames_change_nothing() -> None:
    frames = b"".join(encode_message(Data("s", number, _rows(number), PAIR)) for number in (1, 2, 3))
    with run_plan(PLAN, terms=AccessPolicy(TOKENS)) as (domain, _, address):
        for _ in range(5):
            with open_socket(address) as line:
                assert send_and_wait(line, encode_message(Hello("good", "good-token")))
                assert send_and_wait(line, frames + frames, 3)
        assert [row["n"] for row in domain.records("all")] == [1, 2, 3]


def test_incomplete_frames_of_closed_connections_are_discarded() -> None:
    frame = encode_message(Data("s", 1, _rows(*range(1000)), PAIR))
    with run_plan(PLAN, terms=AccessPolicy(TOKENS)) as (domain, gateway, address):
        for cut in range(1, len(frame), len(frame) // 100):
            with open_socket(address) as line:
                assert send_and_wait(line, encode_message(Hello(f"evil {cut}", "evil-token")))
                line.sendall(frame[:cut])
        assert wait_for_connections(gateway, 0)
        with dsms.connect(address, token="good-token", producer="good") as client:
            push_rows(client, 0)
        assert (good_rows(domain), domain.records("all")) == (list(range(10)), [])


def holds(gateway: Gateway, size: int) -> bool:
    return gateway._sessions._held == size


def test_incomplete_frames_have_a_common_limit_and_the_largest_holder_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_table, "INCOMPLETE_FRAMES_LIMIT_BYTES", 400_000)
    frame = encode_message(Data("s", 1, _rows(*range(10_000)), PAIR))
    sizes = (100_000, 150_000, 100_000, 100_000)
    with run_plan(PLAN) as (domain, gateway, address), ExitStack() as stack:
        lines = [stack.enter_context(open_socket(address)) for _ in sizes]
        for number, (line, size) in enumerate(zip(lines, sizes, strict=True)):
            assert send_and_wait(line, encode_message(Hello(f"p{number}", "")))
            line.sendall(frame[:size])
            assert number == 3 or wait_until(partial(holds, gateway, sum(sizes[: number + 1])), WAIT_S)
        [error] = receive_all(lines[1])
        assert isinstance(error, Error)
        assert error.reason.startswith("400000 bytes of frames that are not complete are held here")
        assert send_and_wait(lines[0], frame[100_000:], 1)
        assert len(domain.records("all")) == 10_000
        for line in lines:
            line.close()
        assert wait_for_connections(gateway, 0)
        assert gateway._sessions._held == 0


def test_clients_slow_to_say_hello_are_disconnected_and_do_not_block_others() -> None:
    """A hundred clients send single bytes to a gateway with room for fifty; a good client still connects."""
    with run_plan(PLAN, terms=AccessPolicy(TOKENS, connections=50, hello=3.0)) as (domain, gateway, address):
        hello, slow = encode_message(Hello("evil", "evil-token")), [open_socket(address) for _ in range(100)]
        lines = [each.__enter__() for each in slow]
        for byte in range(3):
            for line in lines:
                with suppress(OSError):
                    line.sendall(hello[byte : byte + 1])
            with dsms.connect(address, token="good-token", producer="good") as client:
                push_rows(client, byte * 10)
        reasons = {each.reason for line in lines for each in receive_all(line) if isinstance(each, Error)}
        assert reasons <= {"50 clients are connected here; no more are taken", "no hello within 3 s"}
        assert wait_for_connections(gateway, 0)
        assert good_rows(domain) == list(range(30))
        assert gateway.status()["rejected"] == 100
        for each in slow:
            each.__exit__(None, None, None)


def test_thousands_of_connections_do_not_displace_an_authenticated_client() -> None:
    with (
        run_plan(PLAN, terms=AccessPolicy(TOKENS, connections=20)) as (domain, gateway, address),
        dsms.connect(address, token="good-token", producer="good") as client,
    ):
        crowd = subprocess.Popen([sys.executable, "-c", CROWD, address.rsplit(":", 1)[1]])
        number = 0
        while crowd.poll() is None:
            push_rows(client, number)
            client.flush(WAIT_S)
            number += 10
        assert crowd.returncode == 0
        assert wait_for_connections(gateway, 1)
        assert good_rows(domain) == list(range(number))
        assert gateway.status()["rejected"] > 0


def test_a_gateway_recovers_after_unfinished_handshakes_used_up_its_files(tmp_path: Path) -> None:
    """Handshakes do not count as connections: only a timeout and the system's file limit bound them."""
    made = make_certificate(tmp_path)
    folders = os.pathsep.join(map(str, (TESTS, ROOT)))
    process = subprocess.Popen(
        [sys.executable, "-c", FEW_FILES, made.chain, made.key],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": folders},
    )  # fmt: skip
    with process, ExitStack() as stack:
        assert process.stdin is not None
        assert process.stdout is not None
        stack.callback(process.stdin.close)  # ends the process
        address = process.stdout.readline().strip()
        silent = [stack.enter_context(open_socket(address)) for _ in range(150)]
        with dsms.connect(address, ca=made.chain, timeout=WAIT_S) as client:
            push_rows(client, 0)
            client.flush(WAIT_S)
        assert all(not each.recv(1) for each in silent[:50])


def test_a_gateway_full_of_authenticated_clients_refuses_another() -> None:
    with run_plan(PLAN, terms=AccessPolicy(connections=2)) as (_, gateway, address):
        with dsms.connect(address), dsms.connect(address):
            with pytest.raises(DsmsError, match="2 clients are connected here; no more are taken"):
                dsms.connect(address)
            assert gateway.status()["rejected"] == 1
        assert wait_for_connections(gateway, 0)
        dsms.connect(address).close()


def test_a_frame_above_the_limit_is_refused_before_it_is_received() -> None:
    with run_plan(PLAN, terms=AccessPolicy(frame=65_536)) as (_, gateway, address), open_socket(address) as line:
        frame = encode_message(Data("s", 1, _rows(*range(10_000)), PAIR))
        line.sendall(encode_message(Hello("p", "")) + frame[:100])
        assert receive_all(line)[-1] == Error(f"frame of {len(frame) - 8} bytes announced; the limit is 65536")
        assert gateway.status()["rejected"] == 1


def test_no_status_metric_or_error_contains_a_token() -> None:
    with run_plan(PLAN, terms=AccessPolicy(TOKENS)) as (_, gateway, address):
        for token in ("good-token", "chief-token", "wrong-token"):
            with open_socket(address) as line:
                line.sendall(encode_message(Hello("good", token)) + b"\xff" * 8)
                assert "-token" not in repr(receive_all(line))
        assert "-token" not in repr((gateway.status(), gateway.metrics(), vars(gateway)))
        with pytest.raises(DsmsError) as refused:
            dsms.connect(address, token="wrong-token")
        assert "-token" not in str(refused.value)
        assert gateway.metrics()["dsms_ingest_rejected_total"] == [(("g",), 4)]


def _rows(*numbers: int) -> Any:
    who = np.array(["evil"] * len(numbers) + [None], dtype=object)[:-1]
    return dsms.Batch.of({"n": np.array(numbers, dtype=np.int64), "who": who})


def test_by_default_everything_listens_on_loopback() -> None:
    assert {LiveConfig().host, LiveConfig().metrics_host, console.HOST} == {HOST}
