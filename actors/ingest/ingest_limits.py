"""Limits of what waits in a gateway: while one is exceeded, clients are not read."""

from __future__ import annotations

from collections.abc import Callable

IN_FLIGHT_LIMIT_BYTES = 256 * 1024 * 1024  # of frames that are not acknowledged, of all clients together


class IngestLimits:
    """The limits that are exceeded now, by name; `on_room` is called when the last no longer is."""

    def __init__(self) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.in_flight_limit = IN_FLIGHT_LIMIT_BYTES
        self._in_flight = 0.0
        self._exceeded: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether a limit is exceeded."""
        return bool(self._exceeded)

    def count_in_flight(self, size: float) -> None:
        """Add to the bytes in flight, or subtract."""
        self._in_flight += size
        self.apply("in flight", self._in_flight, self.in_flight_limit)

    def apply(self, what: str, size: float, most: float) -> None:
        """Compare a number of bytes with its limit; once exceeded, there is room again at half of it."""
        if size > most:
            self._exceeded.add(what)
        elif what in self._exceeded and size <= most / 2:
            self._exceeded.discard(what)
            if not self._exceeded:
                self.on_room()
