"""The frames that were sent and not acknowledged: how many there may be, and which to send again."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dsms.errors import DsmsError
from dsms.wire.producer import BYTES, FRAMES


class Window:
    """Frames by sequence until they are acknowledged or refused; waits end when a failure is set."""

    def __init__(self, frames: int = FRAMES, size: int = BYTES) -> None:
        self.failure: DsmsError | None = None
        self._most, self._size = frames, size
        self._frames: dict[int, bytes] = {}
        self._bytes = 0
        self._last = 0
        self._changed = threading.Condition()

    @property
    def last(self) -> int:
        """The sequence of the newest frame."""
        return self._last

    def begin(self, sequence: int) -> bool:
        """Go on after the number that the other side knows, if that is higher; answers whether it is news."""
        self._last = max(self._last, sequence)
        return self.acknowledge(sequence)

    def add(self, made: Callable[[int], bytes], number: int | None = None) -> bytes:
        """The next frame, made with its sequence: one more than the last, unless it is given."""
        with self._changed:
            number = self._last + 1 if number is None else number
            frame = made(number)  # the number is used only if the frame can be made
            self._last = max(self._last, number)
            self._frames[number] = frame
            self._bytes += len(frame)
        return frame

    def acknowledge(self, sequence: int) -> bool:
        """All up to this one are safe; answers whether any was not before."""
        with self._changed:
            known = [each for each in self._frames if each <= sequence]
            for each in known:
                self._bytes -= len(self._frames.pop(each))
            self._changed.notify_all()
        return bool(known)

    def drop(self, sequence: int) -> bool:
        """This one is refused, and not sent again; answers whether it was under way."""
        with self._changed:
            frame = self._frames.pop(sequence, None)
            self._bytes -= len(frame or b"")
            self._changed.notify_all()
        return frame is not None

    def fail(self, error: DsmsError) -> None:
        """Nothing more will be acknowledged."""
        with self._changed:
            self.failure = error
            self._changed.notify_all()

    def unsafe(self) -> list[bytes]:
        """The frames to send again, in order."""
        with self._changed:
            return list(self._frames.values())

    def wait_for_room(self) -> None:
        """Wait until another frame may be sent."""
        with self._changed:
            self._changed.wait_for(lambda: self.failure or self._roomy())

    def wait_for_all(self, timeout: float | None) -> int:
        """Wait until all is acknowledged; answers how many frames are not."""
        with self._changed:
            self._changed.wait_for(lambda: self.failure or not self._frames, timeout)
            return len(self._frames)

    def _roomy(self) -> bool:
        return self._bytes < self._size and len(self._frames) < self._most
