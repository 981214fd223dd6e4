"""Random packets as text lines in the formats of the Internet Traffic Archive, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EPOCH = 757_718_465  # a second in 1994


@dataclass(frozen=True)
class Packets:
    """Packets: their times in seconds, and their columns of whole numbers."""

    times: list[float]
    numbers: dict[str, list[int]]

    @classmethod
    def made(cls, count: int, seed: int = 0) -> Packets:
        random = np.random.default_rng(seed)
        times = np.round(0.25 + np.cumsum(random.exponential(0.01, count)), 6)
        highest = {"source": 9, "destination": 9, "source_port": 9999, "destination_port": 1024, "size": 1460}
        return cls(times.tolist(), {name: random.integers(0, top, count).tolist() for name, top in highest.items()})

    def lines(self, *names: str, stamped: bool = True, more: str = "") -> list[str]:
        """Their lines with these columns; if `stamped`, the first time counts from 1970, as in the archive's files."""
        columns = [self.numbers[name] for name in names]
        shown = [f"{time:.6f}" for time in self.times]
        if stamped:
            shown[0] = f"{EPOCH + self.times[0]:.6f}"
        return [" ".join([time, *map(str, rest)]) + more for time, *rest in zip(shown, *columns, strict=True)]
