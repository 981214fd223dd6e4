"""The last decisions, with all who could have been chosen: some of them looked at closely, all of them counted."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dsms.advice.why import Decision, Look
from dsms.clock import RealClock, stopwatch
from dsms.observers import Observer
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.selection.gatherer import text_of

if TYPE_CHECKING:
    from dsms.engine import Engine

KEPT = 20
SPARING = 100  # on a real clock: looking takes at most one part in so many of the time
SELDOM = 1024  # in virtual time, which looking takes none of: at last every so many-th decision is looked at,
OFTEN = 16  # and before, of n decisions, one in n/16


class Recent(Observer):
    """Looks as often as it may: it costs as much as ranking all segments anew."""

    trusted = True

    def __init__(self) -> None:
        self.count = 0  # decisions
        self._kept: deque[Decision] = deque(maxlen=KEPT)
        self._look: Look | None = None  # at the decision whose turn is being carried out
        self._next = 1.0  # the decision, or the instant, from which on to look again

    def attach(self, engine: Engine) -> None:
        self._engine, self._look = engine, None
        self._real = isinstance(engine.clock, RealClock)
        self._next = -math.inf if self._real else self.count + 1

    def begin(self, now: float) -> None:
        self.count += 1
        if (now if self._real else self.count) >= self._next:
            began = stopwatch()
            self._look, self._at = Look(self._engine), now
            if self._real:
                self._next = now + SPARING * (stopwatch() - began)
            else:
                self._next = self.count + min(SELDOM, max(1, self.count // OFTEN))

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._look is not None:
            self._look.close(start, segment, steps)
            policy = text_of(self._engine.chosen)
            self._kept.append(self._look.decision(policy, self._at, self._at, self.count))
            self._look = None

    def last(self, count: int) -> list[dict[str, Any]]:
        """The newest first."""
        return [decision.to_json() for decision in list(self._kept)[: -count - 1 : -1]] if count > 0 else []
