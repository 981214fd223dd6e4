"""The send window: frames sent and not acknowledged, limited in number and bytes, to resend after a reconnect."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dsms.errors import DsmsError
from dsms.net.wire.producer_state import IN_FLIGHT_BYTES, IN_FLIGHT_FRAMES


class SendWindow:
    """Holds frames by sequence until they are acknowledged or refused; a failure ends all waits."""

    def __init__(self, frames: int = IN_FLIGHT_FRAMES, size: int = IN_FLIGHT_BYTES) -> None:
        self.failure: DsmsError | None = None
        self._frame_limit, self._byte_limit = frames, size
        self._frames: dict[int, bytes] = {}
        self._bytes = 0
        self._last = 0
        self._changed = threading.Condition()

    @property
    def last(self) -> int:
        """The highest sequence so far."""
        return self._last

    def begin(self, sequence: int) -> bool:
        """Continue after the sequence that the gateway acknowledged; return whether that completes a frame here."""
        self._last = max(self._last, sequence)
        return self.acknowledge(sequence)

    def add(self, make_frame: Callable[[int], bytes], number: int | None = None) -> bytes:
        """Make the next frame and hold it; its sequence is `number`, by default one more than the last."""
        with self._changed:
            number = self._last + 1 if number is None else number
            frame = make_frame(number)  # may raise: then the number stays unused
            self._last = max(self._last, number)
            self._frames[number] = frame
            self._bytes += len(frame)
        return frame

    def acknowledge(self, sequence: int) -> bool:
        """Release all frames up to this one; return whether there was any."""
        with self._changed:
            acknowledged = [each for each in self._frames if each <= sequence]
            for each in acknowledged:
                self._bytes -= len(self._frames.pop(each))
            self._changed.notify_all()
        return bool(acknowledged)

    def drop(self, sequence: int) -> bool:
        """Release a refused frame, so that it is not resent; return whether it was in flight."""
        with self._changed:
            frame = self._frames.pop(sequence, None)
            self._bytes -= len(frame or b"")
            self._changed.notify_all()
        return frame is not None

    def fail(self, error: DsmsError) -> None:
        """End all waits: the gateway will acknowledge nothing more."""
        with self._changed:
            self.failure = error
            self._changed.notify_all()

    def list_unacknowledged(self) -> list[bytes]:
        """List the frames to resend, in order."""
        with self._changed:
            return list(self._frames.values())

    def wait_for_room(self) -> None:
        """Wait until the window has room for another frame."""
        with self._changed:
            self._changed.wait_for(lambda: self.failure or self._has_room())

    def wait_for_all(self, timeout: float | None) -> int:
        """Wait until all frames are acknowledged; return how many are not."""
        with self._changed:
            self._changed.wait_for(lambda: self.failure or not self._frames, timeout)
            return len(self._frames)

    def _has_room(self) -> bool:
        return self._bytes < self._byte_limit and len(self._frames) < self._frame_limit
