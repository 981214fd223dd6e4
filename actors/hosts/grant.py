"""The messages of a turn: the grant that travels from host to host, and the report that returns to the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import ray

from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.engine.ordered_merge import OrderedMerge
from dsms.engine.runners.station_state import StepOutcome
from dsms.engine.runners.turn_cursor import TurnCursor


@dataclass(eq=False, slots=True)
class QueueCursor:
    """A queue as a grant describes it: the station that reads it, and how far the scheduler knows it to be filled."""

    index: int
    station: str
    port: int
    place: int  # index of the host that holds it
    oldest: float
    produced: int  # batches that its producer has output so far
    coalesce: bool = False  # whether small batches in it may share a step
    merge: OrderedMerge[QueueCursor] | None = None
    downstream: tuple[QueueCursor, ...] = ()  # queues of this grant that receive what its tuples produce


class Arrival(NamedTuple):
    """A batch of a stream, for the queues of one host that read it."""

    batch: Batch | BatchRef
    queues: tuple[tuple[str, int], ...]
    since: float


class Output(NamedTuple):
    """A batch, or a reference to it, for a queue of another host; `number` counts the batches of its producer."""

    station: str
    port: int
    number: int
    batch: Batch | ray.ObjectRef[Batch]
    since: float


class StepReport(NamedTuple):
    """One step of a turn, as reported to the scheduler."""

    queue: int  # its index in the ledger
    outcome: StepOutcome
    made: Batch | None  # only where the scheduler asks for results


@dataclass(eq=False, slots=True)
class Grant:
    """A turn on its way through the hosts."""

    cursor: TurnCursor[QueueCursor]
    arrivals: list[Arrival]  # batches that arrived for the first host since its last grant
    results: dict[str, int]  # by query: batches of results so far
    return_results: bool = False  # whether the report carries the results
    # The monotonic reading at instant 0 of the scheduler's clock; None: time passes by declared costs. All hosts of a
    # domain are on the scheduler's node, so that they read the same monotonic clock.
    origin: float | None = None
    steps: list[StepReport] = field(default_factory=list)
    seconds: float = 0.0  # that hosts spent on it


class Forward(NamedTuple):
    """The host that continues a turn, and what it needs, for a scheduler that calls hosts itself."""

    place: int
    grant: Grant
    outputs: list[Output]


class TurnReport(NamedTuple):
    """The outcome of a grant so far."""

    steps: list[StepReport]
    seconds: float  # that hosts spent on it
    forward: Forward | None = None  # None: the turn is over
