"""Explains how a policy ranks a plan: the segments by priority, and the inputs of each priority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

from dsms.advice.reasons import (
    Inputs,
    PathChart,
    PriorityExplainer,
    finite_or_none,
    is_oracle,
    path_charts,
    policy_parameters,
    policy_rule,
)
from dsms.config.fields import is_number
from dsms.engine.arrival_schedule import ArrivalSchedule
from dsms.engine.engine import Engine
from dsms.engine.ledger import Ledger, Queue
from dsms.engine.policy import Policy, as_stateful
from dsms.engine.ready_order import ReadyOrder
from dsms.engine.turn_limit import describe_turns
from dsms.errors import DsmsError, PlanError, PolicyError, existing
from dsms.plan.graph import Plan, Query, Station, Stream
from dsms.plan.segment import Segment
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from, read_plan

NO_WORK = "no work"

MAX_DRAWN_TUPLES = 10_000  # at one operator, for policies that look at every tuple


@dataclass(frozen=True)
class SegmentRank:
    """A segment's priority under a policy; None if it depends on a backlog and the segment has none."""

    stations: list[str]
    priority: float | None
    inputs: Inputs
    why: str

    def to_json(self) -> dict[str, Any]:
        inputs = {name: v if isinstance(v, str) else finite_or_none(v) for name, v in self.inputs.items()}
        return {"stations": self.stations, "priority": finite_or_none(self.priority), "inputs": inputs, "why": self.why}


@dataclass(frozen=True)
class Explanation:
    """A policy's ranking of a plan; the segment that runs first comes first."""

    policy: str  # as given
    decides: str  # the policy itself or, for the adaptive policy, its first candidate
    rule: str
    parameters: dict[str, Any]
    dynamic: bool  # whether priorities depend on the backlog
    segments: list[SegmentRank]
    charts: list[PathChart]
    turn: str = ""  # the most that a turn takes

    def to_json(self) -> dict[str, Any]:
        """The segments as plain data; a figure that does not exist is None."""
        return {"policy": self.policy, "turn": self.turn, "segments": [segment.to_json() for segment in self.segments]}


def explain(
    plan: Plan | str | Path | Mapping[str, Any],
    policy: str | Policy,
    backlog: Mapping[str, float] | str | None = None,
) -> Explanation:
    """Rank the segments of a plan for a backlog: the number of tuples by query or operator, as in `q1=3,q2=10`.

    The tuples wait at each first operator of the query, or at the operator; all have the same age. Without a backlog,
    one tuple waits at every segment. A policy that knows the future sees the tuples that the plan's seed draws, at
    operators that read a stream.
    """
    plan, chosen = resolve_plan(plan), resolve_policy(policy)
    engine = Engine(plan, chosen, until=0.0)
    try:
        decides = engine.control.policy
        segments = segments_of(engine.ledger)
        dynamic = as_stateful(decides).is_dynamic(plan)
        order = ReadyOrder(decides, segments, engine.ledger, dynamic)
        counts = None if backlog is None else resolve_backlog(plan, engine.ledger, backlog)
        if dynamic:
            _fill_queues(engine, _one_tuple_each(segments, engine.ledger, decides) if counts is None else counts)
            order.first()
        charts = path_charts(plan, engine.statistics)
        reasons = PriorityExplainer(decides, segments, charts)
        ranked = [s for s in segments if s.ranked is not None or not dynamic]
        ranked.sort(key=lambda s: (s.key, s.order if decides.traits.by_age else s.index))
        idle = [s for s in segments if s.ranked is None and dynamic]
        return Explanation(
            policy if isinstance(policy, str) else policy.name,
            decides.name,
            policy_rule(decides),
            policy_parameters(decides, plan, engine.statistics),
            dynamic,
            [SegmentRank(s.names, -s.key + 0, *reasons.of(s)) for s in ranked] + [_rank_idle(s) for s in idle],
            charts,
            describe_turns(decides, plan.settings),
        )
    finally:
        engine.row_runner.close()


def resolve_plan(plan: Plan | str | Path | Mapping[str, Any]) -> Plan:
    """Return a plan from a plan, a file, or tables like a plan file's."""
    if isinstance(plan, Plan):
        return plan
    return plan_from(plan) if isinstance(plan, Mapping) else read_plan(plan)


def resolve_policy(policy: str | Policy) -> Policy:
    """Return a policy from a policy or its text."""
    if not isinstance(policy, str | Policy):
        raise DsmsError(f"{policy!r} is not a policy: give its name, or a Policy object")
    if isinstance(policy, str):
        return policy_named(policy)
    return replace(policy) if is_dataclass(policy) else policy  # the given object may be in use in another engine


def segments_of(ledger: Ledger) -> list[Segment]:
    """The current segments of the plan, in the policy's order."""
    bound = {segment.serial: segment for queue in ledger.queues for segment in queue.segments}
    return sorted(bound.values(), key=lambda segment: segment.index)


