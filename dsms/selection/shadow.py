"""A running engine's plan and queues as a scheduler knows them: the same graph in abstract tuples, stocked likewise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dsms.arrivals import Arrivals, Floats, Listed
from dsms.ledger import NOTHING, Buffer, Queue
from dsms.operators import Abstract, Operator
from dsms.operators.base import MOST
from dsms.plan import Plan, Station, Stream
from dsms.runners.tuples import Numbers, Stock
from dsms.selection.recent import Recent
from dsms.settings import Settings
from dsms.statistics import Estimate

if TYPE_CHECKING:
    from dsms.engine import Engine

LEAST = 1e-12  # of a cost: what was measured as nothing still takes its turn


class Expected(Abstract):
    """An operator as its statistics have it: evenly every 1/s-th tuple passes, so that no chance is in a comparison."""

    def fresh(self, settings: Settings) -> Abstract:
        # From the middle of the first gap: n tuples then give s·n rounded to the nearest, not rounded down.
        return replace(super().fresh(settings), seen=round(0.5 / self.selectivity) if self.selectivity else 0)


def shadow(engine: Engine, arrivals: Sequence[Floats]) -> Plan:
    """The engine's plan with what is known of its operators now, and these arrivals by stream.

    Nothing in it is taken from what tuples will really do: not their rows, fates, costs or sizes, nor the real arrivals
    to come.
    """
    plan, clock = engine.plan, engine.clock
    twins: dict[int, Stream | Station] = {}
    queries = [replace(query, stations=[], weight=engine.weights[query.name]) for query in plan.queries]
    for stream, at in zip(plan.streams, arrivals, strict=True):
        twins[id(stream)] = replace(stream, consumers=[], arrivals=_listed(at, engine.statistics.rate(stream)))
    stations = []
    for station in plan.stations:
        query = queries[station.query.index]
        operator = _expected(station.name, station.operator, engine.statistics.of(station))
        inputs = tuple(twins[id(producer)] for producer in station.inputs)
        twin = replace(station, query=query, operator=operator, inputs=inputs, consumers=[])
        twins[id(station)] = twin
        query.stations.append(twin)
        stations.append(twin)
    settings = replace(
        plan.settings,
        tuples="individual",
        # Fates by chance make for longer queues than even ones: they are as in the plan, but drawn anew.
        selectivity="spread" if plan.settings.fractional else plan.settings.selectivity,
        seed=engine.admitted,
        statistics="declared",
        slice=clock.slice if plan.settings.slice is None else plan.settings.slice,
        until=None,
    )
    streams = [twin for twin in twins.values() if isinstance(twin, Stream)]
    return replace(plan, streams=streams, stations=stations, queries=queries, settings=settings, qos=engine.qos)


def _listed(at: Floats, rate: float) -> Callable[[int], Arrivals]:
    def process(seed: int) -> Arrivals:
        listed = Listed(at, {})
        listed.rate = rate  # policies cut by what the engine knows of it, not by what little is listed here
        return listed

    return process


def _expected(name: str, operator: Operator, known: Estimate) -> Expected:
    cost = known.each if operator.startup else max(known.each, LEAST)
    selectivity = min(known.selectivity, MOST)
    return Expected(cost, selectivity, operator.startup, operator.take, operator.size, name)


def steps_ahead(engine: Engine) -> tuple[list[float], list[float]]:
    """The steps of work that one tuple leads to: as an arrival, by stream; waiting for a station, by station."""
    plan = engine.plan
    ahead = [1.0] * len(plan.stations)
    for station in reversed(plan.stations):
        passed = engine.statistics.of(station).selectivity
        ahead[station.index] += passed * sum(ahead[consumer.index] for consumer in station.consumers)
    return [sum(ahead[consumer.index] for consumer in stream.consumers) for stream in plan.streams], ahead


def stocks(engine: Engine, recent: Recent, scale: float = 1.0) -> list[Stock]:
    """What is in the engine's buffers, by producer, with `scale` of its tuples, of `scale` their age.

    What waits for the first station on its way are its stream's last arrivals. Further down the ledger has each queue's
    count and head: between heads, and from the last of them to the newest tuple that can be in the buffer, numbers are
    spread evenly; with the numbers go the arrival instants.
    """
    ledger, now = engine.ledger, engine.clock.now()
    amounts = [0.0 if queue.oldest == NOTHING else queue.count for queue in ledger.queues]
    # Rounded as a running sum, so that many queues of a part of a tuple come to as many tuples as they should.
    counts = np.diff(np.floor(np.cumsum(amounts) * scale + 0.5), prepend=0.0).astype(np.int64).tolist()
    buffers = [*ledger.streams, *ledger.outlets]
    left = [[counts[queue.index] for queue in buffer.readers] for buffer in buffers]
    seq = [_numbers(*each) for each in zip(buffers, left, _newest(engine, recent), strict=True)]
    late = recent.pattern()
    for place, buffer in enumerate(ledger.streams):
        longest = max((math.ceil(amounts[queue.index]) for queue in buffer.readers), default=0)
        exact = late.last(place, longest, len(seq[place]))
        seq[place] = seq[place] if exact is None else exact
    arrived = (recent.arrived(np.concatenate(seq)) - now) * scale
    instants = np.split(arrived, np.cumsum([len(numbers) for numbers in seq])[:-1])
    return [Stock(s - engine.admitted, at, mine) for s, at, mine in zip(seq, instants, left, strict=True)]


def _newest(engine: Engine, recent: Recent) -> list[float]:
    """Of each producer, the youngest number it can have put out: no younger than the heads that wait for it."""
    known: dict[int, float] = dict(zip(map(id, engine.plan.streams), recent.newest(), strict=True))

    def before(queue: Queue, producer: Stream | Station) -> float:
        return known[id(producer)] if queue.oldest == NOTHING else queue.oldest

    for station in engine.plan.stations:
        queues = engine.ledger.inputs[station.index]
        known[id(station)] = max(before(queue, p) for queue, p in zip(queues, station.inputs, strict=True))
    return list(known.values())


def _numbers(buffer: Buffer, left: Sequence[int], newest: float) -> Numbers:
    """Sequence numbers for what a buffer holds: readers have the last of the same tuples, so every head is a mark."""
    length = max(left, default=0)
    if not length:
        return np.empty(0, np.int64)
    marks = {length - mine: queue.oldest for queue, mine in zip(buffer.readers, left, strict=True) if mine}
    marks.setdefault(length - 1, max(newest, *marks.values()))
    places = sorted(marks)
    return np.asarray(np.interp(np.arange(length), places, [marks[place] for place in places]), np.int64)
