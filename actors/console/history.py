"""What a domain's figures were of late: one sample a look, the oldest forgotten."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

KEPT = 300  # samples: five minutes at one a second


class Sample(NamedTuple):
    """A domain's figures at an instant of its own clock; what is not known is None."""

    at: float
    held: float | None
    bound: float | None  # the least that any scheduler would hold
    p50: float | None
    p99: float | None
    fresh: float | None  # share of recent time, mean over queries
    least_fresh: float | None  # the same of the worst of them
    decides: str | None


class History:
    """The last samples of one domain."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: deque[Sample] = deque(maxlen=kept)

    def add(self, domain: Mapping[str, Any]) -> None:
        """Take down how things stand; a clock that has gone back is another run's, and begins anew."""
        now = domain.get("now")
        if now is None:
            return
        if self._kept and now < self._kept[-1].at:
            self._kept.clear()
        if not self._kept or now > self._kept[-1].at:
            self._kept.append(sample(now, domain))

    def samples(self) -> tuple[Sample, ...]:
        """The oldest first."""
        return tuple(self._kept)


def sample(now: float, domain: Mapping[str, Any]) -> Sample:
    """The figures of a domain's status."""
    latency = domain.get("latency") or {}
    stale = [query["staleness"] for query in domain["queries"] if query.get("staleness") is not None]
    return Sample(
        now,
        domain.get("held"),
        domain.get("bound"),
        latency.get("p50"),
        latency.get("p99"),
        _rest(domain.get("staleness")),
        _rest(max(stale, default=None)),
        domain.get("decides"),
    )


def _rest(share: float | None) -> float | None:
    return None if share is None else max(0.0, 1.0 - share)
