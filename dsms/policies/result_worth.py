"""ResultWorth: estimates how many queued tuples a pending result is worth, from short simulations.

To weigh two metrics by percent, the policy needs the best value of each. The means of the current run would mislead:
the more results are preferred, the longer the queues grow, and the more a result would seem to be worth.
So now and then `ResultWorth` copies the queues and simulates them, once for memory alone and once for results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dsms.engine.policy import Policy
from dsms.engine.runners.runner import Step
from dsms.engine.statistics import Statistics
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.policies.adaptive.forecast import Forecast, forecast
from dsms.policies.adaptive.recent_arrivals import RecentArrivals

FIRST_FORECAST_TURNS, MAX_INTERVAL_TURNS = 128, 1 << 14  # the interval doubles up to the maximum
CHANGE_RATIO = 1.1  # priorities follow only larger changes of the worth


class ResultWorth(RecentArrivals):
    """Observes arrivals, simulates the near future, and makes the engine re-cut when the worth has changed."""

    def __init__(self, extremes: Mapping[str, Callable[[], Policy]], is_needed: Callable[[], bool]) -> None:
        super().__init__()
        self._extremes = extremes  # policies for memory alone and for results alone
        self._is_needed = is_needed  # whether the policy uses the worth now
        self._turns, self._next = 0, FIRST_FORECAST_TURNS
        self._sums: dict[str, Forecast] = {}
        self.tuples: float | None = None  # that one pending result is worth; None: not known yet

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        self._turns += 1
        if self._turns >= self._next:
            self._next = self._turns + min(self._turns, MAX_INTERVAL_TURNS)
            if self._is_needed():
                self._look()

    def _look(self) -> None:
        for name, outlook in forecast(self._engine, self, self._extremes, self._engine.clock.now()).items():
            self._sums[name] = outlook.after(self._sums.get(name), 0.9)
        held, waited = (min(getattr(sums, what) for sums in self._sums.values()) for what in ("held", "delays"))
        if held > 0 and waited > 0:
            before, self.tuples = self.tuples, held / waited
            if before is None or not before / CHANGE_RATIO <= self.tuples <= before * CHANGE_RATIO:
                self._engine.control.recut()


def initial_worth(plan: Plan, statistics: Statistics) -> float:
    """Return the tuples that a result is worth, under the assumption that all queued tuples have just arrived."""
    expected = statistics.results()
    held = results = 0.0
    for stream in plan.streams:
        for station in stream.consumers:
            held += statistics.rate(stream)
            results += statistics.rate(stream) * expected[station.index]
    return held / max(results, 1e-9)
