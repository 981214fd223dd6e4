"""How a policy sees a plan: the segments in the order of their priorities, and what these are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

from dsms.advice.reasons import Inputs, PathChart, Reasons, finite, knows_the_future, path_charts, rule, settings
from dsms.engine import Engine
from dsms.errors import DsmsError, PlanError, PolicyError, existing
from dsms.ledger import Ledger, Queue
from dsms.plan import Plan, Query, Station, Stream
from dsms.planfile import plan_from, read_plan
from dsms.policies.base import Policy
from dsms.policies.registry import policy_named
from dsms.ready import ReadyOrder
from dsms.schedule import Schedule
from dsms.segment import Segment
from dsms.settings import is_number

NO_WORK = "no work"

MOST_DRAWN = 10_000  # tuples before one operator, for policies that look at every one


@dataclass(frozen=True)
class Standing:
    """One segment as a policy ranks it; no priority where that depends on a backlog and there is none."""

    stations: list[str]
    priority: float | None
    inputs: Inputs
    why: str

    def to_json(self) -> dict[str, Any]:
        inputs = {name: v if isinstance(v, str) else finite(v) for name, v in self.inputs.items()}
        return {"stations": self.stations, "priority": finite(self.priority), "inputs": inputs, "why": self.why}


@dataclass(frozen=True)
class Explanation:
    """A plan as a policy ranks it, the first to run first."""

    policy: str  # as given
    decides: str  # itself or, of a selector, the one it begins with
    rule: str
    parameters: dict[str, Any]
    dynamic: bool  # whether priorities depend on the backlog
    segments: list[Standing]
    charts: list[PathChart]

    def to_json(self) -> dict[str, Any]:
        """The segments as plain data; what does not exist is None."""
        return {"policy": self.policy, "segments": [standing.to_json() for standing in self.segments]}


def explain(
    plan: Plan | str | Path | Mapping[str, Any],
    policy: str | Policy,
    backlog: Mapping[str, float] | str | None = None,
) -> Explanation:
    """The segments and priorities of a policy for this backlog: tuples by query or station, as in `q1=3,q2=10`.

    So many tuples wait before each of a query's first operators, or before the station; all are of the same age.
    Without a backlog every segment has one. A policy that knows the future sees tuples as the plan's seed draws them,
    before operators that read a stream.
    """
    plan, chosen = plan_given(plan), policy_given(policy)
    engine = Engine(plan, chosen, until=0.0)
    try:
        decides = engine.policy
        segments = segments_of(engine.ledger)
        dynamic = decides.by_backlog(plan)
        order = ReadyOrder(decides, segments, engine.ledger, dynamic)
        wanted = None if backlog is None else queued(plan, engine.ledger, backlog)
        if dynamic:
            _fill(engine, _one_each(segments, engine.ledger, decides) if wanted is None else wanted)
            order.first()
        charts = path_charts(plan, engine.statistics)
        reasons = Reasons(decides, segments, charts)
        ranked = [s for s in segments if s.ranked is not None or not dynamic]
        ranked.sort(key=lambda s: (s.key, s.order if decides.by_age else s.index))
        idle = [s for s in segments if s.ranked is None and dynamic]
        return Explanation(
            policy if isinstance(policy, str) else policy.name,
            decides.name,
            rule(decides),
            settings(decides, plan, engine.statistics),
            dynamic,
            [Standing(s.names, -s.key + 0, *reasons.of(s)) for s in ranked] + [_idle(s) for s in idle],
            charts,
        )
    finally:
        engine.runner.close()


def plan_given(plan: Plan | str | Path | Mapping[str, Any]) -> Plan:
    """A plan, whether it is one, a file, or what could stand in one."""
    if isinstance(plan, Plan):
        return plan
    return plan_from(plan) if isinstance(plan, Mapping) else read_plan(plan)


def policy_given(policy: str | Policy) -> Policy:
    """A policy, whether it is one or a text that names one."""
    if not isinstance(policy, str | Policy):
        raise DsmsError(f"{policy!r} is not a policy: its name, or an object of a class of policies, is wanted")
    if isinstance(policy, str):
        return policy_named(policy)
    return replace(policy) if is_dataclass(policy) else policy  # the one given may be in charge elsewhere


def segments_of(ledger: Ledger) -> list[Segment]:
    """What the plan is cut into at present, in the policy's order."""
    bound = {segment.serial: segment for queue in ledger.queues for segment in queue.segments}
    return sorted(bound.values(), key=lambda segment: segment.index)


