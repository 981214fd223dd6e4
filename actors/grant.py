"""A grant as it travels from host to host: the turn, what hosts must know to carry it on, and what they have done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dsms.batch import Batch
from dsms.errand import Errand
from dsms.goods import Outcome
from dsms.merging import Merge
from dsms.parcel import Parcel


@dataclass(eq=False, slots=True)
class Mark:
    """A queue as a grant knows it: whose, and how far the scheduler knows it to be filled."""

    index: int
    station: str
    port: int
    place: int  # of the host that holds it
    oldest: float
    due: int  # batches that its producer has put out by now
    merge: Merge[Mark] | None = None
    feeds: tuple[Mark, ...] = ()  # the queues known here that what comes of its tuples goes into


class Arrival(NamedTuple):
    """What has come by a stream, for the queues of one host that read it."""

    batch: Batch | Parcel
    queues: tuple[tuple[str, int], ...]
    since: float


class Output(NamedTuple):
    """A batch, or a reference to it, on its way to a queue elsewhere: the so-manieth that its producer has made."""

    station: str
    port: int
    number: int
    batch: Any
    since: float


class Did(NamedTuple):
    """One step of a turn, as the scheduler is told."""

    queue: int  # its place in the ledger
    outcome: Outcome
    made: Batch | None  # only where it is asked for


@dataclass(eq=False, slots=True)
class Grant:
    """A turn on its way."""

    errand: Errand[Mark]
    arrivals: list[Arrival]  # all that has come for the host it begins at since that was last told: others need none
    results: dict[str, int]  # by query: how many batches of results have been put out
    bring: bool = False  # whether what sinks make is to come back
    did: list[Did] = field(default_factory=list)
    seconds: float = 0.0  # that hosts were busy with it


class Onward(NamedTuple):
    """Where a turn goes on, with what it takes along: for a scheduler that hosts cannot call."""

    place: int
    grant: Grant
    outputs: list[Output]


class Turn(NamedTuple):
    """What came of a grant so far."""

    did: list[Did]
    seconds: float  # that hosts were busy with it
    onward: Onward | None = None  # None: it is over
