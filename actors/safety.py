"""How safe a deployment is: its last checkpoint, how long turns had to wait for each, and how often it was rebuilt."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from typing import Any

from dsms.clock import epoch, stopwatch
from dsms.live.metrics import Samples
from dsms.metric_names import PAUSE

RECENT = 100  # recoveries that are remembered


class Safety:
    """Counts from the beginning of a process, but for recoveries, which are saved; any thread may ask."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._checkpoint: dict[str, Any] | None = None
        self._error: str | None = None  # why there was none when there should have been
        self._failing: float | None = None  # since when
        self._checkpoints = 0
        self._pauses: dict[str, tuple[list[int], float]] = {}  # by domain: how many in each bucket, and their sum
        self.recoveries = 0
        self._took: deque[float] = deque(maxlen=RECENT)  # seconds, of the last recoveries

    def saved(self, checkpoint: Mapping[str, Any], pauses: Mapping[str, float], seconds: float) -> None:
        """There is a new checkpoint, for which the turns of each domain had to wait so long."""
        for domain, pause in pauses.items():
            counts, total = self._pauses.get(domain, ([0] * (len(PAUSE) + 1), 0.0))
            place = bisect_left(PAUSE, pause)
            self._pauses[domain] = [count + (at == place) for at, count in enumerate(counts)], total + pause
        self._checkpoints += 1
        took = {"at": epoch(), "pause": max(pauses.values()), "seconds": seconds}
        self._checkpoint, self._error, self._failing = {**checkpoint, **took}, None, None

    def failed(self, error: Exception) -> None:
        """What was to be saved, or rebuilt, is not."""
        self._error = str(error)
        if self._failing is None:
            self._failing = stopwatch()

    def recovered(self, seconds: float | None = None) -> None:
        """What was gone is there again, after so long if that is known."""
        self.recoveries += 1
        if seconds is not None:
            self._took.append(seconds)

    @property
    def overdue(self) -> float:
        """For how many seconds it has failed to be saved."""
        return 0.0 if self._failing is None else stopwatch() - self._failing

    @property
    def checkpoint(self) -> dict[str, Any]:
        """The last one; nothing if there is none yet."""
        return dict(self._checkpoint or {})

    def status(self) -> dict[str, Any]:
        """As plain data."""
        took = sorted(self._took)
        middle = took[len(took) // 2] if took else None
        recovered = {"recoveries": self.recoveries, "median": middle, "worst": max(took, default=None)}
        last = {**self._checkpoint, "age": self._age()} if self._checkpoint is not None else None
        return {"folder": self._folder, "checkpoint": last, "error": self._error, **recovered}

    def metrics(self) -> Samples:
        """As samples; of a checkpoint that is not there yet there are none."""
        found: Samples = {
            "dsms_checkpoint_pause_seconds": [((domain,), told) for domain, told in self._pauses.items()],
            "dsms_checkpoint_failed": [((), float(self._error is not None))],
            "dsms_checkpoints_total": [((), self._checkpoints)],
            "dsms_recoveries_total": [((), self.recoveries)],
        }
        if self._checkpoint is not None:
            found["dsms_checkpoint_age_seconds"] = [((), self._age())]
            found["dsms_checkpoint_bytes"] = [((), self._checkpoint["bytes"])]
        return found

    def _age(self) -> float:
        """Seconds since the last one."""
        return max(0.0, epoch() - float(self.checkpoint["at"]))