def queued(plan: Plan, ledger: Ledger, backlog: Mapping[str, float] | str) -> dict[int, float]:
    """How many tuples stand in which queue, from counts by query or station."""
    given = _parsed(backlog) if isinstance(backlog, str) else backlog
    found: dict[int, float] = {}
    by: dict[int, str] = {}
    for name, count in given.items():
        _check(plan, name, count)
        for inputs in _meant(plan, ledger, name):
            for queue, part in zip(inputs, _spread(count, len(inputs), plan.settings.fractional), strict=True):
                if queue.index in by:
                    raise DsmsError(
                        f"backlog: both {by[queue.index]!r} and {name!r} say how many tuples stand before "
                        f"{queue.station.name!r}: one of the two is wanted"
                    )
                by[queue.index], found[queue.index] = name, part
    return found


def _parsed(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        try:
            count = float(value)
        except ValueError:
            raise DsmsError(f"backlog: {part!r} in {text!r}: NAME=COUNT is wanted, as in 'q1=3,q2=10'") from None
        if not name or name in found:
            raise DsmsError(f"backlog: {part!r} in {text!r}: each query or operator is named once, as in 'q1=3,q2=10'")
        found[name] = count
    return found


def _check(plan: Plan, name: str, count: Any) -> None:
    fractional = plan.settings.fractional
    if not is_number(count) or count < 0 or (count != int(count) and not fractional):
        wanted = "a number from 0" if fractional else "a whole number from 0"
        raise DsmsError(f"backlog of {name!r} is {count!r}: {wanted} is wanted")


def _meant(plan: Plan, ledger: Ledger, name: str) -> list[list[Queue]]:
    """The inputs of the station of this name, or of the query's first ones; by station."""
    for query in plan.queries:
        if query.name == name:
            return _entrances(query, ledger)
    try:
        return [list(ledger.inputs[plan.station(name).index])]
    except PlanError:
        names = [*(query.name for query in plan.queries), *(station.name for station in plan.stations)]
        known = existing(name, dict.fromkeys(names))
        raise PlanError(f"backlog: no query or operator {name!r}{known}", file=plan.name) from None


def _entrances(query: Query, ledger: Ledger) -> list[list[Queue]]:
    by_station = [[q for q in ledger.inputs[s.index] if not _inside(s.inputs[q.port], query)] for s in query.stations]
    return [queues for queues in by_station if queues]


def _inside(producer: Stream | Station, query: Query) -> bool:
    return isinstance(producer, Station) and producer.query is query


def _spread(count: float, places: int, fractional: bool) -> list[float]:
    if fractional:
        return [count / places] * places
    whole, rest = divmod(int(count), places)
    return [whole + (place < rest) for place in range(places)]


def _one_each(segments: list[Segment], ledger: Ledger, policy: Policy) -> dict[int, float]:
    """One tuple before every segment, or where fates are drawn before every one that reads a stream."""
    found: dict[int, float] = {}
    foresees = knows_the_future(policy)
    for segment in segments:
        queues = [q for q in segment.queues if not foresees or isinstance(q.station.inputs[q.port], Stream)]
        if queues and not any(queue.index in found for queue in segment.queues):
            found[queues[0].index] = 1
    return found


def _fill(engine: Engine, wanted: Mapping[int, float]) -> None:
    queues = {engine.ledger.queues[index]: count for index, count in wanted.items() if count}
    if knows_the_future(engine.policy):
        _draw(engine, queues)
        return
    for queue, count in queues.items():
        queue.put(count, 0)


def _draw(engine: Engine, queues: Mapping[Queue, float]) -> None:
    """Tuples with fates of their own, for those who look at these."""
    plan = engine.plan
    schedule = Schedule(plan.streams, plan.settings.seed, 0.0)
    while schedule.chunk() is not None:
        pass  # the engine has drawn these already
    for queue, count in queues.items():
        if count > MOST_DRAWN:
            raise DsmsError(
                f"backlog of {count:g} tuples before {queue.station.name!r}: {engine.policy.name!r} looks at each of "
                f"them, at most {MOST_DRAWN:,} are wanted"
            )
        producer = queue.station.inputs[queue.port]
        if not isinstance(producer, Stream):
            raise PolicyError(
                f"policy {engine.policy.name!r} looks at the fates of queued tuples, drawn when these arrive: "
                f"before {queue.station.name!r} they would have none; name queries or operators that read a stream; "
                "`dsms sim --why T` shows its decisions in a run"
            )
        chunk = schedule.pushed(plan.streams.index(producer), 0.0, int(count))
        engine.runner.expect(chunk)
        for number in range(int(count)):
            queue.goods.tuples.append((number, chunk.first + number, 0.0, 0.0))
            queue.put(1, number)


def _idle(segment: Segment) -> Standing:
    blocked = any(queue.count for queue in segment.queues)
    return Standing(segment.names, None, {}, "waits for an older tuple at another input" if blocked else NO_WORK)
