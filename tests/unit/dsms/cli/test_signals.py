"""Ctrl-C and TERM while a command runs: each is handled once, at any moment."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from dsms.cli.signals import handle_signals, ignore_signals, wait_for_signal


class InterruptsInDel:
    """An object that is interrupted while it is collected, where Python drops errors."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_that_python_drops_is_repeated(number):
    def interrupted() -> None:
        made = InterruptsInDel(number)
        del made
        time.sleep(20)
        pytest.fail("it was not heard")

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), handle_signals():
        interrupted()
    assert time.monotonic() - begun < 10  # in the middle of the sleep


def test_nothing_is_repeated_once_it_is_over():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with handle_signals():
            made = InterruptsInDel(signal.SIGTERM)
            del made
        time.sleep(0.2)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not heard


def test_what_is_dropped_while_nothing_may_disturb_is_not_repeated():
    before, reached = signal.getsignal(signal.SIGTERM), []
    with handle_signals(), ignore_signals():
        made = InterruptsInDel(signal.SIGTERM)
        del made
        time.sleep(0.2)
        reached.append("the end of the block")
    assert reached == ["the end of the block"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_errors_of_that_kind_are_told_as_before(monkeypatch):
    unraisable = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)

    class RaisesInDel:
        def __del__(self) -> None:
            raise ValueError

    with handle_signals():
        made = RaisesInDel()
        del made
    assert [error.exc_type for error in unraisable] == [ValueError]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wait_ends_although_the_signal_does_not_interrupt_it(number):
    """Another thread gets the signal: Python notes it for the main thread, but no call of the main thread returns."""
    thread = threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), number))
    thread.start()
    with pytest.raises(KeyboardInterrupt), handle_signals():
        wait_for_signal()
    thread.join()
