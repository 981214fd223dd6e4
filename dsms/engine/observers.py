"""Observer: receives the engine's events without changing them; one that fails gets no more events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsms.data.journal import Journal
    from dsms.engine.engine import Engine
    from dsms.engine.ledger import Queue
    from dsms.engine.policy import Policy
    from dsms.engine.runners.runner import Step
    from dsms.plan.segment import Segment

log = logging.getLogger("dsms")


class Observer:
    """Override the events to receive; the others cost nothing."""

    trusted = False  # True: an exception it raises ends the run

    def attach(self, engine: Engine) -> None:
        """The engine has added this observer."""

    def read(self, journal: Journal) -> None:
        """A part of the run in columns: every few thousand turns and at the end, so cheap but delayed."""

    def elapse(self, now: float) -> None:
        """Time has advanced to `now`; nothing has changed since the last call."""

    def arrive(self, now: float, stream: int, count: int) -> None:
        """Tuples of a stream (by index in the plan) have been admitted."""

    def begin(self, now: float) -> None:
        """A decision is made and its turn is about to start; turns that follow without a choice are not announced."""

    def taking(self, now: float) -> None:
        """Memory is about to shrink without time passing: a step starts, or the run ends."""

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        """A turn has been run and accounted for."""

    def shed(self, now: float, queue: Queue, count: float, size: float) -> None:
        """Tuples that waited in a queue, `size` bytes of them, have been dropped."""

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        """Another policy decides from the next turn on."""


EVENTS = ("read", "elapse", "arrive", "begin", "taking", "turn", "swap", "shed")


class ObserverList:
    """The observers of an engine; for each event, the methods of the observers that override it.

    The lists of methods stay the same objects, so that the engine's loop may hold them.
    """

    def __init__(self) -> None:
        self._observers: list[Observer] = []
        self.on_read: list[Callable[..., None]] = []
        self.on_elapse: list[Callable[..., None]] = []
        self.on_arrive: list[Callable[..., None]] = []
        self.on_begin: list[Callable[..., None]] = []
        self.on_taking: list[Callable[..., None]] = []
        self.on_turn: list[Callable[..., None]] = []
        self.on_swap: list[Callable[..., None]] = []
        self.on_shed: list[Callable[..., None]] = []

    def __iter__(self) -> Iterator[Observer]:
        return iter(self._observers)

    def add(self, *observers: Observer) -> None:
        """Notify these observers from now on."""
        self._observers += observers
        self._collect()

    def remove(self, observer: Observer) -> None:
        """Stop notifying this observer."""
        self._observers.remove(observer)
        self._collect()

    def _collect(self) -> None:
        for event in EVENTS:
            receivers = [o for o in self._observers if getattr(type(o), event) is not getattr(Observer, event)]
            methods: list[Callable[..., None]] = getattr(self, f"on_{event}")
            methods[:] = [getattr(o, event) if o.trusted else _guard(getattr(o, event)) for o in receivers]


def _guard(method: Callable[..., None]) -> Callable[..., None]:
    failed = False

    def call(*arguments: Any) -> None:
        nonlocal failed
        if failed:
            return
        try:
            method(*arguments)
        except Exception:
            failed = True
            log.exception("observer %s failed and gets no more events", method.__qualname__)

    return call
