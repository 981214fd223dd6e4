"""Copies a running engine's plan and queues as abstract operators and tuples, to simulate what policies would do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dsms.arrivals import Arrivals, Floats, ListedArrivals
from dsms.config.run import Settings
from dsms.engine.engine import Engine
from dsms.engine.ledger import NO_HEAD, Buffer, Queue
from dsms.engine.runners.tuples import BufferContents, Numbers
from dsms.operators import AbstractOperator, Operator
from dsms.operators.base import MAX_SELECTIVITY
from dsms.plan.estimate import Estimate
from dsms.plan.graph import Plan, Station, Stream
from dsms.policies.adaptive.recent_arrivals import RecentArrivals

MIN_COST = 1e-12  # for operators whose measured cost is 0


class ExpectedOperator(AbstractOperator):
    """An operator by its statistics: exactly every 1/s-th tuple passes, so that comparisons have no randomness."""

    def fresh(self, settings: Settings) -> AbstractOperator:
        # Start in the middle of the first gap, so that n tuples give s·n rounded to the nearest.
        return replace(super().fresh(settings), seen=round(0.5 / self.selectivity) if self.selectivity else 0)


def build_shadow_plan(engine: Engine, arrivals: Sequence[Floats]) -> Plan:
    """Return the engine's plan with its operators' current estimates and these arrivals by stream.

    It uses nothing of what tuples will really do: not their rows, outcomes, costs or sizes, nor the real arrivals
    to come.
    """
    plan, clock = engine.plan, engine.clock
    twins: dict[int, Stream | Station] = {}
    queries = [replace(query, stations=[], weight=engine.control.weights[query.name]) for query in plan.queries]
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
    longest = clock.slice if plan.settings.slice is None else plan.settings.slice
    settings = replace(
        plan.settings,
        tuples="individual",
        # Random outcomes make longer queues than even ones: random if the plan's are, but drawn independently.
        selectivity="spread" if plan.settings.fractional else plan.settings.selectivity,
        seed=engine.admitted,
        statistics="declared",
        slice=None if longest is None else longest * clock.budget,  # the simulation's clock has a whole CPU
        until=None,
    )
    streams = [twin for twin in twins.values() if isinstance(twin, Stream)]
    return replace(plan, streams=streams, stations=stations, queries=queries, settings=settings, qos=engine.control.qos)


def _listed(at: Floats, rate: float) -> Callable[[int], Arrivals]:
    def process(seed: int) -> Arrivals:
        listed = ListedArrivals(at, {})
        listed.rate = rate  # policies cut by the engine's rate, not by that of these few arrivals
        return listed

    return process


def _expected(name: str, operator: Operator, known: Estimate) -> ExpectedOperator:
    cost = known.marginal_cost if operator.startup else max(known.marginal_cost, MIN_COST)
    selectivity = min(known.selectivity, MAX_SELECTIVITY)
    return ExpectedOperator(cost, selectivity, operator.startup, operator.take, operator.size, name)


def steps_ahead(engine: Engine) -> tuple[list[float], list[float]]:
    """Return the expected steps of one tuple: by stream on arrival, by station when queued there."""
    plan = engine.plan
    ahead = [1.0] * len(plan.stations)
    for station in reversed(plan.stations):
        passed = engine.statistics.of(station).selectivity
        ahead[station.index] += passed * sum(ahead[consumer.index] for consumer in station.consumers)
    return [sum(ahead[consumer.index] for consumer in stream.consumers) for stream in plan.streams], ahead


def copy_buffers(engine: Engine, recent: RecentArrivals, scale: float = 1.0) -> list[BufferContents]:
    """Return the contents of the engine's buffers by producer, with tuples and ages scaled by `scale`.

    What waits for the first station on its way are its stream's last arrivals. Further down the ledger has each queue's
    count and head: between heads, and from the last of them to the newest tuple that can be in the buffer, numbers are
    spread evenly; with the numbers go the arrival instants.
    """
    ledger, now = engine.ledger, engine.clock.now()
    amounts = [0.0 if queue.oldest == NO_HEAD else queue.count for queue in ledger.queues]
    # Round the running sum, so that many queues with a fraction each have the right total.
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
    return [BufferContents(s - engine.admitted, at, mine) for s, at, mine in zip(seq, instants, left, strict=True)]


def _newest(engine: Engine, recent: RecentArrivals) -> list[float]:
    """Return, by producer, the highest sequence number it can have put out."""
    known: dict[int, float] = dict(zip(map(id, engine.plan.streams), recent.newest(), strict=True))

    def before(queue: Queue, producer: Stream | Station) -> float:
        return known[id(producer)] if queue.oldest == NO_HEAD else queue.oldest

    for station in engine.plan.stations:
        queues = engine.ledger.inputs[station.index]
        known[id(station)] = max(before(queue, p) for queue, p in zip(queues, station.inputs, strict=True))
    return list(known.values())


def _numbers(buffer: Buffer, left: Sequence[int], newest: float) -> Numbers:
    """Return sequence numbers for a buffer's tuples, consistent with every reader's head."""
    length = max(left, default=0)
    if not length:
        return np.empty(0, np.int64)
    marks = {length - mine: queue.oldest for queue, mine in zip(buffer.readers, left, strict=True) if mine}
    marks.setdefault(length - 1, max(newest, *marks.values()))
    places = sorted(marks)
    return np.asarray(np.interp(np.arange(length), places, [marks[place] for place in places]), np.int64)