def resolve_backlog(plan: Plan, ledger: Ledger, backlog: Mapping[str, float] | str) -> dict[int, float]:
    """The number of tuples by queue, from counts by query or operator."""
    given = _parse_backlog(backlog) if isinstance(backlog, str) else backlog
    found: dict[int, float] = {}
    by: dict[int, str] = {}
    for name, count in given.items():
        _check_backlog(plan, name, count)
        for inputs in _find_queues(plan, ledger, name):
            for queue, part in zip(inputs, _spread_evenly(count, len(inputs), plan.settings.fractional), strict=True):
                if queue.index in by:
                    raise DsmsError(
                        f"backlog: both {by[queue.index]!r} and {name!r} set the number of tuples at "
                        f"{queue.station.name!r}: remove one of the two"
                    )
                by[queue.index], found[queue.index] = name, part
    return found


def _parse_backlog(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        try:
            count = float(value)
        except ValueError:
            raise DsmsError(f"backlog: {part!r} in {text!r}: expected NAME=COUNT, as in 'q1=3,q2=10'") from None
        if not name or name in found:
            raise DsmsError(f"backlog: {part!r} in {text!r}: each query or operator is named once, as in 'q1=3,q2=10'")
        found[name] = count
    return found


def _check_backlog(plan: Plan, name: str, count: Any) -> None:
    fractional = plan.settings.fractional
    if not is_number(count) or count < 0 or (count != int(count) and not fractional):
        expected = "a number from 0" if fractional else "a whole number from 0"
        raise DsmsError(f"backlog of {name!r}: {count!r} is not {expected}")


def _find_queues(plan: Plan, ledger: Ledger, name: str) -> list[list[Queue]]:
    """The input queues of the operator of this name, or of the query's first operators; by station."""
    for query in plan.queries:
        if query.name == name:
            return _entry_queues(query, ledger)
    try:
        return [list(ledger.inputs[plan.station(name).index])]
    except PlanError:
        names = [*(query.name for query in plan.queries), *(station.name for station in plan.stations)]
        known = existing(name, dict.fromkeys(names))
        raise PlanError(f"backlog: no query or operator {name!r}{known}", file=plan.name) from None


def _entry_queues(query: Query, ledger: Ledger) -> list[list[Queue]]:
    by_station = [
        [q for q in ledger.inputs[s.index] if not _is_inside(s.inputs[q.port], query)] for s in query.stations
    ]
    return [queues for queues in by_station if queues]


def _is_inside(producer: Stream | Station, query: Query) -> bool:
    return isinstance(producer, Station) and producer.query is query


def _spread_evenly(count: float, places: int, fractional: bool) -> list[float]:
    if fractional:
        return [count / places] * places
    whole, rest = divmod(int(count), places)
    return [whole + (place < rest) for place in range(places)]


def _one_tuple_each(segments: list[Segment], ledger: Ledger, policy: Policy) -> dict[int, float]:
    """One tuple at every segment; for an oracle, at every segment that reads a stream."""
    found: dict[int, float] = {}
    foresees = is_oracle(policy)
    for segment in segments:
        queues = [q for q in segment.queues if not foresees or isinstance(q.station.inputs[q.port], Stream)]
        if queues and not any(queue.index in found for queue in segment.queues):
            found[queues[0].index] = 1
    return found


def _fill_queues(engine: Engine, counts: Mapping[int, float]) -> None:
    queues = {engine.ledger.queues[index]: count for index, count in counts.items() if count}
    if is_oracle(engine.control.policy):
        _draw_tuples(engine, queues)
        return
    for queue, count in queues.items():
        queue.put(count, 0)


def _draw_tuples(engine: Engine, queues: Mapping[Queue, float]) -> None:
    """Fill queues with tuples whose outcomes are drawn, for an oracle."""
    plan = engine.plan
    schedule = ArrivalSchedule(plan.streams, plan.settings.seed, 0.0)
    while schedule.chunk() is not None:
        pass  # the engine has drawn these arrivals already
    for queue, count in queues.items():
        if count > MAX_DRAWN_TUPLES:
            raise DsmsError(
                f"backlog of {count:g} tuples at {queue.station.name!r} is too large: "
                f"{engine.control.policy.name!r} looks at each of them, give at most {MAX_DRAWN_TUPLES:,}"
            )
        producer = queue.station.inputs[queue.port]
        if not isinstance(producer, Stream):
            raise PolicyError(
                f"policy {engine.control.policy.name!r} looks at the outcomes of queued tuples, drawn when they "
                f"arrive: at {queue.station.name!r} they have none; name queries or operators that read a stream, or "
                "use `dsms sim --why T`, which shows its decisions in a run"
            )
        chunk = schedule.number_pushed(plan.streams.index(producer), 0.0, int(count))
        engine.runner.expect(chunk)
        for number in range(int(count)):
            queue.payload.tuples.append((number, chunk.first + number, 0.0, 0.0))
            queue.put(1, number)


def _rank_idle(segment: Segment) -> SegmentRank:
    blocked = any(queue.count for queue in segment.queues)
    return SegmentRank(segment.names, None, {}, "waits for an older tuple at another input" if blocked else NO_WORK)
