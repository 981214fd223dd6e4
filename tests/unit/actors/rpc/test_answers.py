"""Waiting for answers: plain objects answer at once, and every error of Ray becomes one of ours."""

from __future__ import annotations

from typing import Any

import pytest
import ray
from ray import exceptions

from actors.rpc.answers import await_answer, await_answers
from actors.rpc.messages import get_results, send
from dsms.errors import DsmsError


class Adder:
    """A plain object in the place of an actor."""

    def add(self, one: int, other: int = 1) -> int:
        return one + other


class PendingCall:
    """In the place of a reference."""


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make every wait for a reference raise an error."""
    monkeypatch.setattr(ray, "ObjectRef", PendingCall)

    def with_error(error: BaseException) -> Any:
        def get(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(ray, "get", get)
        return PendingCall()

    return with_error


def test_a_plain_object_answers_at_once() -> None:
    assert await_answer(send(Adder().add, 1), "adding") == 2
    assert await_answers([send(Adder().add, n, 10) for n in (1, 2)], "adding") == [11, 12]
    assert get_results([send(Adder().add, 1)]) == [2]


def test_waiting_for_nothing_starts_no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "get", lambda *_, **__: pytest.fail("Ray was called"))
    assert await_answers([], "nothing") == []


def test_no_answer_in_time_is_an_error_that_names_the_call(fails: Any) -> None:
    with pytest.raises(DsmsError, match=r"^the status: no answer within 3 s$"):
        await_answer(fails(exceptions.GetTimeoutError("late")), "the status", 3.0)


def test_an_error_of_ours_is_raised_as_it_was_there(fails: Any) -> None:
    cause = DsmsError("no query 'x'")
    with pytest.raises(DsmsError) as caught:
        await_answer(fails(exceptions.RayTaskError("add", "Traceback", cause).as_instanceof_cause()), "adding")
    assert (caught.value, caught.value.__cause__) == (cause, None)


def test_an_error_in_code_names_the_call_and_keeps_its_traceback(fails: Any) -> None:
    error = exceptions.RayTaskError("add", "Traceback", KeyError("x")).as_instanceof_cause()
    with pytest.raises(DsmsError, match=r"^adding: KeyError: 'x'$") as caught:
        await_answer(fails(error), "adding")
    assert caught.value.__cause__ is error
