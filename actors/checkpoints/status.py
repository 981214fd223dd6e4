"""A deployment's durability: its last checkpoint, the pauses for checkpoints, and its recoveries."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from actors.rpc.messages import JsonObject
from dsms.clock import monotonic_s, wall_time_s
from dsms.live.monitor.metrics import Samples
from dsms.measure.histogram import Histogram
from dsms.measure.metric_names import PAUSE

RECOVERIES_KEPT = 100  # whose duration is remembered


class DurabilityStatus:
    """Counts since the process started, but recoveries since the deployment did; any thread may read it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._checkpoint: JsonObject | None = None
        self._error: str | None = None  # of the last checkpoint or recovery, if it failed
        self._failing: float | None = None  # since when they fail
        self._checkpoints = 0
        self._pauses: dict[str, Histogram] = {}  # by domain
        self.recoveries = 0
        self._took: deque[float] = deque(maxlen=RECOVERIES_KEPT)  # seconds, of the last recoveries

    def record_checkpoint(self, checkpoint: JsonObject, pauses: Mapping[str, float], seconds: float) -> None:
        """Record a new checkpoint, and how long the turns of each domain waited for it."""
        for domain, pause in pauses.items():
            self._pauses.setdefault(domain, Histogram(PAUSE)).add(pause)
        self._checkpoints += 1
        took = {"at": wall_time_s(), "pause": max(pauses.values()), "seconds": seconds}
        self._checkpoint, self._error, self._failing = {**checkpoint, **took}, None, None

    def record_failure(self, error: Exception) -> None:
        """Record that a checkpoint or a recovery has failed."""
        self._error = str(error)
        if self._failing is None:
            self._failing = monotonic_s()

    def record_recovery(self, seconds: float | None = None) -> None:
        """Record a recovery, and its duration if that is known."""
        self.recoveries += 1
        if seconds is not None:
            self._took.append(seconds)

    @property
    def overdue_s(self) -> float:
        """Seconds since checkpoints began to fail; 0 while they succeed."""
        return 0.0 if self._failing is None else monotonic_s() - self._failing

    @property
    def checkpoint(self) -> JsonObject:
        """The last checkpoint; empty before the first."""
        return dict(self._checkpoint or {})

    @property
    def error(self) -> str | None:
        """Why the last checkpoint or recovery failed; None if it did not."""
        return self._error

    def status(self) -> JsonObject:
        """Return it as plain data."""
        took = sorted(self._took)
        middle = took[len(took) // 2] if took else None
        recovered = {"recoveries": self.recoveries, "median": middle, "worst": max(took, default=None)}
        last = {**self._checkpoint, "age": self._age()} if self._checkpoint is not None else None
        return {"folder": self._folder, "checkpoint": last, "error": self._error, **recovered}

    def metrics(self) -> Samples:
        """Return it as samples; before the first checkpoint some are missing."""
        samples: Samples = {
            "dsms_checkpoint_pause_seconds": [
                ((domain,), pauses.to_sample()) for domain, pauses in list(self._pauses.items())
            ],
            "dsms_checkpoint_failed": [((), float(self._error is not None))],
            "dsms_checkpoints_total": [((), self._checkpoints)],
            "dsms_recoveries_total": [((), self.recoveries)],
        }
        if self._checkpoint is not None:
            samples["dsms_checkpoint_age_seconds"] = [((), self._age())]
            samples["dsms_checkpoint_bytes"] = [((), self._checkpoint["bytes"])]
        return samples

    def _age(self) -> float:
        """Seconds since the last checkpoint."""
        return max(0.0, wall_time_s() - float(self.checkpoint["at"]))
