"""Compares a recorded run with replays of its arrivals, costs and selectivities under other policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dsms.engine.engine import Engine
from dsms.errors import DsmsError, PolicyError
from dsms.gc_tuning import reduce_gc
from dsms.measure.turn_overhead import NO_OVERHEAD, TurnOverhead
from dsms.policies.registry import policy_named
from dsms.recording.abstract_plan import build_replica_plan
from dsms.recording.measured_costs import RecordedWork
from dsms.recording.prediction import ALL_CAUSES, Causes, Prediction, split_by_cause
from dsms.recording.recording import Recording
from dsms.recording.replay import create_replay_engine
from dsms.recording.summary import FigureObserver, RecordedFigures, read_figures

PROGRESS_INTERVAL_TURNS = 1024  # between two reports of progress
LEAST_STRETCH = 1e-6  # of costs: less is rounding
MAX_TUPLES = 30_000_000  # steps on tuples, beyond which replays would take minutes
MAX_TUPLES_ONE_BY_ONE = 3_000_000  # steps on tuples, beyond which a prediction begins with the run's slices
# Called with the name of a replay and its end; yields a function that takes the time reached so far.
Watched = Callable[[str, float], AbstractContextManager[Callable[[float], None] | None]]


@dataclass(frozen=True)
class WhatIf:
    """The figures of a recorded run and of its replays."""

    recording: Recording
    recorded: RecordedFigures
    again: dict[str, Any] | None  # the same policies at the same instants, replayed: shows the accuracy of replays
    others: dict[str, dict[str, Any]] = field(default_factory=dict)  # by policy
    overhead: TurnOverhead = NO_OVERHEAD
    prediction: Prediction | None = None  # None: one of the recorded policies is unknown here
    cut: float | None = None  # when replays stop; None: when all work is done

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        about = self.recording.about
        return {
            "recording": str(self.recording.folder),
            **{key: about[key] for key in ("runtime", "clock", "plan", "complete")},
            "until": self.recorded.end,
            "overhead": self.overhead._asdict(),
            "recorded": {**self.recorded.whole, "phases": self.recorded.phases},
            "replayed": self.again,
            "prediction": None if self.prediction is None else self.prediction.to_json(),
            "policies": [{"policy": text, **found} for text, found in self.others.items()],
        }


def what_if(
    recording: Recording,
    policies: Sequence[str],
    until: float | None = None,
    watched: Watched = lambda text, until: nullcontext(None),
) -> WhatIf:
    """Replay a recording under these policies, and under the recorded ones; `until` cuts the run there."""
    for text in policies:
        policy_named(text)
    stop = math.inf if until is None else until
    if stop <= recording.since:
        raise DsmsError(f"until is {until!r}: the run in {recording.folder} began at {recording.since:g}")
    measured = RecordedWork.of(recording, stop)
    was = read_figures(recording, build_replica_plan(recording, measured, stop, listed=False), stop)
    # A run that was cut while it held tuples is compared with replays that are cut at the same instant.
    cut = was.end if until is not None or was.left > 0 or not recording.complete else math.inf
    replay = _ReplayRun(recording, measured, was, cut, watched)
    ran = [(phase["since"], phase["policy"]) for phase in was.phases]
    again = replay.again(ran)
    return WhatIf(
        recording,
        was,
        again,
        {text: replay.under([(was.phases[0]["since"], text)]) for text in policies},
        measured.pace.fit(),
        None if again is None else replay.predict(ran, again),
        None if math.isinf(cut) else cut,
    )


def predict(recording: Recording) -> Prediction | None:
    """Compare a recording with its simulation; None if it is too long, has no turns or has a policy unknown here."""
    tuples = RecordedWork.of(recording).tuples()
    return what_if(recording, ()).prediction if 0 < tuples <= MAX_TUPLES else None


@dataclass(frozen=True)
class _ReplayRun:
    recording: Recording
    measured: RecordedWork
    was: RecordedFigures
    cut: float
    watched: Watched

    def again(self, phases: Sequence[tuple[float, str]]) -> dict[str, Any] | None:
        """Replay the recorded policies; None if one of them is unknown here."""
        try:
            for _, text in phases:
                policy_named(text)
        except PolicyError:
            return None
        return self.under(phases)

    def predict(self, phases: Sequence[tuple[float, str]], again: dict[str, Any]) -> Prediction:
        """Replay the recorded policies without the causes that the run has, then with one after the other."""
        about, overhead = self.recording.about, self.measured.pace.fit()
        virtual, settings = about["clock"] == "virtual", about["settings"]
        present = {
            "slice": about["slice"] is not None and self.measured.tuples() <= MAX_TUPLES_ONE_BY_ONE,
            "late_rows": not virtual and any(part["lag"].any() for part in self.recording.table("arrivals", "lag")),
            "dead_time": (settings.get("turn_cost", 0.0) if virtual else overhead.turn) > 0,
            "hops": (settings.get("hop_cost", 0.0) if virtual else overhead.hop) > 0,
            "stretch": abs(overhead.stretch - 1) > LEAST_STRETCH,
        }
        relevant = [name for name in Causes._fields if present[name]]
        return split_by_cause(self.was.whole, partial(self.under, phases), relevant, again)

    def under(self, phases: Sequence[tuple[float, str]], causes: Causes = ALL_CAUSES) -> dict[str, Any]:
        """Replay one policy, or several, each from its instant on."""
        first, *ahead = phases
        policy, end = policy_named(first[1]), self.was.end
        engine = create_replay_engine(self.recording, self.measured, policy, (), end, self.cut, causes)
        figures = FigureObserver()
        engine.watch(figures)
        with reduce_gc(), self.watched(first[1], self.was.end) as tell:
            _drive(engine, ahead, tell)
        engine.finish(self.cut if math.isfinite(self.cut) else max(engine.clock.now(), self.was.end))
        return figures.to_json()


def _drive(engine: Engine, ahead: list[tuple[float, str]], tell: Callable[[float], None] | None) -> None:
    turns, step, clock = 0, engine.step, engine.clock
    while step():
        turns += 1
        while ahead and clock.now() >= ahead[0][0]:
            engine.swap(policy_named(ahead.pop(0)[1]))
        if tell is not None and not turns % PROGRESS_INTERVAL_TURNS:
            tell(clock.now())
