"""Every loss of a process is told from an error in code by its class, never by its message."""

from __future__ import annotations

import socket
import threading
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray
from ray import exceptions
from support.live.domains import PushedDomain
from support.messages import pass_on

from actors.hosts.grant import Forward, TurnReport
from actors.hosts.host import Host
from actors.hosts.host_pool import HostPool
from actors.hosts.host_sockets import HostSockets, SchedulerSockets
from actors.hosts.runner import ActorRunner
from actors.rpc.answers import await_answer
from actors.rpc.messages import get_result
from actors.rpc.process_loss import describe_error, is_process_gone, process_gone
from actors.scheduler.scheduler import Scheduler
from actors.transport.address import KEY_BYTES, Address, machine_id
from dsms.config.live import LiveConfig
from dsms.data.batch import Batch
from dsms.errors import Cause, DsmsError, OperatorError, cause_of
from dsms.live.query_set import QuerySet

MISLEADING = "a process is gone with the operators in it"  # in an error that means something else


def raised_in_an_actor(cause):
    return exceptions.RayTaskError("turn", "Traceback", cause).as_instanceof_cause()


GONE = [
    exceptions.RayActorError(),
    exceptions.ActorDiedError(),
    exceptions.ActorUnavailableError("the connection is reset", b"0" * 16),
    exceptions.WorkerCrashedError(),
    exceptions.NodeDiedError("the node is dead"),
    exceptions.LocalRayletDiedError(),
    exceptions.OwnerDiedError("0" * 56, None, ""),
    raised_in_an_actor(exceptions.ActorDiedError()),
    raised_in_an_actor(exceptions.OwnerDiedError("0" * 56, None, "")),
    raised_in_an_actor(OperatorError("it went", Cause.PROCESS_GONE)),
]
THERE = [
    exceptions.GetTimeoutError(MISLEADING),
    exceptions.ObjectStoreFullError(MISLEADING),
    exceptions.OutOfMemoryError(MISLEADING),
    OperatorError(MISLEADING),
    DsmsError(MISLEADING),
    EOFError(MISLEADING),  # of an operator's own file; the socket transport translates its own
    ConnectionResetError(MISLEADING),
    raised_in_an_actor(OperatorError(MISLEADING)),
    raised_in_an_actor(ConnectionResetError(MISLEADING)),
    raised_in_an_actor(ValueError(MISLEADING)),
]


def names(error):
    return type(error).__name__


@pytest.fixture
def fails(monkeypatch):
    """A reference whose call raises an error."""

    class Reference:
        pass

    monkeypatch.setattr(ray, "ObjectRef", Reference)

    def with_(error):
        def get(*_, **__):
            raise error

        monkeypatch.setattr(ray, "get", get)
        return Reference()

    return with_


@pytest.mark.parametrize("error", GONE, ids=names)
def test_a_call_whose_process_is_gone_says_so_by_its_cause(error, fails):
    assert is_process_gone(error)
    with pytest.raises(OperatorError) as caught:
        get_result(fails(error))
    assert cause_of(caught.value) is Cause.PROCESS_GONE
    with pytest.raises(DsmsError, match="what was asked"):
        await_answer(fails(error), "what was asked")


@pytest.mark.parametrize("error", THERE, ids=names)
def test_any_other_error_is_no_loss_whatever_its_message(error, fails):
    assert not is_process_gone(error)
    with pytest.raises(Exception, match=MISLEADING) as caught:
        get_result(fails(error))
    assert cause_of(caught.value) is Cause.ERROR


class FailingHost:
    """A host whose turns end with an error, or continue at host 1."""

    def __init__(self, error=None):
        self._error = error

    def grant(self, grant, outputs=()):
        if self._error is not None:
            raise self._error
        return TurnReport([], 0.0, [], Forward(1, grant, []))

    def learn(self, layout, forget):
        raise AssertionError("nothing is learned here")


@pytest.mark.parametrize("error", [*GONE, OperatorError("it went", Cause.PROCESS_GONE), *THERE], ids=names)
def test_the_cause_goes_with_an_error_from_host_to_scheduler(error):
    replies = []
    sockets: Any = HostSockets(FailingHost(error), {})
    sockets._scheduler = SimpleNamespace(send=replies.append)
    sockets._run(None, [])
    assert is_process_gone(pass_on(replies[0].error)) == is_process_gone(error)


