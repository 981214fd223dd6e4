"""Joining a cluster: within seconds, or a reason why not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from actors import cluster
from dsms.errors import DsmsError

pytestmark = pytest.mark.ray

# In a process of its own: this one may be part of a cluster already.
TRY = """
import sys
from actors import cluster
from dsms.errors import DsmsError
for address in sys.argv[1:]:
    try:
        cluster.connect(address, timeout=1.0)
    except DsmsError as error:
        print(error)
"""


def attempts(tmp_path, *addresses):
    """What trying to join each of these comes to."""
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


def test_a_head_that_is_not_there_is_an_error_within_seconds(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as mute:  # it listens, and never says a word
        silent = f"127.0.0.1:{mute.getsockname()[1]}"
        said = attempts(tmp_path, "nowhere", "127.0.0.1:1", "auto", silent)
    assert said[0] == "'nowhere' is not the address of a Ray cluster: host:port, `auto` or `local` is wanted"
    for absent in said[1:3]:
        assert absent.startswith("no Ray cluster at 127.0.0.1:1: ")
        assert "deploy/head starts a cluster on this machine" in absent
    assert said[3] == f"{silent} listens but does not answer as the head of a Ray cluster within 1 s"


def test_where_no_cluster_is_recorded_the_error_says_how_to_start_one(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("DSMS_RUN", str(tmp_path))
    monkeypatch.setattr(cluster, "RECORD", tmp_path / "none")
    with pytest.raises(
        DsmsError, match=r"no Ray cluster: RAY_ADDRESS is not set, and none is recorded in .*deploy/head"
    ):
        cluster.recorded()


def test_a_deployment_that_there_is_not_is_an_error(ray_cluster):
    with pytest.raises(DsmsError, match="no deployment 'nothing'"):
        cluster.deployment("nothing")


def test_the_cluster_of_this_process_is_joined_but_once(ray_cluster):
    cluster.connect("127.0.0.1:1")
    cluster.local()
    assert ray_cluster.cluster_resources()["dsms_cpu"] == 4
