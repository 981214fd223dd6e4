"""A guarded deployment on Ray: roles and TLS by its gateways, and not a word of its tokens anywhere."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from certificates import certificate

import dsms
from actors.deployment import up
from actors.parts import wait_for
from dsms.errors import DsmsError
from dsms.live.setup import Setup
from dsms.tokens import Tokens

pytestmark = [pytest.mark.ray, pytest.mark.timeout(180)]
TABLE = {"streams": {"s": {"schema": {"k": "int64"}}}, "queries": {"all": {"cql": "SELECT k FROM s"}}}
PUSH, READ, CONTROL = (f"{role}-very-secret-t0ken" for role in ("push", "read", "control"))


def given_away() -> list[str]:
    """Who of all processes, or which of Ray's logs, says a token."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes() + Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            continue
        found += [f"process {process}"] if b"very-secret" in words else []
    logs = Path(ray._private.worker._global_node.get_session_dir_path()) / "logs"
    return found + [str(log) for log in logs.rglob("*") if log.is_file() and b"very-secret" in log.read_bytes()]


def test_roles_hold_by_tls_and_tokens_are_told_nowhere(ray_cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"push {PUSH} p\nread {READ}\ncontrol {CONTROL}\n")
    file.chmod(0o600)
    made = certificate(tmp_path)
    setup = Setup(port=0, actors=1, metrics=0, certificate=Path(made.chain).name, key=Path(made.key).name)
    handle = up(TABLE, str(tmp_path), "p.toml", "guarded", setup, tokens=Tokens.read(file))
    try:
        [door] = ray.get(handle.identity.remote())["gateways"]
        with pytest.raises(DsmsError, match="none of those that are wanted"):
            dsms.connect(door, token="wrong", ca=made.chain)
        with (
            dsms.connect(door, token=READ, ca=made.chain) as reader,
            dsms.connect(door, token=PUSH, ca=made.chain, producer="p1") as pusher,
        ):
            results = reader.subscribe("all")
            assert wait_for(lambda: ray.get(handle.status.remote())["gateways"][0]["subscribers"] == 1, 60)
            pusher.push("s", {"k": np.arange(5)})
            pusher.flush(60)
            assert next(iter(results)).columns["k"].tolist() == [0, 1, 2, 3, 4]
            reader.push("s", {"k": [6]})
            with pytest.raises(DsmsError, match="the token shown is for read"):
                reader.flush(60)
            failed = pusher.subscribe("all")
            with pytest.raises(DsmsError, match="the token shown is for push; one for read or control is wanted"):
                failed.next(60)
        status = ray.get(handle.status.remote())
        with urllib.request.urlopen(status["metrics"], timeout=30) as answer:
            metrics = answer.read().decode()
        assert status["gateways"][0]["rejected"] == 3
        assert re.search(r"^dsms_ingest_rejected_total\{.*gateway-0.*\} 3\.0$", metrics, flags=re.M)
        assert "very-secret" not in metrics + repr(status)
        assert given_away() == []
    finally:
        ray.get(handle.down.remote())
