"""How many waiting tuples a waiting result is worth: what either comes to at its best, on arrivals as of late.

To weigh two goods by a percent of each, one must know what each is when it is best cared for. The means of the present
run will not do: the more results are hurried, the longer are the queues, and the more a result would seem to be worth.
So now and then the queues are copied and run on in virtual time, once for memory alone and once for results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.selection.forecast import Outlook, forecast
from dsms.selection.recent import Recent
from dsms.statistics import Statistics

FIRST, SELDOM = 128, 1 << 14  # turns before the first look, and the most between two; until then they double
STEP = 1.1  # a rate that has changed by less leaves priorities as they are


class Exchange(Recent):
    """Watches arrivals, looks ahead, and tells the engine when the rate has moved."""

    def __init__(self, extremes: Mapping[str, Callable[[], Policy]], wanted: Callable[[], bool]) -> None:
        super().__init__()
        self._extremes = extremes  # who care for memory alone, or for results
        self._wanted = wanted  # whether anybody goes by the rate just now
        self._turns, self._next = 0, FIRST
        self._sums: dict[str, Outlook] = {}
        self.rate: float | None = None  # tuples per result; None: nothing is known yet

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        self._turns += 1
        if self._turns >= self._next:
            self._next = self._turns + min(self._turns, SELDOM)
            if self._wanted():
                self._look()

    def _look(self) -> None:
        for name, outlook in forecast(self._engine, self, self._extremes, self._engine.clock.now()).items():
            self._sums[name] = outlook.after(self._sums.get(name), 0.9)
        held, waited = (min(getattr(sums, what) for sums in self._sums.values()) for what in ("held", "delays"))
        if held > 0 and waited > 0:
            before, self.rate = self.rate, held / waited
            if before is None or not before / STEP <= self.rate <= before * STEP:
                self._engine.recut()


def guess(plan: Plan, statistics: Statistics) -> float:
    """The rate where all that waits has just arrived."""
    expected = statistics.results()
    held = results = 0.0
    for stream in plan.streams:
        for station in stream.consumers:
            held += statistics.rate(stream)
            results += statistics.rate(stream) * expected[station.index]
    return held / max(results, 1e-9)