def test_the_description_of_an_error_is_its_message_and_not_its_cause():
    assert describe_error(OperatorError("the third failed")) == "the third failed"
    assert describe_error(raised_in_an_actor(OperatorError("the third failed"))) == "the third failed"
    assert str(process_gone(EOFError())) == f"{MISLEADING}: EOFError"


class Closed:
    """One end of a socket whose other end is closed."""

    def __init__(self, error):
        self._error = error

    def send(self, _):
        raise self._error

    receive = send


SOCKET_ERRORS = [EOFError(), ConnectionResetError(104, "reset"), BrokenPipeError(32, "broken"), OSError(9, "closed")]


@pytest.mark.parametrize("error", SOCKET_ERRORS, ids=names)
def test_a_closed_socket_means_that_the_process_at_its_other_end_is_gone(error):
    sockets = SchedulerSockets([])
    sockets._sockets = [Closed(error)]
    with pytest.raises(OperatorError) as caught:
        sockets.run_turn(0, None)
    assert caught.value.cause is Cause.PROCESS_GONE
    assert "host 0" in str(caught.value)


@pytest.mark.parametrize("error", SOCKET_ERRORS, ids=names)
def test_a_host_that_cannot_forward_a_grant_reports_why_to_the_scheduler(error):
    replies = []
    sockets: Any = HostSockets(FailingHost(), {})
    sockets._scheduler, sockets._sockets = SimpleNamespace(send=replies.append), {1: Closed(error)}
    sockets._run(None, [])
    assert cause_of(replies[0].error) is Cause.PROCESS_GONE
    assert "host 1" in str(replies[0].error)


@pytest.mark.parametrize("accepts", [False, True])
def test_a_socket_to_a_process_that_is_gone_cannot_be_opened(accepts):
    """The process no longer listens, or ends before it answers."""
    name = f"dsms-test-{threading.get_ident()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX) as listener:
        if accepts:
            listener.bind(f"\0{name}")
            listener.listen()
            threading.Thread(target=lambda: listener.accept()[0].close(), daemon=True).start()
        with pytest.raises(OperatorError) as caught:
            SchedulerSockets([Address(machine_id(), name, bytes(KEY_BYTES))])
    assert caught.value.cause is Cause.PROCESS_GONE


@pytest.mark.parametrize("cause", Cause)
def test_a_domain_and_its_scheduler_say_why_it_has_failed(cause, tmp_path, monkeypatch):
    def step(_):
        raise OperatorError("no", cause)

    table = {"streams": {"s": {"schema": {"id": "int64"}}}, "queries": {"q": {"cql": "SELECT id FROM s"}}}
    domain = PushedDomain("0", QuerySet(table), LiveConfig())
    assert domain.cause is None
    monkeypatch.setattr(type(domain.engine), "step", step)
    domain._step()
    assert (domain.state, domain.cause, domain.error) == ("failed", cause, "OperatorError: no")
    scheduler = Scheduler("0", table, str(tmp_path), "plan.toml", None, LiveConfig())
    with pytest.raises(DsmsError, match="not been opened"):
        scheduler.failure()
    scheduler._domain = domain
    assert scheduler.failure() is cause


def test_an_operators_own_end_of_file_is_an_error_in_code():
    def read(_):
        raise EOFError("the file ends")

    table = {
        "streams": {"s": {"schema": {"id": "int64"}}},
        "queries": {"q": {"from": "s", "operators": [{"name": "reads", "function": read}]}},
        "run": {"on_error": "fail"},
    }
    runner = partial(ActorRunner, host_pool=HostPool([Host()], sockets=True))
    domain = PushedDomain("0", QuerySet(table), LiveConfig(), runner=runner)
    domain.start()
    try:
        domain.admit([("s", Batch.of({"id": np.array([1])}))])
        while domain.state != "failed":
            time.sleep(0.01)
        assert domain.cause is Cause.ERROR
    finally:
        domain.close()
