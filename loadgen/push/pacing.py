"""Groups rows into frames, sends each frame when it is due, and counts how late rows were sent."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dsms.data.batch import Batch

GRAIN_S = 0.02  # rows due within one such interval are sent together, when the last of them is due


class Frame(NamedTuple):
    """Rows of a stream that are sent together, at the instant when the last of them is due."""

    at: float
    stream: str
    rows: Batch


@dataclass
class SendStats:
    """Counts of the rows sent, and how late they were."""

    rows: int = 0
    frames: int = 0
    late: float = 0.0  # the greatest delay of a frame after it was due, in seconds
    lateness: float = 0.0  # the sum of all rows' delays, in seconds
    due: Counter[int] = field(default_factory=Counter)  # rows by the second in which they were due
    sent: Counter[int] = field(default_factory=Counter)  # rows by the second in which they were sent

    def record(self, frame: Frame, now: float) -> None:
        """Count a frame that was sent at this instant."""
        late = max(0.0, now - frame.at)
        self.rows += frame.rows.rows
        self.frames += 1
        self.late = max(self.late, late)
        self.lateness += late * frame.rows.rows
        self.sent[int(now)] += frame.rows.rows
        seconds, counts = np.unique(np.floor(frame.rows.each("arrived")).astype(np.int64), return_counts=True)
        self.due.update(dict(zip(seconds.tolist(), counts.tolist(), strict=True)))

    def add(self, other: SendStats) -> None:
        """Add the counts of another task."""
        self.rows += other.rows
        self.frames += other.frames
        self.late = max(self.late, other.late)
        self.lateness += other.lateness
        self.due.update(other.due)
        self.sent.update(other.sent)

    def to_json(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {**vars(self), "due": dict(self.due), "sent": dict(self.sent)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> SendStats:
        """The counts from plain data, in which JSON has turned numeric keys into text."""
        counts = {key: Counter({int(second): rows for second, rows in data[key].items()}) for key in ("due", "sent")}
        return cls(**{**data, **counts})

    @property
    def share_misplaced(self) -> float:
        """The share of rows that were sent in another second than that in which they were due."""
        seconds = self.due.keys() | self.sent.keys()
        return sum(abs(self.due[s] - self.sent[s]) for s in seconds) / 2 / self.rows if self.rows else 0.0


def make_frames(parts: Iterable[tuple[str, Batch]], grain: float) -> list[Frame]:
    """Group the rows of each stream into intervals of `grain` seconds, and sort the frames by when they are due."""
    frames = [frame for stream, rows in parts for frame in _cut_frames(stream, rows, grain)]
    return sorted(frames, key=lambda frame: frame.at)  # stable: rows of a stream that are due together keep their order


def _cut_frames(stream: str, rows: Batch, grain: float) -> Iterator[Frame]:
    """Cut one stream's rows into frames, in the order in which they are due."""
    due = rows.each("arrived")
    if not rows.rows:
        return
    if (np.diff(due) < 0).any():
        rows = rows.pick(np.argsort(due, kind="stable"))
        due = rows.each("arrived")
    interval = np.floor(due / grain)
    bounds = [0, *(np.flatnonzero(np.diff(interval)) + 1).tolist(), rows.rows]
    for first, end in itertools.pairwise(bounds):
        yield Frame(float(due[end - 1]), stream, rows.pick(slice(first, end)))


def send_paced(
    schedule: Iterable[Frame],
    send: Callable[[Frame], object],
    now: Callable[[], float],
    wait: Callable[[float], object],
) -> SendStats:
    """Send every frame when it is due; an overdue frame is sent at once, and later frames are not shifted."""
    stats = SendStats()
    for frame in schedule:
        if (ahead := frame.at - now()) > 0:
            wait(ahead)
        send(frame)
        stats.record(frame, now())
    return stats
