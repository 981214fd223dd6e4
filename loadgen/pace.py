"""Rows sent when they are due, not when they happen to be there: a schedule of frames, and what became of it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dsms.batch import Batch

GRAIN = 0.02  # seconds: rows due in one stretch of it go together, when the last of them is due


class Frame(NamedTuple):
    """Rows of a stream that go together, and when: with the last of them."""

    at: float
    stream: str
    rows: Batch


@dataclass
class Delivery:
    """What was sent, by the second it was due and the second it went in, and how late."""

    rows: int = 0
    frames: int = 0
    late: float = 0.0  # the most by which a frame was sent after it was due
    lateness: float = 0.0  # of all rows added up
    due: Counter[int] = field(default_factory=Counter)  # rows, by the second they were due in
    sent: Counter[int] = field(default_factory=Counter)  # rows, by the second they were sent in

    def note(self, frame: Frame, now: float) -> None:
        """A frame was sent at this instant."""
        late = max(0.0, now - frame.at)
        self.rows += frame.rows.rows
        self.frames += 1
        self.late = max(self.late, late)
        self.lateness += late * frame.rows.rows
        self.sent[int(now)] += frame.rows.rows
        seconds, counts = np.unique(np.floor(frame.rows.each("arrived")).astype(np.int64), return_counts=True)
        self.due.update(dict(zip(seconds.tolist(), counts.tolist(), strict=True)))

    def add(self, other: Delivery) -> None:
        """Put another's to this one's."""
        self.rows += other.rows
        self.frames += other.frames
        self.late = max(self.late, other.late)
        self.lateness += other.lateness
        self.due.update(other.due)
        self.sent.update(other.sent)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "due": dict(self.due), "sent": dict(self.sent)}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Delivery:
        """From plain data, in which numbers that are keys have become text."""
        counts = {key: Counter({int(second): rows for second, rows in found[key].items()}) for key in ("due", "sent")}
        return cls(**{**found, **counts})

    @property
    def misplaced(self) -> float:
        """The share of rows that were sent in another second than the one they were due in."""
        seconds = self.due.keys() | self.sent.keys()
        return sum(abs(self.due[s] - self.sent[s]) for s in seconds) / 2 / self.rows if self.rows else 0.0


def frames(parts: Iterable[tuple[str, Batch]], grain: float) -> list[Frame]:
    """Rows that say when they are due, cut into stretches of time; in the order in which they go."""
    found = [frame for stream, rows in parts for frame in _cut(stream, rows, grain)]
    return sorted(found, key=lambda frame: frame.at)  # stable: a stream's rows that are due together keep their order


def _cut(stream: str, rows: Batch, grain: float) -> Iterator[Frame]:
    """One stream's rows; they come in the order in which they are due."""
    due = rows.each("arrived")
    if not rows.rows:
        return
    if (np.diff(due) < 0).any():
        rows = rows.pick(np.argsort(due, kind="stable"))
        due = rows.each("arrived")
    stretch = np.floor(due / grain)
    bounds = [0, *(np.flatnonzero(np.diff(stretch)) + 1).tolist(), rows.rows]
    for first, end in itertools.pairwise(bounds):
        yield Frame(float(due[end - 1]), stream, rows.pick(slice(first, end)))


def paced(
    schedule: Iterable[Frame],
    send: Callable[[Frame], object],
    now: Callable[[], float],
    wait: Callable[[float], object],
) -> Delivery:
    """Send every frame when it is due; what is late is sent at once, and its delay is not made up for."""
    delivery = Delivery()
    for frame in schedule:
        if (ahead := frame.at - now()) > 0:
            wait(ahead)
        send(frame)
        delivery.note(frame, now())
    return delivery
