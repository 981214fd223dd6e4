"""One run, a leg at a time: its turns can be timed without the set-up and alternately with another's."""

from __future__ import annotations

import time

from dsms.engine.engine import Engine
from dsms.measure.run_measures import MemoryMeasure, ResultMeasure, TurnMeasure
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named


class RunInLegs:
    """A run with all measures on, of a plan that is never idle once it has begun: every step is a turn."""

    def __init__(self, plan: Plan, policy: str, turns: int) -> None:
        self._turns, self._counted, self._results = turns, TurnMeasure(), ResultMeasure(plan)
        self._engine = Engine(plan, policy_named(policy), observers=[MemoryMeasure(), self._counted, self._results])
        self._engine.step()  # waits for the first arrival

    def __call__(self) -> float:
        """Run the next leg; answers the time of a turn."""
        step, start = self._engine.step, time.process_time()
        for _ in range(self._turns):
            step()
        return (time.process_time() - start) / self._turns

    def finish(self) -> tuple[int, int, int]:
        """Run what is left; answers what was admitted, how many turns and results there were."""
        self._engine.run()
        self._engine.finish(self._engine.clock.now())
        return self._engine.admitted, self._counted.count, self._results.count
