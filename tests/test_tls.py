"""TLS by certificate files: rows and results, the console, and whoever is not trusted."""

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
from certificates import certificate
from live_parts import Domain, plan_of, routes_of, running, serving
from live_system import FakeDeployment

import dsms
from actors.cli import asking
from actors.cli.asking import System
from actors.console.server import served
from actors.outlet import Outlet
from dsms.certificate import Certificate, trusting
from dsms.client.secured import Secured
from dsms.errors import DsmsError, PlanError
from dsms.live.setup import Setup
from dsms.live.terms import Terms
from dsms.schema import Schema
from dsms.tokens import Tokens

PLAN = plan_of({"s": {"n": "int64"}}, all="SELECT n FROM s")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("certificate"))


def test_rows_go_in_and_results_come_out_by_tls(made: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    outlet = Outlet()
    outlet.open({"all": (None, Schema.of({"n": "int64"}), True)}, ".")
    domain = Domain(PLAN, outlet)
    terms = Terms(Tokens.of(push="p", read="r"), made)
    with serving(routes_of(PLAN, domain), outlet=outlet, terms=terms) as (_, address):
        monkeypatch.setenv("DSMS_CA", made.chain)
        with dsms.connect(address, token="r") as reader, dsms.connect(address, token="p") as pusher:
            results = reader.subscribe("all")
            reader.push("s", {"n": [0]})
            with pytest.raises(DsmsError, match="the token shown is for read; one for push or control is wanted"):
                reader.flush(20)
            for first in range(0, 300_000, 100_000):
                pusher.push("s", {"n": np.arange(first, first + 100_000)})
            pusher.flush(60)
            found: list[int] = []
            for batch in results:
                found += batch.columns["n"].tolist()
                if len(found) == 300_000:
                    break
    assert found == list(range(300_000))


@pytest.mark.parametrize(
    ("with_ca", "named", "said"),
    [
        (False, "IP:127.0.0.1", "it speaks TLS: `ca` says whom to trust|closed before it was answered|reset"),
        (True, "IP:127.0.0.2", "IP address mismatch"),
        (True, None, "self-signed certificate|self signed certificate"),
    ],
)
def test_who_is_not_trusted_is_not_talked_to(
    with_ca: bool, named: str | None, said: str, made: Certificate, tmp_path: Path
) -> None:
    shown = certificate(tmp_path, named or "IP:127.0.0.1")
    trusted = made if named is None else shown
    with (
        running(PLAN, terms=Terms(certificate=shown)) as (domain, _, address),
        pytest.raises(DsmsError, match=said),
        dsms.connect(address, token="t0ken", ca=trusted.chain if with_ca else None, patience=0) as client,
    ):
        client.flush()
    assert domain.calls == []


def test_tls_is_not_spoken_with_a_gateway_that_has_none(made: Certificate) -> None:
    with running(PLAN) as (_, _, address), pytest.raises(DsmsError, match=r"cannot connect to .*SSL"):
        dsms.connect(address, ca=made.chain)


@pytest.mark.parametrize(
    ("chain", "key", "said"),
    [
        ("certificate.pem", "", "a certificate without a key"),
        ("", "key.pem", "a key without a certificate"),
        ("certificate.pem", "open.pem", r"others may read it \(mode 0644\)"),
        ("certificate.pem", "none.pem", "the key .*none.pem: cannot be read: No such file"),
        ("key.pem", "key.pem", "cannot be used: "),
    ],
)
def test_files_that_cannot_be_used_are_named(chain: str, key: str, said: str, tmp_path: Path) -> None:
    made = certificate(tmp_path)
    (tmp_path / "open.pem").write_text(Path(made.key).read_text())
    (tmp_path / "open.pem").chmod(0o644)

    def used() -> None:
        found = Certificate.of(chain, key, tmp_path)
        assert found is not None
        found.context()

    with pytest.raises(DsmsError, match=said):
        used()
    with pytest.raises(DsmsError, match="no certificates can be read from it"):
        trusting(str(tmp_path / "none.pem"))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("connections", 0, "0 is not a whole number from 1"),
        ("frame", 1000, "1000 is not a whole number from 65536"),
        ("frame", 2**31, f"at most {2**31 - 8}"),
        ("hello", 0, "hello"),
        ("certificate", 5, "5 is not a text"),
    ],
)
def test_terms_that_make_no_sense_are_refused(key: str, value: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Setup.read({key: value})


def test_terms_are_those_of_the_plan_with_files_beside_it(tmp_path: Path) -> None:
    live = {"certificate": "c.pem", "key": "k.pem", "connections": 7, "frame": 65_536, "hello": 2}
    assert Terms.of(Setup.read(live), None, tmp_path) == Terms(
        None, Certificate(str(tmp_path / "c.pem"), str(tmp_path / "k.pem")), 7, 65_536, 2
    )
    assert Terms.of(Setup(), None, tmp_path) == Terms()


@pytest.fixture
def mirror(made: Certificate) -> Iterator[socket.socket]:
    """A connection to somebody who says back whatever is said, by TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line, _ = server.accept()
            with made.context().wrap_socket(line, server_side=True) as secure:
                while data := secure.recv(65_536):
                    secure.sendall(data)

        threading.Thread(target=answer, daemon=True).start()
        with socket.create_connection(server.getsockname(), 30) as line:
            yield line


def test_one_thread_reads_while_others_write(mirror: socket.socket, made: Certificate) -> None:
    line, pieces = Secured(mirror, trusting(made.chain), "127.0.0.1"), 200
    line.settimeout(60)

    def write(sign: bytes) -> None:
        for _ in range(pieces):
            line.sendall(sign * 10_000)

    writers = [threading.Thread(target=write, args=(sign,)) for sign in (b"a", b"b", b"c")]
    for writer in writers:
        writer.start()
    found = b""
    while len(found) < len(writers) * pieces * 10_000:
        found += line.recv(65_536)
    for writer in writers:
        writer.join()
    blocks = {found[at : at + 10_000] for at in range(0, len(found), 10_000)}
    assert blocks == {b"a" * 10_000, b"b" * 10_000, b"c" * 10_000}
    assert len(found) == 6_000_000


def test_the_console_is_served_by_tls(made: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(handle: Any, method: str, *given: Any, timeout: float, **named: Any) -> Any:
        return getattr(handle, method)(*given, **named)

    monkeypatch.setattr(asking, "ask", ask)
    with served(lambda: System("dsms", FakeDeployment()), "127.0.0.1", 0, certificate=made) as url:
        assert url.startswith("https://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=30, context=ssl.create_default_context(cafile=made.chain)) as page:
            assert "dsms console" in page.read().decode()
