"""Rows that are elsewhere: what the engine has to know of a batch that it never sees."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.errors import DsmsError


@dataclass(frozen=True, slots=True)
class Parcel:
    """A batch that lies where its readers are, under a key: how much it is, and what is stamped on it when it enters.

    It has of a Batch what the engine asks for; whoever sent it has checked the rows against the stream's schema.
    """

    key: str
    rows: int
    size: float  # bytes
    latest: int | None = None  # the highest timestamp in it, where the stream's are in a column
    due: float | None = None  # when its rows were due to arrive, on average, where each says so itself
    seq: int = 0
    arrived: float = 0.0
    ts: int = 0
    upto: int | None = None

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise DsmsError(f"a parcel of {self.rows} rows: at least one is wanted")

    def __len__(self) -> int:
        return self.rows

    def lag(self, now: float) -> float:
        """How long ago its rows were due, on average; 0 where they do not say."""
        return 0.0 if self.due is None else now - self.due

    def memory(self) -> float:
        """Its bytes."""
        return self.size

    def first(self, name: str) -> float:
        """What is stamped on its first row, as on all others."""
        return float(getattr(self, name))
