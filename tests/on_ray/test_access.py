"""A deployment with tokens and TLS on Ray: gateways enforce roles, and no process or log shows a token."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from support.live.certificates import make_certificate

import dsms
from actors.control.deploy import up
from actors.deployment.actor_handles import wait_until
from actors.rpc.messages import get_result, send
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.net.tokens import Tokens

pytestmark = [pytest.mark.ray, pytest.mark.timeout(180)]
TABLE = {"streams": {"s": {"schema": {"k": "int64"}}}, "queries": {"all": {"cql": "SELECT k FROM s"}}}
PUSH, READ, CONTROL = (f"{role}-very-secret-t0ken" for role in ("push", "read", "control"))


def given_away() -> list[str]:
    """The processes and Ray logs that show a token."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes() + Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            continue
        found += [f"process {process}"] if b"very-secret" in words else []
    node: Any = ray._private.worker._global_node
    logs = Path(node.get_session_dir_path()) / "logs"
    return found + [str(log) for log in logs.rglob("*") if log.is_file() and b"very-secret" in log.read_bytes()]


def test_roles_are_enforced_over_tls_and_tokens_are_shown_nowhere(ray_cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"push {PUSH} p\nread {READ}\ncontrol {CONTROL}\n")
    file.chmod(0o600)
    made = make_certificate(tmp_path)
    setup = LiveConfig(port=0, actors=1, metrics=0, certificate=Path(made.chain).name, key=Path(made.key).name)
    handle = up(TABLE, str(tmp_path), "p.toml", "guarded", setup, tokens=Tokens.read(file))
    try:
        [door] = get_result(send(handle.identity))["gateways"]
        with pytest.raises(DsmsError, match="authentication failed: unknown token"):
            dsms.connect(door, token="wrong", ca=made.chain)
        with (
            dsms.connect(door, token=READ, ca=made.chain) as reader,
            dsms.connect(door, token=PUSH, ca=made.chain, producer="p1") as pusher,
        ):
            results = reader.subscribe("all")
            assert wait_until(lambda: get_result(send(handle.status)).gateways[0].subscribers == 1, 60)
            pusher.push("s", {"k": np.arange(5)})
            pusher.flush(60)
            assert next(iter(results)).columns["k"].tolist() == [0, 1, 2, 3, 4]
            reader.push("s", {"k": [6]})
            with pytest.raises(DsmsError, match="this one has read"):
                reader.flush(60)
            failed = pusher.subscribe("all")
            with pytest.raises(DsmsError, match="the role read or control; this one has push"):
                failed.next(60)
        status = get_result(send(handle.status))
        with urllib.request.urlopen(status.metrics, timeout=30) as answer:
            metrics = answer.read().decode()
        assert status.gateways[0].rejected == 3
        assert re.search(r"^dsms_ingest_rejected_total\{.*gateway-0.*\} 3\.0$", metrics, flags=re.M)
        assert "very-secret" not in metrics + repr(status)
        assert given_away() == []
    finally:
        get_result(send(handle.down))
