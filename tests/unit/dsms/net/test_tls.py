"""TLS from certificate files: pushing and subscribing, the console, untrusted servers, and bad files."""

from __future__ import annotations

import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.live.certificates import make_certificate
from support.live.fake_deployment import FakeDeployment
from support.live.in_process_domain import FakeDomain, make_plan, make_routes, run_gateway, run_plan

import dsms
from actors.console.server import serve
from actors.control import client as control_client
from actors.control.client import ControlClient
from actors.results.release import ReleaseAtOnce
from actors.results.result_hub import ResultHub
from dsms.config.live import LiveConfig
from dsms.data.schema import Schema
from dsms.errors import DsmsError, PlanError
from dsms.net.access import AccessPolicy
from dsms.net.certificate import Certificate, make_client_context
from dsms.net.client.tls_socket import TlsSocket
from dsms.net.tokens import Tokens

PLAN = make_plan({"s": {"n": "int64"}}, all="SELECT n FROM s")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


def test_clients_push_and_subscribe_over_tls(made: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    outlet = ResultHub(ReleaseAtOnce())
    outlet.open({"all": (None, Schema.of({"n": "int64"}), True)}, ".")
    domain = FakeDomain(PLAN, outlet)
    terms = AccessPolicy(Tokens.of(push="p", read="r"), made)
    with run_gateway(make_routes(PLAN, domain), result_hub=outlet, terms=terms) as (_, address):
        monkeypatch.setenv("DSMS_CA", made.chain)
        with dsms.connect(address, token="r") as reader, dsms.connect(address, token="p") as pusher:
            results = reader.subscribe("all")
            reader.push("s", {"n": [0]})
            with pytest.raises(DsmsError, match="needs a token with the role push or control; this one has read"):
                reader.flush(20)
            for first in range(0, 300_000, 100_000):
                pusher.push("s", {"n": np.arange(first, first + 100_000)})
            pusher.flush(60)
            received: list[int] = []
            for batch in results:
                received += batch.columns["n"].tolist()
                if len(received) == 300_000:
                    break
    assert received == list(range(300_000))


@pytest.mark.parametrize(
    ("with_ca", "named", "message"),
    [
        (False, "IP:127.0.0.1", "the gateway uses TLS: pass `ca`|before it answered hello|reset"),
        (True, "IP:127.0.0.2", "IP address mismatch"),
        (True, None, "self-signed certificate|self signed certificate"),
    ],
)
def test_a_client_refuses_an_untrusted_server(
    with_ca: bool, named: str | None, message: str, made: Certificate, tmp_path: Path
) -> None:
    served = make_certificate(tmp_path, named or "IP:127.0.0.1")
    trusted = made if named is None else served
    with (
        run_plan(PLAN, terms=AccessPolicy(certificate=served)) as (domain, _, address),
        pytest.raises(DsmsError, match=message),
        dsms.connect(address, token="t0ken", ca=trusted.chain if with_ca else None, patience=0) as client,
    ):
        client.flush()
    assert domain.calls == []


def test_a_client_with_a_ca_refuses_a_gateway_without_tls(made: Certificate) -> None:
    with run_plan(PLAN) as (_, _, address), pytest.raises(DsmsError, match=r"cannot connect to .*SSL"):
        dsms.connect(address, ca=made.chain)


@pytest.mark.parametrize(
    ("chain", "key", "message"),
    [
        ("certificate.pem", "", "a certificate without a key"),
        ("", "key.pem", "a key without a certificate"),
        ("certificate.pem", "open.pem", r"others may read it \(mode 0644\)"),
        ("certificate.pem", "none.pem", "the key .*none.pem: cannot be read: No such file"),
        ("key.pem", "key.pem", "cannot be used: "),
    ],
)
def test_unusable_certificate_files_are_refused_by_name(chain: str, key: str, message: str, tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    (tmp_path / "open.pem").write_text(Path(made.key).read_text())
    (tmp_path / "open.pem").chmod(0o644)

    def load() -> None:
        certificate = Certificate.of(chain, key, tmp_path)
        assert certificate is not None
        certificate.context()

    with pytest.raises(DsmsError, match=message):
        load()
    with pytest.raises(DsmsError, match="cannot read certificates from it"):
        make_client_context(str(tmp_path / "none.pem"))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("connections", 0, "0 is not a whole number from 1"),
        ("frame", 1000, "1000 is not a whole number from 65536"),
        ("frame", 2**31, f"from 65536 to {2**31 - 8}"),
        ("hello", 0, "hello"),
        ("certificate", 5, "5 is not a string"),
    ],
)
def test_bad_access_settings_are_refused(key: str, value: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        LiveConfig.read({key: value})


def test_the_access_policy_follows_the_plan_and_finds_files_beside_it(tmp_path: Path) -> None:
    live = {"certificate": "c.pem", "key": "k.pem", "connections": 7, "frame": 65_536, "hello": 2}
    assert AccessPolicy.of(LiveConfig.read(live), None, tmp_path) == AccessPolicy(
        None, Certificate(str(tmp_path / "c.pem"), str(tmp_path / "k.pem")), 7, 65_536, 2
    )
    assert AccessPolicy.of(LiveConfig(), None, tmp_path) == AccessPolicy()


@pytest.fixture
def echo_connection(made: Certificate) -> Iterator[socket.socket]:
    """A connection to a TLS server that echoes every byte."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            accepted, _ = server.accept()
            with made.context().wrap_socket(accepted, server_side=True) as secure:
                while data := secure.recv(65_536):
                    secure.sendall(data)

        threading.Thread(target=answer, daemon=True).start()
        with socket.create_connection(server.getsockname(), 30) as connection:
            yield connection


def test_one_thread_reads_while_others_write(echo_connection: socket.socket, made: Certificate) -> None:
    tls, pieces = TlsSocket(echo_connection, make_client_context(made.chain), "127.0.0.1"), 200
    tls.settimeout(60)

    def write(letter: bytes) -> None:
        for _ in range(pieces):
            tls.sendall(letter * 10_000)

    writers = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for writer in writers:
        writer.start()
    received = b""
    while len(received) < len(writers) * pieces * 10_000:
        received += tls.recv(65_536)
    for writer in writers:
        writer.join()
    blocks = {received[at : at + 10_000] for at in range(0, len(received), 10_000)}
    assert blocks == {b"a" * 10_000, b"b" * 10_000, b"c" * 10_000}
    assert len(received) == 6_000_000


def test_the_console_is_served_over_tls(made: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(handle: Any, method: str, *arguments: Any, timeout: float, **options: Any) -> Any:
        return getattr(handle, method)(*arguments, **options)

    monkeypatch.setattr(control_client, "ask", ask)
    with serve(lambda: ControlClient("dsms", FakeDeployment()), "127.0.0.1", 0, certificate=made) as url:
        assert url.startswith("https://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=30, context=ssl.create_default_context(cafile=made.chain)) as page:
            assert "dsms console" in page.read().decode()
