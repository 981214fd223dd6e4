"""The recent history of a domain's figures: one sample per poll, the oldest dropped."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dsms.live.monitor.status import DomainStatus

HISTORY_SAMPLES = 300  # five minutes at one sample a second


class Sample(NamedTuple):
    """A domain's figures at an instant of its own clock; None: unknown."""

    at: float
    held: float | None
    bound: float | None  # the least that any scheduler would hold
    p50: float | None
    p99: float | None
    fresh: float | None  # share of recent time, mean over queries
    least_fresh: float | None  # of the stalest query
    decides: str | None


class History:
    """The last samples of one domain."""

    def __init__(self, kept: int = HISTORY_SAMPLES) -> None:
        self._kept: deque[Sample] = deque(maxlen=kept)

    def add(self, domain: DomainStatus) -> None:
        """Add a sample; a clock that went back belongs to another run, whose history starts empty."""
        now = domain.now
        if now is None:
            return
        if self._kept and now < self._kept[-1].at:
            self._kept.clear()
        if not self._kept or now > self._kept[-1].at:
            self._kept.append(sample(now, domain))

    def samples(self) -> tuple[Sample, ...]:
        """The oldest first."""
        return tuple(self._kept)


def sample(now: float, domain: DomainStatus) -> Sample:
    """The figures of a domain's status."""
    stale = [query.staleness for query in domain.queries if query.staleness is not None]
    return Sample(
        now,
        domain.held,
        domain.bound,
        domain.latency.p50,
        domain.latency.p99,
        _rest(domain.staleness),
        _rest(max(stale, default=None)),
        domain.decides,
    )


def _rest(share: float | None) -> float | None:
    return None if share is None else max(0.0, 1.0 - share)
