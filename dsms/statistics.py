"""What is known of every station's cost, selectivity and rates: declared, or measured while it runs."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dsms.observers import Observer
from dsms.plan import Plan, Station, Stream
from dsms.runners.base import Step
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine


class Estimate:
    """One station as a policy sees it."""

    __slots__ = ("cost", "each", "inflows", "selectivity", "supposed")

    def __init__(self, cost: float, selectivity: float, each: float, supposed: bool = False) -> None:
        self.cost = cost  # time per input tuple, its share of the start-up included
        self.each = each  # time for one more in the same run
        self.selectivity = selectivity  # outputs per input tuple
        self.supposed = supposed  # whether nothing was declared of it, nor measured yet
        self.inflows: tuple[float, ...] = ()  # tuples per unit of time into each of its inputs


class Count:
    """What a station did in some time."""

    __slots__ = ("busy", "consumed", "produced", "since")

    def __init__(self, since: float = 0.0) -> None:
        self.since = since
        self.consumed: float = 0
        self.produced: float = 0
        self.busy = 0.0

    def selectivity(self) -> float | None:
        return self.produced / self.consumed if self.consumed else None

    def cost(self) -> float | None:
        return self.busy / self.consumed if self.consumed else None

    def output_rate(self) -> float | None:
        """Outputs per unit of the time it ran (Raindrop, eq. 3.3)."""
        return self.produced / self.busy if self.busy else None

    def input_rate(self, now: float) -> float | None:
        """Tuples taken per unit of all time."""
        return self.consumed / (now - self.since) if now > self.since else None


class Learnt(NamedTuple):
    """What is known beside the estimates, by name: for one who goes on in another process."""

    rates: Mapping[str, float]  # of streams that somebody reads
    arrived: Mapping[str, int] = {}  # by stream: in this window
    ends: float = 0.0  # when that is over
    totals: Mapping[str, Count] = {}  # by station: from the beginning,
    window: Mapping[str, Count] = {}  # and in this window


class Statistics(Observer):
    """The declared figures: what every policy starts from."""

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        self._estimates = [declared(station) for station in plan.stations]
        self._plan = plan
        self.flow(rates or [1.0] * len(plan.streams))

    def of(self, station: Station) -> Estimate:
        return self._estimates[station.index]

    def known(self, stations: Collection[str]) -> dict[str, Estimate]:
        """What is known of these stations, by name."""
        return {s.name: self._estimates[s.index] for s in self._plan.stations if s.name in stations}

    def follow(self, before: Statistics, stations: Collection[str], moved: Mapping[str, Estimate]) -> None:
        """Go on from what was known before of stations that are still there, and elsewhere of those that moved here."""
        known = {**before.known(stations), **moved}
        for station, mine in zip(self._plan.stations, self._estimates, strict=True):
            if (it := known.get(station.name)) is not None:
                mine.cost, mine.each, mine.selectivity, mine.supposed = it.cost, it.each, it.selectivity, it.supposed
        rates = {stream.name: before.rate(stream) for stream in before._plan.streams if stream.consumers}
        self.flow([rates.get(stream.name, 1.0) for stream in self._plan.streams])

    def learnt(self) -> Learnt:
        """What is known beside the estimates, as it is at this instant."""
        return Learnt({stream.name: self.rate(stream) for stream in self._plan.streams if stream.consumers})

    def recall(self, learnt: Learnt) -> None:
        """Go on from what was known in another process."""
        self.flow([learnt.rates.get(stream.name, 1.0) for stream in self._plan.streams])

    def rate(self, stream: Stream) -> float:
        """Tuples of a stream per unit of time; 0 of one that nobody reads."""
        for station in stream.consumers:
            return self.of(station).inflows[station.inputs.index(stream)]
        return 0.0

    def results(self) -> list[float]:
        """By station, how many results may be expected of a tuple before it."""
        expected = [0.0] * len(self._plan.stations)
        for station in reversed(self._plan.stations):
            passed = float(station.sink) + sum(expected[consumer.index] for consumer in station.consumers)
            expected[station.index] = self.of(station).selectivity * passed
        return expected

    def flow(self, rates: Sequence[float]) -> None:
        """Let streams come at these rates: what that makes of each input further down.

        Babcock et al., "Chain", section 4.3: a filter passes s·λ on; a join of rates λ_R and λ_S, whose s is the mean
        over its inputs by their rates, (λ_R + λ_S)·s. Costs and selectivities that are measured are such means.
        """
        out = {id(stream): rate for stream, rate in zip(self._plan.streams, rates, strict=True)}
        for station, known in zip(self._plan.stations, self._estimates, strict=True):
            known.inflows = tuple(out[id(producer)] for producer in station.inputs)
            out[id(station)] = sum(known.inflows) * known.selectivity


class Measured(Statistics):
    """Counts from the beginning of execution; its subclasses say when they become what policies read."""

    trusted = True

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        super().__init__(plan, rates)
        self.totals = [Count() for _ in plan.stations]
        self._length = plan.settings.window
        self._ends = self._length
        self._arrived = [0] * len(plan.streams)  # in this window

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def follow(self, before: Statistics, stations: Collection[str], moved: Mapping[str, Estimate]) -> None:
        super().follow(before, stations, moved)
        if isinstance(before, Measured):
            self._ends = before._ends
            arrived = dict(zip([stream.name for stream in before._plan.streams], before._arrived, strict=True))
            self._arrived = [arrived.get(stream.name, 0) for stream in self._plan.streams]
            self.totals = self._followed(self.totals, before.totals, before._plan, stations)

    def learnt(self) -> Learnt:
        arrived = dict(zip([stream.name for stream in self._plan.streams], self._arrived, strict=True))
        return super().learnt()._replace(arrived=arrived, ends=self._ends, totals=self._named(self.totals))

    def recall(self, learnt: Learnt) -> None:
        super().recall(learnt)
        self._ends = max(learnt.ends, self._ends)
        self._arrived = [learnt.arrived.get(stream.name, 0) for stream in self._plan.streams]
        self.totals = self._recalled(self.totals, learnt.totals)

    def _named(self, counts: list[Count]) -> dict[str, Count]:
        return {s.name: copy.copy(count) for s, count in zip(self._plan.stations, counts, strict=True)}

    def _recalled(self, mine: list[Count], theirs: Mapping[str, Count]) -> list[Count]:
        return [theirs.get(s.name, count) for s, count in zip(self._plan.stations, mine, strict=True)]

    def _followed(self, mine: list[Count], theirs: list[Count], plan: Plan, stations: Collection[str]) -> list[Count]:
        """Counts by station, gone on from what they were for those that are still there."""
        before = {s.name: theirs[s.index] for s in plan.stations if s.name in stations}
        return [before.get(s.name, mine[s.index]) for s in self._plan.stations]

    def arrive(self, now: float, stream: int, count: int) -> None:
        self._arrived[stream] += count

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for queue, taken, made, cost, *_ in steps:
            self.note(self.totals[queue.station.index], taken, made, cost)

    def learn(self, index: int, cost: float, selectivity: float) -> None:
        """Let this be what is known of a station."""
        known, operator = self._estimates[index], self._engine.plan.stations[index].operator
        known.cost = max(cost, 1e-12)  # policies divide by it
        known.selectivity, known.supposed = selectivity, False
        if not operator.startup:  # otherwise the part of it that is not start-up is known as declared only
            known.each = known.cost

    @staticmethod
    def note(count: Count, taken: float, made: float, cost: float) -> None:
        count.consumed += taken
        count.produced += made
        count.busy += cost

    def close(self, now: float) -> None:
        """A window has ended: rates are those in it, and whoever cuts the plan by statistics does so anew."""
        if any(self._arrived):
            self.flow([count / self._length for count in self._arrived])
        self._arrived = [0] * len(self._arrived)
        self._ends = (now // self._length + 1) * self._length
        self._engine.remeasure(self._plan.stations)
        self._engine.recut()


class Averages(Measured):
    """A weighted average of all runs so far: new = w·old + (1 − w)·latest (Raindrop, eq. 3.1; w = 0.875 there)."""

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        super().__init__(plan, rates)
        self._weight = plan.settings.history

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        super().turn(start, segment, steps)
        runs = dict[int, Count]()
        for queue, taken, made, cost, *_ in steps:
            self.note(runs.setdefault(queue.station.index, Count()), taken, made, cost)
        for index, run in runs.items():
            known = self._estimates[index]
            w = 0.0 if known.supposed else self._weight  # what is measured is worth more than what was supposed
            cost = w * known.cost + (1 - w) * run.busy / run.consumed
            self.learn(index, cost, w * known.selectivity + (1 - w) * run.produced / run.consumed)
        self._engine.remeasure([self._engine.plan.stations[index] for index in runs])
        if start >= self._ends:
            self.close(start)


class Windows(Measured):
    """Fixed windows: the statistics of one serve as priorities in the next (Chain, section 4)."""

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        super().__init__(plan, rates)
        self._window = [Count() for _ in plan.stations]

    def follow(self, before: Statistics, stations: Collection[str], moved: Mapping[str, Estimate]) -> None:
        super().follow(before, stations, moved)
        if isinstance(before, Windows):
            self._window = self._followed(self._window, before._window, before._plan, stations)

    def learnt(self) -> Learnt:
        return super().learnt()._replace(window=self._named(self._window))

    def recall(self, learnt: Learnt) -> None:
        super().recall(learnt)
        self._window = self._recalled(self._window, learnt.window)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        super().turn(start, segment, steps)
        if start >= self._ends:  # a silence longer than a window
            self.close(start)
        for queue, taken, made, cost, *_ in steps:
            self.note(self._window[queue.station.index], taken, made, cost)
            start += cost
        if start >= self._ends:
            self.close(start)

    def close(self, now: float) -> None:
        for index, count in enumerate(self._window):
            if count.consumed:  # a station that got nothing keeps what was known of it
                self.learn(index, count.busy / count.consumed, count.produced / count.consumed)
        self._window = [Count(now) for _ in self._window]
        super().close(now)


KINDS = {"declared": Statistics, "average": Averages, "window": Windows}


def declared(station: Station) -> Estimate:
    """What the plan says, the start-up spread over the tuples a run takes."""
    operator = station.operator
    cost = operator.cost + operator.startup / (operator.take or 1)
    return Estimate(cost, operator.selectivity, operator.cost, not operator.declared)
