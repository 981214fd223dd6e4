"""Measures how much of its memory limit a domain uses: bytes in all queues plus bytes of operator state."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dsms.clock import monotonic_s
from dsms.config.live import LiveConfig

if TYPE_CHECKING:
    from dsms.engine.engine import Engine
    from dsms.live.monitor.monitor import Monitor

CGROUP_LIMIT_FILES = (  # of cgroup version 2 and version 1
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
MEMORY_SHARE_DIVISOR = 4  # by default all domains of a machine together may use this part of its memory
STATE_SIZE_AGE_S = 5.0  # how old a measured state size may be: measuring takes a while
STATE_SIZE_AGE_NEAR_LIMIT_S = 0.1  # the same while the domain may be above its limit
RECHECK_FRACTION = 1 / 16  # of the limit: once this much was admitted, state is measured again at once
STATE_GROWTH_FACTOR = 4  # state may grow by this many times the admitted bytes: indices, results of joins


@dataclass(frozen=True)
class MemoryLimits:
    """The most rows and bytes that a domain may hold."""

    rows: float = math.inf
    bytes: float = math.inf

    def fraction(self, rows: float, size: float) -> float:
        """The used fraction of the tighter limit; 1 means full."""
        return max(rows / self.rows, size / self.bytes)


class MemoryUsage:
    """Compares a domain's queues and state with its limits; remembers the last measured size of operator state."""

    def __init__(self, setup: LiveConfig) -> None:
        share = (
            read_memory_bytes() / MEMORY_SHARE_DIVISOR / setup.domains if setup.most_bytes is None else setup.most_bytes
        )
        self.limits = MemoryLimits(math.inf if setup.most_rows is None else setup.most_rows, share)
        self._state: Mapping[str, float] = {}
        self._measured_at = -math.inf
        self._admitted_bytes = 0.0  # since the last measurement

    def note_admitted(self, size: float) -> None:
        """Count the bytes of rows that were just admitted."""
        self._admitted_bytes += size

    def fraction(self, monitor: Monitor, engine: Engine) -> float:
        """The used fraction of the limits: a shared row counts once, its bytes once for every reader."""
        queued, state = count_queued_bytes(monitor, engine), sum(self._state.values())
        if queued + state + STATE_GROWTH_FACTOR * self._admitted_bytes > self.limits.bytes:
            is_outdated = self._admitted_bytes > RECHECK_FRACTION * self.limits.bytes
            state = sum(self.state_bytes(engine, 0.0 if is_outdated else STATE_SIZE_AGE_NEAR_LIMIT_S).values())
        return self.limits.fraction(engine.ledger.held, queued + state)

    def describe_largest(self) -> str:
        """Name the operator with the largest state, as last measured."""
        if not self._state:
            return "no operator holds state"
        name = max(self._state, key=lambda name: self._state[name])
        return f"operator {name!r} holds {self._state[name] / 1e6:,.1f} MB"

    def state_bytes(self, engine: Engine, max_age: float = STATE_SIZE_AGE_S) -> Mapping[str, float]:
        """Bytes of operator state by station, measured at most `max_age` seconds ago."""
        if monotonic_s() - self._measured_at > max_age:
            self._state, self._measured_at, self._admitted_bytes = engine.row_runner.state_bytes(), monotonic_s(), 0.0
        return self._state


def count_queued_bytes(monitor: Monitor, engine: Engine) -> float:
    """The bytes in all queues; a row that several stations read counts once for each."""
    return sum(monitor.times.queue_bytes(station.index) for station in engine.plan.stations)


def read_memory_bytes(limits: Iterable[Path] = CGROUP_LIMIT_FILES) -> int:
    """The memory of this machine or, if smaller, of this container; used memory included."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *filter(None, map(_read_limit, limits))])


def _read_limit(file: Path) -> int | None:
    """The number in a cgroup file; None if the file does not exist or sets no limit ("max")."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
