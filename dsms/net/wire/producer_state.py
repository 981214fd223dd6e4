"""The state of one producer at a gateway: frames accepted, in flight, refused and acknowledged."""

from __future__ import annotations

from collections.abc import Mapping

IN_FLIGHT_FRAMES = 256
KEPT_REFUSED_FRAMES = 1024  # refused frames remembered for each producer
IN_FLIGHT_BYTES = 64 * 1024 * 1024


class ProducerState:
    """Counts a producer's frames across its connections: accepts none twice, acknowledges none early."""

    def __init__(self, name: str, frames: int = IN_FLIGHT_FRAMES, size: int = IN_FLIGHT_BYTES) -> None:
        self.name = name
        self.last_accepted = 0  # the highest sequence accepted
        self.last_acknowledged = 0  # all frames up to this sequence are complete
        self.refused: dict[int, str] = {}  # reason by sequence: each may be sent again under its sequence
        self._frame_limit, self._byte_limit = frames, size
        self._bytes = 0
        self._waiting: dict[int, tuple[int, bool]] = {}  # in flight, by sequence in order: bytes, and is complete

    def restore(self, last_accepted: int, refused: Mapping[int, str]) -> None:
        """Continue from an earlier process's state: all frames that it accepted are complete."""
        self.last_accepted = self.last_acknowledged = last_accepted
        self.refused.update(refused)

    @property
    def waiting(self) -> int:
        """How many frames are in flight: accepted and not acknowledged."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether more frames or bytes are in flight than the limits allow."""
        return self._bytes > self._byte_limit or len(self._waiting) > self._frame_limit

    @property
    def has_room(self) -> bool:
        """Whether at most half of each limit is in flight, so that resuming to read pays."""
        return self._bytes <= self._byte_limit // 2 and len(self._waiting) <= self._frame_limit // 2

    def accept(self, sequence: int, size: int) -> bool:
        """Accept a frame if it is new or was refused before, and return True if so: it is in flight now."""
        if sequence <= self.last_accepted and self.refused.pop(sequence, None) is None:
            return False
        self._bytes += (
            size - self._waiting.get(sequence, (0, False))[0]
        )  # a refused frame may still wait for those before it
        self._waiting[sequence] = (size, False)
        if sequence <= self.last_accepted:
            self._waiting = dict(sorted(self._waiting.items()))
            self.last_acknowledged = min(self.last_acknowledged, sequence - 1)
        self.last_accepted = max(self.last_accepted, sequence)
        return True

    def complete(self, sequence: int, refused: str | None = None) -> None:
        """Mark a frame as admitted, or as refused for a reason; acknowledges all before the first incomplete frame."""
        self._waiting[sequence] = (self._waiting[sequence][0], True)
        if refused is not None:
            self.refused[sequence] = refused
            if len(self.refused) > KEPT_REFUSED_FRAMES:
                del self.refused[next(iter(self.refused))]
        while self._waiting:
            first = next(iter(self._waiting))
            size, is_complete = self._waiting[first]
            if not is_complete:
                break
            del self._waiting[first]
            self._bytes -= size
            self.last_acknowledged = max(self.last_acknowledged, first)
        if not self._waiting:  # a frame sent again may have lowered it
            self.last_acknowledged = self.last_accepted
