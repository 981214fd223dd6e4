"""Ctrl-C and TERM while a command runs: heard wherever they come, and once."""

from __future__ import annotations

import signal
import time

import pytest

from dsms.cli.stopping import stoppable, undisturbed


class Interrupted:
    """Something that is interrupted while it is collected, where Python lets no error out."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_that_python_drops_is_repeated(number):
    def interrupted() -> None:
        made = Interrupted(number)
        del made
        time.sleep(20)
        pytest.fail("it was not heard")

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), stoppable():
        interrupted()
    assert time.monotonic() - begun < 10  # in the middle of the sleep


def test_nothing_is_repeated_once_it_is_over():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with stoppable():
            made = Interrupted(signal.SIGTERM)
            del made
        time.sleep(0.2)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not heard


def test_what_is_dropped_while_nothing_may_disturb_is_not_repeated():
    with stoppable(), undisturbed():
        made = Interrupted(signal.SIGTERM)
        del made
        time.sleep(0.2)


def test_other_errors_of_that_kind_are_told_as_before(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)

    class Broken:
        def __del__(self) -> None:
            raise ValueError

    with stoppable():
        made = Broken()
        del made
    assert [error.exc_type for error in told] == [ValueError]
