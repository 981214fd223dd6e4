"""The messages of a turn: the grant that travels from host to host, and the report that returns to the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.data.dead_letter import DeadLetter
from dsms.engine.runners.station_state import StepOutcome
from dsms.engine.runners.turn_cursor import CursorState


class Arrival(NamedTuple):
    """A batch of a stream, for the queues of one host that read it."""

    batch: Batch | BatchRef
    queues: tuple[tuple[str, int], ...]
    since: float


class Output(NamedTuple):
    """A batch for a queue of another host; `number` counts the batches of its producer."""

    station: str
    port: int
    number: int
    batch: Batch
    since: float


class StepReport(NamedTuple):
    """One step of a turn, as reported to the scheduler."""

    queue: int  # its index in the ledger
    outcome: StepOutcome
    made: Batch | None  # only where the scheduler asks for results


class BegunTurn(NamedTuple):
    """A turn that a host began by itself."""

    layout: int
    start: float
    first_step: int  # its index among all steps of the report


class Grant(NamedTuple):
    """A turn on its way through the hosts, which have learned the segment's layout before."""

    layout: int  # number of the segment's layout
    cursor: CursorState | None  # None: a turn begins with the only queue that the turn before has filled
    heads: list[float]  # by queue of the layout: the sequence number of its head
    produced: list[int]  # by queue of the layout: the batches that its producer has output so far
    results: dict[str, int]  # by query: batches of results so far
    arrivals: list[Arrival]  # batches that arrived for the first host since its last grant
    steps: list[StepReport]  # so far
    filled: dict[int, tuple[int, float]]  # by queue of another segment that got tuples: batches produced, its head
    turns: list[BegunTurn]  # that hosts began by themselves
    seconds: float = 0.0  # that hosts spent on it
    has_ended: bool = False  # whether ordered merges know that no more tuples arrive
    return_results: bool = False  # whether the report carries the results
    # The monotonic reading at instant 0 of the scheduler's clock; None: time passes by declared costs. All hosts of a
    # domain are on the scheduler's node, so that they read the same monotonic clock.
    origin: float | None = None
    epoch: int | None = None  # while the scheduler's epoch is this, hosts go on to the next segment; None: they do not


class Forward(NamedTuple):
    """The host that continues a turn, and what it needs, for a scheduler that calls hosts itself."""

    place: int
    grant: Grant
    outputs: list[Output]


class TurnReport(NamedTuple):
    """The outcome of a grant so far."""

    steps: list[StepReport]
    seconds: float  # that hosts spent on it
    turns: list[BegunTurn]  # that hosts began by themselves
    forward: Forward | None = None  # None: the turn is over


def read_grant(fields: Sequence[Any]) -> Grant:
    """Return a grant from its fields as received."""
    grant = Grant(*fields)
    return grant._replace(
        cursor=None if grant.cursor is None else CursorState.read(grant.cursor),
        heads=list(grant.heads),
        produced=list(grant.produced),
        arrivals=[Arrival(*arrival) for arrival in grant.arrivals],
        steps=list(grant.steps),
        turns=[BegunTurn(*turn) for turn in grant.turns],
    )


def read_outputs(fields: Sequence[Sequence[Any]]) -> list[Output]:
    """Return outputs from their fields as received."""
    return [Output(*output) for output in fields]


def read_report(fields: Sequence[Any]) -> TurnReport:
    """Return a report from its fields as received."""
    steps, seconds, turns = fields
    reports = [StepReport(index, _read_outcome(outcome), made) for index, outcome, made in steps]
    return TurnReport(reports, seconds, [BegunTurn(*turn) for turn in turns])


def _read_outcome(fields: Sequence[Any]) -> StepOutcome:
    outcome = StepOutcome(*fields)
    if not outcome.dead_letters:
        return outcome
    return outcome._replace(dead_letters=tuple(DeadLetter(*each) for each in outcome.dead_letters))
