"""All that is watched of a domain for as long as it runs: rates, latency, staleness, phases and decisions."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from dsms.advice.explain import segments_of
from dsms.advice.reasons import finite
from dsms.bound import Bound
from dsms.live.counted import Counted
from dsms.live.decided import Decided
from dsms.live.phases import Phases
from dsms.live.rates import Rates
from dsms.live.recent import Recent
from dsms.live.results import Results
from dsms.live.tally import Tally
from dsms.live.times import Times
from dsms.observers import Observer
from dsms.plan import Plan, Station
from dsms.policies.by_chart import size_read
from dsms.selection.gatherer import text_of
from dsms.shedding import SHED, shed_by_query

if TYPE_CHECKING:
    from dsms.engine import Engine


class Watch:
    """Its memory does not grow with time; it answers between two turns."""

    def __init__(self, plan: Plan) -> None:
        self._rates, self._results, self._recent = Rates(plan), Results(plan), Recent()
        self.decided, self.times, self.bound = Decided(), Times(plan), Bound(plan)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """What an engine is to tell of what happens."""
        return self.decided, self._rates, self._results, self.times, self.bound, self._recent

    @property
    def phases(self) -> Phases:
        """One for each stretch under one policy."""
        return self._results.phases

    @property
    def tally(self) -> Tally:
        """Of each query, from the beginning."""
        return self._results.tally

    @property
    def turns(self) -> int:
        """How many were given."""
        return self._results.turns

    def why(self, count: int = 1) -> list[dict[str, Any]]:
        """The last decisions that were looked at, the newest first."""
        return self._recent.last(count)

    def carried(self, plan: Plan) -> Watch:
        """The watch of an engine that takes over with another plan, under the same policy and on the same clock.

        What is known of queries, stations and streams that stay goes on, and so do phases and decisions.
        """
        if not self._results.begun:
            return Watch(plan)
        now = self._settle(self._results.engine)
        after = Watch(plan)
        after._rates, after._results = self._rates.carried(plan, now), self._results.carried(plan, now)
        after._recent, after.decided = self._recent, self.decided
        after.times, after.bound = self.times.carried(plan), self.bound.carried(plan)
        return after

    def counted(self, engine: Engine) -> Counted:
        """What was counted from the beginning, as it is at this instant."""
        self._settle(engine)
        results, runner = self._results, engine.runner
        return Counted(
            dict(self._rates.rows),
            results.counted(),
            results.tally.carried(results.tally.names),
            results.turns,
            copy.deepcopy(results.phases),
            dict(runner.left_aside),
            dict(runner.reasons),
        )

    def recall(self, counted: Counted, engine: Engine) -> None:
        """Go on with what was counted in another process; of what is not there any more, not."""
        self._settle(engine)
        stations = {station.name for station in engine.plan.stations}
        self._rates.rows.update((name, rows) for name, rows in counted.rows.items() if name in self._rates.rows)
        self._results.recall(counted.turns, counted.results, counted.tally, counted.phases)
        engine.runner.left_aside.update({key: rows for key, rows in counted.asides.items() if key[0] in stations})
        engine.runner.reasons.update({key: said for key, said in counted.reasons.items() if key[0] in stations})

    def status(self, engine: Engine) -> dict[str, Any]:
        """How things stand, as plain data; what does not exist is None."""
        now = self._settle(engine)
        ledger = engine.ledger
        utilisation, idle = self._rates.shares(now)
        return {
            "policy": text_of(engine.chosen),
            "decides": engine.policy.name,
            "qos": str(engine.qos),
            "now": now,
            "held": ledger.held,
            "bound": self._least(ledger.held),
            "held_bytes": ledger.held_bytes if ledger.size is None else ledger.held * ledger.size,
            "turns": self._results.turns,
            "swaps": self.phases.swaps,
            "utilisation": utilisation,
            "idle_with_work": idle,
            **self._of_queries(engine, now),
            "asides": _asides(engine),
            "streams": self._streams(now),
            "stations": self._stations(engine, now),
            "phases": self.phases.to_json(),
        }

    def _of_queries(self, engine: Engine, now: float) -> dict[str, Any]:
        told, shed = self._results.status(now, engine.weights), shed_by_query(engine)
        for query in told["queries"]:
            query["shed"], query["quarantined"] = shed[query["name"]], query["name"] in engine.shedder.quarantined
        return told

    def _settle(self, engine: Engine) -> float:
        """Bring everything up to date."""
        engine.fold()
        now = engine.clock.now()
        self._rates.settle(now)
        self._results.settle(now)
        self.times.settle(now)
        self.bound.advance(now)
        return now

    def _least(self, held: float) -> float | None:
        """What any scheduler would have to hold by now; where it is estimated it may come out too high."""
        least = self.bound.tuples
        return None if least is None else min(least, held)

    def _streams(self, now: float) -> list[dict[str, Any]]:
        rates = self._rates
        return [{"name": name, "rows": rows, "rate": rates.stream(name, now)} for name, rows in rates.rows.items()]

    def _stations(self, engine: Engine, now: float) -> list[dict[str, Any]]:
        priorities, done = _priorities(engine), self._rates.stations(now)
        found = []
        for station in engine.plan.stations:
            known = engine.statistics.of(station)  # which is what there is of one that has done nothing of late
            taken, made, busy, watched = done[station.name]
            found.append(
                {
                    "name": station.name,
                    "query": station.query.name,
                    **_ways(station, engine.plan),
                    "queue": sum(queue.count for queue in engine.ledger.inputs[station.index]),
                    "rate_in": taken / watched if watched > 0 else 0.0,
                    "rate_out": made / watched if watched > 0 else 0.0,
                    "cost": busy * engine.clock.budget / taken if taken else known.cost,
                    "selectivity": made / taken if taken else known.selectivity,
                    "busy": min(1.0, busy / watched) if watched > 0 else 0.0,
                    "priority": finite(priorities.get(station.index)),
                }
            )
        return found


def _ways(station: Station, plan: Plan) -> dict[str, Any]:
    """What a station reads, with the bytes of a tuple that are its own to free, and whether results leave there."""
    inputs = [{"name": producer.name, "size": size_read(producer, plan)} for producer in station.inputs]
    return {"inputs": inputs, "sink": station.sink}


def _asides(engine: Engine) -> list[dict[str, Any]]:
    """Rows that operators could not take through, with what was wrong with the first of them."""
    runner = engine.runner
    counts = {(name, kind): rows for (name, kind), rows in runner.left_aside.items() if kind != SHED}
    return [
        {"station": name, "kind": kind, "rows": rows, "reason": runner.reasons.get((name, kind), "")}
        for (name, kind), rows in counts.items()
    ]


def _priorities(engine: Engine) -> dict[int, float]:
    """By station, the highest that a segment with it had at the last decision, if it still has work."""
    found: dict[int, float] = {}
    for segment in segments_of(engine.ledger):
        if segment.ranked is not None and any(queue.count for queue in segment.queues):
            for station in segment.stations:
                found[station.index] = max(found.get(station.index, -segment.key), -segment.key)
    return found
