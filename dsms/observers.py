"""Watching without touching: what an observer is told, and the guard that keeps a broken one from breaking the loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.journal import Journal
    from dsms.ledger import Queue
    from dsms.policies.base import Policy
    from dsms.runners.base import Step
    from dsms.segment import Segment

log = logging.getLogger("dsms")


class Observer:
    """Sees what the engine does; override what you want to hear of, the rest costs nothing."""

    trusted = False  # True: called without the guard, so that its failure ends the run

    def attach(self, engine: Engine) -> None:
        """The run is about to begin."""

    def read(self, journal: Journal) -> None:
        """A stretch of the run in columns, every few thousand turns and at the end: cheap, not at once."""

    def elapse(self, now: float) -> None:
        """Time has come to `now`, and nothing has changed since the call before; what changes, changes after this."""

    def arrive(self, now: float, stream: int, count: int) -> None:
        """Tuples of a stream (its place in the plan) have been admitted."""

    def begin(self, now: float) -> None:
        """A turn is about to start."""

    def taking(self, now: float) -> None:
        """Something is about to leave memory though no time has passed: a step starts, or the run is over."""

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        """A turn has been carried out and accounted for."""

    def shed(self, now: float, queue: Queue, count: float, size: float) -> None:
        """So many tuples that waited there, of so many bytes, have been given up."""

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        """Another policy decides from now on."""


EVENTS = ("read", "elapse", "arrive", "begin", "taking", "turn", "swap", "shed")


def listeners(observers: Sequence[Observer], event: str) -> list[Callable[..., None]]:
    """The observers' methods for an event, those who do not care left out."""
    heard = [o for o in observers if getattr(type(o), event) is not getattr(Observer, event)]
    return [getattr(o, event) if o.trusted else _guarded(getattr(o, event)) for o in heard]


def _guarded(method: Callable[..., None]) -> Callable[..., None]:
    failed = False

    def call(*arguments: Any) -> None:
        nonlocal failed
        if failed:
            return
        try:
            method(*arguments)
        except Exception:
            failed = True
            log.exception("observer %s failed and is not told any more", method.__qualname__)

    return call
