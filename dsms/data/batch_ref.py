"""BatchRef: describes a batch in another process: all that the engine needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from dsms.data.batch import Batch
from dsms.errors import DsmsError


@dataclass(frozen=True, slots=True)
class BatchRef:
    """A batch that lies where its readers are, under a key: how much it is, and what is stamped on it when it enters.

    A small batch travels with its reference instead.

    It has the attributes of a Batch that the engine reads; its sender has checked the rows against the schema.
    """

    key: str
    rows: int
    size: float  # bytes
    latest: int | None = None  # highest timestamp, if the stream has a timestamp column
    due: float | None = None  # mean of the instants at which its rows were due, if they have such
    seq: int = 0
    arrived: float = 0.0
    ts: int = 0
    watermark: int | None = None
    batch: Batch | None = field(default=None, compare=False, repr=False)  # None: it lies where its readers are

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise DsmsError(f"a BatchRef of {self.rows} rows: expected at least one")

    def __len__(self) -> int:
        return self.rows

    def lag(self, now: float) -> float:
        """Return the mean delay of its rows since they were due; 0 if not known."""
        return 0.0 if self.due is None else now - self.due

    def memory(self) -> float:
        """Return its bytes."""
        return self.size

    def first(self, name: str) -> float:
        """Return an attribute that all its rows share."""
        return float(getattr(self, name))
