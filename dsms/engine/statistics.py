"""Statistics: every station's cost, selectivity and input rates, declared in the plan or measured while it runs."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.plan.estimate import Estimate, declared_estimate
from dsms.plan.graph import Plan, Station, Stream
from dsms.plan.segment import Segment

if TYPE_CHECKING:
    from dsms.engine.engine import Engine


MIN_COST = 1e-12  # of a tuple, where less was measured


class StationCounters:
    """A station's work since an instant."""

    __slots__ = ("busy", "consumed", "produced", "since")

    def __init__(self, since: float = 0.0) -> None:
        self.since = since
        self.consumed: float = 0
        self.produced: float = 0
        self.busy = 0.0

    def add(self, step: Step) -> None:
        """Count one step."""
        self.consumed += step.taken
        self.produced += step.made
        self.busy += step.cost

    def selectivity(self) -> float | None:
        return self.produced / self.consumed if self.consumed else None

    def cost(self) -> float | None:
        return self.busy / self.consumed if self.consumed else None

    def output_rate(self) -> float | None:
        """Return outputs per unit of running time (Raindrop, eq. 3.3)."""
        return self.produced / self.busy if self.busy else None

    def input_rate(self, now: float) -> float | None:
        """Return tuples taken per unit of elapsed time."""
        return self.consumed / (now - self.since) if now > self.since else None


class StatisticsState(NamedTuple):
    """All that statistics know besides the estimates, by name, for a checkpoint."""

    rates: Mapping[str, float]  # of streams with readers
    arrived: Mapping[str, int] = {}  # by stream: tuples in this window
    ends: float = 0.0  # end of this window
    totals: Mapping[str, StationCounters] = {}  # by station: since the start
    window: Mapping[str, StationCounters] = {}  # by station: in this window


class Statistics(Observer):
    """The declared figures, which every policy starts from."""

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        self._estimates = [declared_estimate(station) for station in plan.stations]
        self._plan = plan
        self.flow(rates or [1.0] * len(plan.streams))

    def of(self, station: Station) -> Estimate:
        return self._estimates[station.index]

    def known(self, stations: Collection[str]) -> dict[str, Estimate]:
        """Return the estimates of these stations by name."""
        return {s.name: self._estimates[s.index] for s in self._plan.stations if s.name in stations}

    def migrate_from(self, before: Statistics, stations: Collection[str], moved: Mapping[str, Estimate]) -> None:
        """Take over the estimates of stations that stay, and of those moved here from elsewhere."""
        known = {**before.known(stations), **moved}
        for station, mine in zip(self._plan.stations, self._estimates, strict=True):
            if (it := known.get(station.name)) is not None:
                mine.cost, mine.marginal_cost = it.cost, it.marginal_cost
                mine.selectivity, mine.is_assumed = it.selectivity, it.is_assumed
        rates = {stream.name: before.rate(stream) for stream in before._plan.streams if stream.consumers}
        self.flow([rates.get(stream.name, 1.0) for stream in self._plan.streams])

    def snapshot(self) -> StatisticsState:
        """Return the state besides the estimates."""
        return StatisticsState({stream.name: self.rate(stream) for stream in self._plan.streams if stream.consumers})

    def restore(self, state: StatisticsState) -> None:
        """Continue from the state of another process."""
        self.flow([state.rates.get(stream.name, 1.0) for stream in self._plan.streams])

    def rate(self, stream: Stream) -> float:
        """Return a stream's tuples per unit of time; 0 if it has no readers."""
        for station in stream.consumers:
            return self.of(station).inflows[station.inputs.index(stream)]
        return 0.0

    def results(self) -> list[float]:
        """Return, by station, the expected results of one tuple in its queue."""
        expected = [0.0] * len(self._plan.stations)
        for station in reversed(self._plan.stations):
            per_output = float(station.sink) + sum(expected[consumer.index] for consumer in station.consumers)
            expected[station.index] = self.of(station).selectivity * per_output
        return expected

    def flow(self, rates: Sequence[float]) -> None:
        """Propagate the streams' rates to every input downstream.

        Babcock et al., "Chain", section 4.3: a filter passes s·λ on; a join of rates λ_R and λ_S passes (λ_R + λ_S)·s,
        where s is the mean over its inputs weighted by their rates. Measured costs and selectivities are such means.
        """
        out = {id(stream): rate for stream, rate in zip(self._plan.streams, rates, strict=True)}
        for station, known in zip(self._plan.stations, self._estimates, strict=True):
            known.inflows = tuple(out[id(producer)] for producer in station.inputs)
            out[id(station)] = sum(known.inflows) * known.selectivity


