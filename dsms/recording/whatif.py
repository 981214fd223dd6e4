"""What other policies would have made of a recorded run: its arrivals, costs and selectivities, over again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from dsms.collecting import rarely_collecting
from dsms.engine import Engine
from dsms.errors import DsmsError, PolicyError
from dsms.policies.registry import policy_named
from dsms.recording.figures import Figures, Recorded, recorded
from dsms.recording.measured import Measured
from dsms.recording.recording import Recording
from dsms.recording.replay import engine_for
from dsms.recording.replica import replica

OFTEN = 1024  # turns between two looks at how far it is
# Given what is about to be done and how far it goes: to be told, while that goes on, how far it is.
Watched = Callable[[str, float], AbstractContextManager[Callable[[float], None] | None]]


@dataclass(frozen=True)
class WhatIf:
    """What was, and what would have been; each a table of figures."""

    recording: Recording
    recorded: Recorded
    again: dict[str, Any] | None  # the same policies at the same instants, replayed: how near a replay comes
    others: dict[str, dict[str, Any]] = field(default_factory=dict)  # by policy
    overhead: float = 0.0  # what a turn took besides its work
    cut: float | None = None  # where replays end, if not when all is done

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        about = self.recording.about
        return {
            "recording": str(self.recording.folder),
            **{key: about[key] for key in ("runtime", "clock", "plan", "complete")},
            "until": self.recorded.end,
            "overhead": self.overhead,
            "recorded": {**self.recorded.whole, "phases": self.recorded.phases},
            "replayed": self.again,
            "policies": [{"policy": text, **found} for text, found in self.others.items()],
        }


def what_if(
    recording: Recording,
    policies: Sequence[str],
    until: float | None = None,
    watched: Watched = lambda text, until: nullcontext(None),
) -> WhatIf:
    """Replay a recording under these policies, and under the one that ran; `until`: as if it had ended then."""
    for text in policies:
        policy_named(text)
    stop = math.inf if until is None else until
    if stop <= recording.since:
        raise DsmsError(f"until is {until!r}: the run in {recording.folder} began at {recording.since:g}")
    measured = Measured.of(recording, stop)
    was = recorded(recording, replica(recording, measured, stop, listed=False), stop)
    # A run that was cut with tuples held is compared with replays that are cut there, too.
    cut = was.end if until is not None or was.left > 0 or not recording.complete else math.inf
    replay = _Replay(recording, measured, was, cut, watched)
    ran = [(phase["since"], phase["policy"]) for phase in was.phases]
    return WhatIf(
        recording,
        was,
        replay.again(ran),
        {text: replay.under([(was.phases[0]["since"], text)]) for text in policies},
        measured.pace.line()[0],
        None if math.isinf(cut) else cut,
    )


@dataclass(frozen=True)
class _Replay:
    recording: Recording
    measured: Measured
    was: Recorded
    cut: float
    watched: Watched

    def again(self, phases: Sequence[tuple[float, str]]) -> dict[str, Any] | None:
        """Under who ran; None where one of them is not known here by its name."""
        try:
            for _, text in phases:
                policy_named(text)
        except PolicyError:
            return None
        return self.under(phases)

    def under(self, phases: Sequence[tuple[float, str]]) -> dict[str, Any]:
        """One policy, or one after the other from these instants on."""
        first, *ahead = phases
        engine = engine_for(self.recording, self.measured, policy_named(first[1]), (), self.was.end, self.cut)
        found = Figures()
        engine.watch(found)
        with rarely_collecting(), self.watched(first[1], self.was.end) as tell:
            _drive(engine, ahead, tell)
        engine.finish(self.cut if math.isfinite(self.cut) else max(engine.clock.now(), self.was.end))
        return found.told()


def _drive(engine: Engine, ahead: list[tuple[float, str]], tell: Callable[[float], None] | None) -> None:
    turns, step, clock = 0, engine.step, engine.clock
    while step():
        turns += 1
        while ahead and clock.now() >= ahead[0][0]:
            engine.swap(policy_named(ahead.pop(0)[1]))
        if tell is not None and not turns % OFTEN:
            tell(clock.now())
