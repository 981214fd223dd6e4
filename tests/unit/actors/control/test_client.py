"""How commands ask: an answer in time, or what went wrong far away said here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from actors.control import client as asking
from actors.control.deployment import Deployment
from actors.scheduler.verbs import ALL_VERBS
from dsms.errors import DsmsError


class Remote:
    """A handle whose every method answers with a reference to what `ray.get` then makes of it."""

    def __getattr__(self, method: str) -> Any:
        return SimpleNamespace(remote=lambda *given, **named: (method, given, named))


def test_asking_waits_for_the_answer_but_not_for_ever(monkeypatch):
    import ray

    monkeypatch.setattr(ray, "get", lambda reference, timeout: (*reference, timeout))
    assert asking.ask(Remote(), "swap", "fifo", domain="0", timeout=3.0) == ("swap", ("fifo",), {"domain": "0"}, 3.0)


def test_what_goes_wrong_far_away_is_said_here(monkeypatch):
    import ray
    from ray.exceptions import ActorDiedError, GetTimeoutError, RayTaskError

    def answer(error: Exception) -> str:
        def get(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(ray, "get", get)
        with pytest.raises(DsmsError) as caught:
            asking.ask(Remote(), "status")
        return f"{type(caught.value).__name__}: {caught.value}"

    assert (
        answer(GetTimeoutError("late")) == "FailedError: no answer within 40 s; the deployment may still carry it out"
    )
    assert answer(ActorDiedError()).startswith("FailedError: it has ended or cannot be reached (")
    theirs = RayTaskError("status", "Traceback", DsmsError("no query 'x'")).as_instanceof_cause()
    assert answer(theirs) == "DsmsError: no query 'x'"
    theirs = RayTaskError("status", "Traceback", KeyError("x")).as_instanceof_cause()
    assert answer(theirs) == "FailedError: KeyError: 'x'"


def test_without_ray_the_commands_say_what_to_install(monkeypatch):
    def absent(name: str) -> None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")

    monkeypatch.setattr(asking, "import_module", absent)
    with pytest.raises(DsmsError, match=r"install dsms\[ray\]"):
        asking.import_runtime("cluster.cluster")


def test_a_deployment_has_a_method_for_every_verb():
    assert [verb.name for verb in ALL_VERBS if not callable(getattr(Deployment, verb.name, None))] == []
