"""After a failed recovery nothing is saved until one succeeds, so that no result is lost."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from actors.checkpoints.store import CheckpointStore
from actors.control.deployment import Deployment
from actors.deployment.actor_handles import DeploymentActors, DomainActors
from actors.deployment.launch import DeploymentSpec
from actors.hosts.host import Host
from actors.recovery import supervisor
from actors.recovery.failure_detector import FailureDetector
from actors.recovery.supervisor import Supervisor
from actors.results.release import ReleaseWithCheckpoint
from actors.results.result_hub import ResultHub
from actors.scheduler.scheduler import Scheduler
from dsms.config.live import LiveConfig
from dsms.data.batch import Batch
from dsms.errors import DsmsError
from dsms.live.log_batch import LogBatch, LogItem

TABLE = {
    "streams": {"s": {"schema": {"id": "int64"}}},
    "queries": {
        "kept": {"cql": "SELECT id FROM s", "sink": {"jsonl": "kept.jsonl"}},
        "moved": {"cql": "SELECT id + 1 AS id FROM s", "sink": {"jsonl": "moved.jsonl"}},
    },
}
SETUP = LiveConfig(durable="d")


class NoFailures(FailureDetector):
    """A failure detector over plain objects."""

    def find_dead(self, actors):
        return set()


class SilentGateway:
    """Accepts every call, and has no clients."""

    def listen(self, host, port):
        return host, port

    def __getattr__(self, method):
        if method.startswith("_") or method == "remote":
            raise AttributeError(method)
        return lambda *_: None


class PlainSystem:
    """A deployment of plain objects that has saved one row of each query."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        monkeypatch.setattr(Supervisor, "start", lambda _: None)
        monkeypatch.setattr(supervisor, "kill_actors", lambda *_: None)
        monkeypatch.setattr(supervisor, "replace_actors", lambda *_: self.parts(None, incarnation=2))
        monkeypatch.setattr(CheckpointStore, "_check_logs", lambda *_: None)  # the gateway has none
        (folder / "d").mkdir(mode=0o700)
        spec = DeploymentSpec("x", TABLE, str(folder), "plan.toml", SETUP, [list(TABLE["queries"])], [1])
        parts = self.parts(list(TABLE["queries"]), incarnation=1)
        self.deployment = Deployment(spec, parts)
        self.checkpointer, self.supervisor = self.deployment._checkpointer, self.deployment._supervisor
        self.checkpointer.failure_detector = NoFailures()
        self.deployment.begin()
        rows = Batch.of({"id": np.array([7])})
        parts.actors_by_domain["0"].scheduler.apply_log_batch(LogBatch("gateway-0", 0, 1, [LogItem(1, "s", rows)]))
        while not all(query["held"] for query in parts.result_hub.status()["queries"]):
            pass
        self.deployment.checkpoint()
        self.deployment.checkpoint()  # this one records that the rows are in the files

    def parts(self, queries, incarnation):
        scheduler = Scheduler("0", TABLE, str(self.folder), "plan.toml", queries or [], SETUP)
        domain_actors = DomainActors("0", scheduler, (Host(),), incarnation)
        return DeploymentActors({"0": domain_actors}, (SilentGateway(),), ResultHub(ReleaseWithCheckpoint()))

    def lose_a_file(self):
        """Move a results file away and lose the process that writes it."""
        (self.folder / "moved.jsonl").rename(self.folder / "away")
        self.fail_to_recover()

    def fail_to_recover(self):
        with pytest.raises(DsmsError, match=r"moved\.jsonl") as failed:
            self.supervisor.recover({"outlet"})
        self.checkpointer.durability.record_failure(failed.value)

    def bring_file_back(self):
        (self.folder / "away").rename(self.folder / "moved.jsonl")

    def results(self):
        return [(self.folder / name).read_text() for name in ("kept.jsonl", "moved.jsonl")]


@pytest.fixture
def system(tmp_path, monkeypatch):
    return PlainSystem(tmp_path, monkeypatch)


CHANGES = {
    "checkpoint": (),
    "add": ({"queries": {"new": {"cql": "SELECT id FROM s"}}}, ".", "more.toml"),
    "remove": ("kept",),
    "move": ("kept", "0"),
    "swap": ("chain",),
    "pause": (),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_saved_or_changed_until_dead_actors_are_rebuilt(system, change):
    before = system.results()
    system.lose_a_file()
    saved = system.checkpointer.store.latest()[0]
    with pytest.raises(DsmsError, match=r"nothing is saved or changed.*moved\.jsonl.*last checkpoint is kept"):
        getattr(system.deployment, change)(*CHANGES[change])
    assert system.checkpointer.store.latest()[0].numbers == saved.numbers
    system.fail_to_recover()  # again, from what was saved
    system.bring_file_back()
    system.supervisor.recover({"outlet"})
    assert system.results() == before
    assert system.deployment.checkpoint()["number"] > 0


def test_down_without_a_checkpoint_returns_why(system, caplog):
    before = system.results()
    system.lose_a_file()
    saved = system.checkpointer.store._store.numbers()
    with caplog.at_level(logging.WARNING, "dsms"):
        reason = system.deployment.down()
    assert "nothing is saved or changed" in reason
    assert reason in caplog.text
    assert system.checkpointer.store._store.numbers() == saved
    system.bring_file_back()
    system.deployment._system.actors = system.parts(None, incarnation=3)
    system.supervisor.restore(["0"], everything=True)  # `dsms up --resume`
    assert system.results() == before


def test_down_after_a_checkpoint_returns_nothing(system):
    assert system.deployment.down() is None


def test_a_restarted_control_actor_that_ends_before_all_is_rebuilt_saves_nothing(system, monkeypatch):
    system.lose_a_file()
    deployment, saved = system.deployment, system.checkpointer.store._store.numbers()
    deployment._system.broken = set()  # another process knows nothing of it
    monkeypatch.setattr(supervisor, "tear_down", lambda *_, **__: [])
    monkeypatch.setattr(supervisor, "launch_actors", lambda _: system.parts(None, incarnation=3))
    monkeypatch.setattr(
        system.supervisor._ended, "wait", lambda _: system.supervisor._ended.set()
    )  # `dsms down` meanwhile
    system.supervisor.restart()
    assert "nothing is saved or changed" in deployment.down()
    assert system.checkpointer.store._store.numbers() == saved
