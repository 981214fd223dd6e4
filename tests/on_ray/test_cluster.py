"""Connecting to a Ray cluster takes seconds, or fails with a reason."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from actors.cluster import cluster
from dsms.errors import DsmsError

pytestmark = pytest.mark.ray

# In a process of its own: this one may be part of a cluster already.
TRY = """
import sys
from actors.cluster import cluster
from dsms.errors import DsmsError
for address in sys.argv[1:]:
    try:
        cluster.connect(address, timeout=1.0)
    except DsmsError as error:
        print(error)
"""


def attempts(tmp_path, *addresses):
    """The output of trying to join each of these addresses."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", TRY, *addresses],
        env={**environment, "DSMS_RUN": str(tmp_path), "RAY_ADDRESS": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_missing_head_is_an_error_within_seconds(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as mute:  # it listens, and never answers
        silent = f"127.0.0.1:{mute.getsockname()[1]}"
        errors = attempts(tmp_path, "nowhere", "127.0.0.1:1", "auto", silent)
    assert errors[0] == "'nowhere' is not the address of a Ray cluster: expected host:port, `auto` or `local`"
    for absent in errors[1:3]:
        assert absent.startswith("no Ray cluster at 127.0.0.1:1: ")
        assert "deploy/head starts a cluster on this machine" in absent
    assert errors[3] == f"{silent} listens but does not answer as the head of a Ray cluster within 1 s"


def test_where_no_cluster_is_recorded_the_error_says_how_to_start_one(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("DSMS_RUN", str(tmp_path))
    monkeypatch.setattr(cluster, "RAY_ADDRESS_FILE", tmp_path / "none")
    with pytest.raises(
        DsmsError, match=r"no Ray cluster: RAY_ADDRESS is not set, and none is recorded in .*deploy/head"
    ):
        cluster.find_address()


def test_an_unknown_deployment_is_an_error(ray_cluster):
    with pytest.raises(DsmsError, match="no deployment 'nothing'"):
        cluster.get_deployment("nothing")


def test_a_process_joins_only_one_cluster(ray_cluster):
    cluster.connect("127.0.0.1:1")
    cluster.start_local_ray()
    assert ray_cluster.cluster_resources()["dsms_cpu"] == 4