class MeasuredStatistics(Statistics):
    """Counts each station's work; subclasses decide when the counts become estimates."""

    trusted = True

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        super().__init__(plan, rates)
        self.totals = [StationCounters() for _ in plan.stations]
        self._length = plan.settings.window
        self._ends = self._length
        self._arrived = [0] * len(plan.streams)  # by stream: tuples in this window

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def migrate_from(self, before: Statistics, stations: Collection[str], moved: Mapping[str, Estimate]) -> None:
        super().migrate_from(before, stations, moved)
        if isinstance(before, MeasuredStatistics):
            self._ends = before._ends
            arrived = dict(zip([stream.name for stream in before._plan.streams], before._arrived, strict=True))
            self._arrived = [arrived.get(stream.name, 0) for stream in self._plan.streams]
            self.totals = self._migrate_counts(self.totals, before.totals, before._plan, stations)

    def snapshot(self) -> StatisticsState:
        arrived = dict(zip([stream.name for stream in self._plan.streams], self._arrived, strict=True))
        return super().snapshot()._replace(arrived=arrived, ends=self._ends, totals=self._by_name(self.totals))

    def restore(self, state: StatisticsState) -> None:
        super().restore(state)
        self._ends = max(state.ends, self._ends)
        self._arrived = [state.arrived.get(stream.name, 0) for stream in self._plan.streams]
        self.totals = self._restore_counts(self.totals, state.totals)

    def _by_name(self, counts: list[StationCounters]) -> dict[str, StationCounters]:
        return {s.name: copy.copy(count) for s, count in zip(self._plan.stations, counts, strict=True)}

    def _restore_counts(
        self, mine: list[StationCounters], theirs: Mapping[str, StationCounters]
    ) -> list[StationCounters]:
        return [theirs.get(s.name, count) for s, count in zip(self._plan.stations, mine, strict=True)]

    def _migrate_counts(
        self, mine: list[StationCounters], theirs: list[StationCounters], plan: Plan, stations: Collection[str]
    ) -> list[StationCounters]:
        """Return the counts by station; stations that stay keep theirs."""
        before = {s.name: theirs[s.index] for s in plan.stations if s.name in stations}
        return [before.get(s.name, mine[s.index]) for s in self._plan.stations]

    def arrive(self, now: float, stream: int, count: int) -> None:
        self._arrived[stream] += count

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for step in steps:
            self.totals[step.queue.station.index].add(step)

    def set_estimate(self, index: int, cost: float, selectivity: float) -> None:
        """Set a station's estimate."""
        known, operator = self._estimates[index], self._engine.plan.stations[index].operator
        known.cost = max(cost, MIN_COST)  # policies divide by it
        known.selectivity, known.is_assumed = selectivity, False
        if not operator.startup:  # with a start-up cost, only the declared marginal cost is known
            known.marginal_cost = known.cost

    def end_window(self, now: float) -> None:
        """End a window: take the rates measured in it, and let the policy cut the plan again."""
        if any(self._arrived):
            self.flow([count / self._length for count in self._arrived])
        self._arrived = [0] * len(self._arrived)
        self._ends = (now // self._length + 1) * self._length
        self._engine.control.remeasure(self._plan.stations)
        self._engine.control.recut()


class AverageStatistics(MeasuredStatistics):
    """A weighted average over all runs: new = w·old + (1 − w)·latest (Raindrop, eq. 3.1; w = 0.875 there)."""

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        super().__init__(plan, rates)
        self._weight = plan.settings.history
        self._recent = [StationCounters() for _ in plan.stations]  # its counts fade with every run

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        super().turn(start, segment, steps)
        runs = dict[int, StationCounters]()
        for step in steps:
            runs.setdefault(step.queue.station.index, StationCounters()).add(step)
        for index, run in runs.items():
            known = self._estimates[index]
            w = 0.0 if known.is_assumed else self._weight  # the first measurement replaces an assumption
            cost = w * known.cost + (1 - w) * run.busy / run.consumed
            self.set_estimate(index, cost, w * known.selectivity + (1 - w) * run.produced / run.consumed)
            if self._engine.clock.meter() is not None and not self._plan.stations[index].operator.startup:
                known.marginal_cost = self._measure_marginal_cost(self._recent[index], run)
        self._engine.control.remeasure([self._engine.plan.stations[index] for index in runs])
        if start >= self._ends:
            self.end_window(start)

    def _measure_marginal_cost(self, recent: StationCounters, run: StationCounters) -> float:
        """Return the cost of one more row: by rows, because a run of few rows costs more than its rows do."""
        recent.busy = self._weight * recent.busy + run.busy
        recent.consumed = self._weight * recent.consumed + run.consumed
        return max(recent.busy / recent.consumed, MIN_COST)


class WindowStatistics(MeasuredStatistics):
    """Fixed windows: the statistics of one window give the priorities in the next (Chain, section 4)."""

    def __init__(self, plan: Plan, rates: Sequence[float] | None = None) -> None:
        super().__init__(plan, rates)
        self._window = [StationCounters() for _ in plan.stations]

    def migrate_from(self, before: Statistics, stations: Collection[str], moved: Mapping[str, Estimate]) -> None:
        super().migrate_from(before, stations, moved)
        if isinstance(before, WindowStatistics):
            self._window = self._migrate_counts(self._window, before._window, before._plan, stations)

    def snapshot(self) -> StatisticsState:
        return super().snapshot()._replace(window=self._by_name(self._window))

    def restore(self, state: StatisticsState) -> None:
        super().restore(state)
        self._window = self._restore_counts(self._window, state.window)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        super().turn(start, segment, steps)
        if start >= self._ends:  # no turn for longer than a window
            self.end_window(start)
        for step in steps:
            self._window[step.queue.station.index].add(step)
            start += step.cost
        if start >= self._ends:
            self.end_window(start)

    def end_window(self, now: float) -> None:
        for index, count in enumerate(self._window):
            if count.consumed:  # a station without input keeps its estimate
                self.set_estimate(index, count.busy / count.consumed, count.produced / count.consumed)
        self._window = [StationCounters(now) for _ in self._window]
        super().end_window(now)


STATISTICS_KINDS = {"declared": Statistics, "average": AverageStatistics, "window": WindowStatistics}
