"""What deploy/ says, as far as it can be checked without running it; test_two_nodes.py runs the scripts."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from importlib.metadata import version

import pytest
import yaml
from support.paths import ROOT

DEPLOY = ROOT / "deploy"
SCRIPTS = ("head", "worker", "stop", "submit", "prometheus")


def run(script, *arguments, **environment):
    """What a script answers within seconds: its exit code, and all it says."""
    done = subprocess.run(
        [DEPLOY / script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def containers():
    """By role: what KubeRay starts it with, and its container."""
    cluster = next(
        one for one in yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text()) if one["kind"] == "RayCluster"
    )
    for group in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        yield group["rayStartParams"], group["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("script", [*SCRIPTS, "node.sh"])
def test_every_script_is_bash(script):
    subprocess.run(["bash", "-n", DEPLOY / script], check=True)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_can_be_run_is_strict_and_explains_itself(script):
    text = (DEPLOY / script).read_text()
    assert os.access(DEPLOY / script, os.X_OK)
    assert "set -euo pipefail" in text
    assert "ray stop" not in re.sub(r"`ray stop` would", "", text.replace("\\", ""))
    code, said = run(script, "--help")
    assert (code, f"deploy/{script}" in said) == (0, True)


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("head", ["--prot", "1"], "no option '--prot'; --help lists them"),
        ("head", ["--port"], "--port wants a value"),
        ("head", ["--port", "x"], "--port: 'x' is not a whole number"),
        ("head", ["--port", "10500"], "port 10500 is in 10002-19999, which Ray refuses"),
        ("head", ["--port", "80"], "port 80 is not between 1024 and 65535"),
        ("worker", [], "'' is not HOST:PORT of a head"),
        ("worker", ["127.0.0.1:6379", "--ports", "9000"], "port 10999 is in 10002-19999"),
        ("submit", ["nowhere.toml"], "no plan 'nowhere.toml'"),
        ("stop", ["nothing"], "nothing called 'nothing' in"),
        ("prometheus", ["--port", "x"], "--port: 'x' is not a whole number"),
        ("prometheus", ["--interval", "5"], "--interval: '5' is not a time such as 1s or 500ms"),
        (
            "prometheus",
            ["--metrics", "http://here:1/metrics"],
            "'http://here:1/metrics' is neither HOST:PORT nor a file",
        ),
        ("prometheus", ["--ray", "nowhere.json"], "'nowhere.json' is neither HOST:PORT nor a file that is there"),
    ],
)
def test_a_wrong_call_is_refused_with_what_is_wanted(tmp_path, script, arguments, message):
    code, said = run(script, *arguments, DSMS_RUN=str(tmp_path), DSMS_RAY_TOKEN=str(tmp_path / "token"))
    assert code in (1, 2)
    assert message in said


def test_a_head_whose_port_is_taken_says_so(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = run("head", "--port", str(port), DSMS_RUN=str(tmp_path), DSMS_RAY_TOKEN=str(tmp_path / "token"))
    assert (code, f"port {port} is in use" in said) == (1, True)


def test_a_worker_without_a_token_or_without_a_head_says_so_at_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    token = tmp_path / "token"
    code, said = run("worker", address, DSMS_RUN=str(tmp_path), DSMS_RAY_TOKEN=str(token))
    assert (code, f"no token in {token}" in said) == (1, True)
    token.write_text("t")
    code, said = run("worker", address, DSMS_RUN=str(tmp_path), DSMS_RAY_TOKEN=str(token))
    assert (code, f"no head at {address}: nobody listens there" in said) == (1, True)


def test_without_prometheus_it_is_said_where_to_get_it():
    code, said = run("prometheus", DSMS_PROMETHEUS="no-such-program")
    assert (code, "no no-such-program: apt-get install prometheus" in said) == (1, True)


def test_the_command_beside_prometheus_has_the_environment_it_was_called_with(tmp_path):
    """A Ray that it starts must not look for the token of a cluster that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = tmp_path / "prometheus"  # whatever listens will do
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -m http.server --bind 127.0.0.1 {port}\n")
    program.chmod(0o755)
    code, said = run("prometheus", "--port", str(port), "--", "env", DSMS_PROMETHEUS=str(program), HOME=str(tmp_path))
    assert (code, f"HOME={tmp_path}" in said) == (0, True)
    assert f"{tmp_path}/.dsms" not in said  # where its token would be


def test_nothing_to_stop_is_no_error(tmp_path):
    assert run("stop", DSMS_RUN=str(tmp_path)) == (0, "ended: nothing was there\n")


def test_kuberay_nodes_have_budgets_and_the_token_from_a_secret():
    for params, container in containers():
        assert json.loads(json.loads(params["resources"]))["dsms_cpu"] > 0
        assert int(params["min-worker-port"]) > 19_999
        given = {entry["name"]: entry for entry in container["env"]}
        assert given["RAY_AUTH_MODE"]["value"] == "token"
        assert "secretKeyRef" in given["RAY_AUTH_TOKEN"]["valueFrom"]
        assert given["RAY_USAGE_STATS_ENABLED"]["value"] == "0"


def test_kuberay_asks_for_the_ray_that_is_installed():
    cluster = next(iter(yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())))
    assert cluster["spec"]["rayVersion"] == version("ray")


def test_compose_starts_workers_when_the_head_is_well():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert services["worker"]["depends_on"] == {"head": {"condition": "service_healthy"}}
    for service in services.values():
        words = shlex.split(service["command"])
        assert json.loads(next(w for w in words if w.startswith("--resources=")).partition("=")[2])["dsms_cpu"] > 0
        assert any(word.startswith("--object-store-memory=") for word in words)
        assert service["environment"]["RAY_AUTH_MODE"] == "token"
        assert service["secrets"] == ["ray_token"]
        assert "healthcheck" in service
    assert services["head"]["ports"] == ["127.0.0.1:7411:7411"]


def test_the_image_has_what_it_copies_and_no_registry_but_the_usual():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("FROM")] == ["FROM python:3.11-slim"]
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    assert all((DEPLOY.parent / name).exists() for name in copied)


def test_workers_of_a_node_are_as_nice_as_other_processes():
    shown = "source deploy/node.sh; guarded; echo $RAY_worker_niceness"
    environment = {name: value for name, value in os.environ.items() if name != "RAY_worker_niceness"}
    done = subprocess.run(["bash", "-c", shown], cwd=DEPLOY.parent, env=environment, capture_output=True, text=True)
    assert done.stdout == "0\n"
    for _, container in containers():
        assert {"name": "RAY_worker_niceness", "value": "0"} in container["env"]
