"""What is known of one producer's frames: which came before, which are on their way, up to which all are safe."""

from __future__ import annotations

from collections.abc import Mapping

FRAMES = 256
REFUSED = 1024  # frames that are remembered as refused
BYTES = 64 * 1024 * 1024


class Producer:
    """Counts the frames of one producer over all its connections, so that none is taken twice or acknowledged early."""

    def __init__(self, name: str, frames: int = FRAMES, size: int = BYTES) -> None:
        self.name = name
        self.taken = 0  # the last sequence that was taken in
        self.safe = 0  # up to here all are done
        self.refused: dict[int, str] = {}  # by sequence, with the reason: each may be sent again under its number
        self._most, self._size = frames, size
        self._bytes = 0
        self._waiting: dict[int, tuple[int, bool]] = {}  # by sequence, in order: bytes, and whether it is done

    def recall(self, taken: int, refused: Mapping[int, str]) -> None:
        """Go on from what was known of it by a process that is gone: all that it took in is safe."""
        self.taken = self.safe = taken
        self.refused.update(refused)

    @property
    def waiting(self) -> int:
        """Frames that were taken in and are not safe."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether more is on its way than should be."""
        return self._bytes > self._size or len(self._waiting) > self._most

    @property
    def roomy(self) -> bool:
        """Whether there is room again, and enough of it that reading on is worth while."""
        return self._bytes <= self._size // 2 and len(self._waiting) <= self._most // 2

    def take(self, sequence: int, size: int) -> bool:
        """Whether this frame is new, or was refused before; if so it is now on its way."""
        if sequence <= self.taken and self.refused.pop(sequence, None) is None:
            return False
        self._bytes += size - self._waiting.get(sequence, (0, False))[0]  # it may still wait for others, refused
        self._waiting[sequence] = (size, False)
        if sequence <= self.taken:
            self._waiting = dict(sorted(self._waiting.items()))
            self.safe = min(self.safe, sequence - 1)
        self.taken = max(self.taken, sequence)
        return True

    def done(self, sequence: int, refused: str | None = None) -> None:
        """The frame has come to where it should, or is refused, for this reason."""
        self._waiting[sequence] = (self._waiting[sequence][0], True)
        if refused is not None:
            self.refused[sequence] = refused
            if len(self.refused) > REFUSED:
                del self.refused[next(iter(self.refused))]
        while self._waiting:
            first = next(iter(self._waiting))
            size, done = self._waiting[first]
            if not done:
                break
            del self._waiting[first]
            self._bytes -= size
            self.safe = max(self.safe, first)
        if not self._waiting:  # one that came again may have had a lower number than what was safe before
            self.safe = self.taken
