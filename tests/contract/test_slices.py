"""A slice is a promise: on every clock and runner, a turn ends before the step that would pass it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support.live.domains import fleet_of
from support.strategies import (
    FEW,
    POLICIES,
    YARDSTICKS,
    expect_results,
    is_suitable,
    plan_tables,
    policy,
)

import dsms
from actors.hosts.runner import ActorRunner
from dsms import Batch, Clock, Engine, PacedClock, VirtualClock, WallClock
from dsms.engine.ledger import NO_HEAD
from dsms.engine.observers import Observer
from dsms.engine.runners import BatchRunner, Step
from dsms.plan.segment import TRIAL_ROWS, Segment

SLIGHTLY = 1 + 1e-6
LONGEST = st.sampled_from([0.6, 1.5, 4.0])
CASES = settings(FEW, max_examples=max(4, FEW.max_examples // 2))
LIVE_POLICIES = [text for text in POLICIES if text not in YARDSTICKS]


class FakeTime:
    """The time module without waiting: sleeping and the work of operators are all that makes time pass."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0
        self.work: list[tuple[float, float, int]] = []  # of the present turn: begin, CPU time, rows

    def __reduce__(self) -> Any:
        return the_time, ()  # functions go to hosts pickled: there they use the same time

    def monotonic(self) -> float:
        return self.now

    perf_counter = time = monotonic

    def thread_time(self) -> float:
        return self.worked

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def spend(self, seconds: float, wait: float, rows: int) -> None:
        """Let an operator work, and wait on top of it, as on a busy machine."""
        self.work.append((self.now, seconds, rows))
        self.worked += seconds
        self.now += seconds + wait


TIMES: list[FakeTime] = []


def the_time() -> FakeTime:
    return TIMES[-1]


@contextmanager
def fake_time() -> Iterator[FakeTime]:
    with pytest.MonkeyPatch.context() as patch:
        fake = FakeTime()
        TIMES[:] = [fake]
        patch.setattr("dsms.clock.time", fake)
        yield fake


class TurnLengths(Observer):
    """Holds every step but a turn's first to the slice, by what the plan declares of its cost."""

    trusted = True

    def __init__(self, slice_: float) -> None:
        self.slice = slice_
        self.turns = 0

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        at, started = 0.0, set[str]()
        self.turns += 1
        for place, step in enumerate(steps):
            station = step.queue.station
            startup = 0.0 if station.name in started else station.operator.startup
            assert place == 0 or at + startup + station.operator.cost <= self.slice * SLIGHTLY
            started.add(station.name)
            at += step.cost
        # No longer than the slice and one indivisible step, whatever the tuples cost.
        assert at - steps[-1].cost <= self.slice * SLIGHTLY


def on_hosts(count: int) -> Callable[..., ActorRunner]:
    return lambda plan, ledger, clock: ActorRunner(plan, ledger, clock, fleet_of(count))


CLOCKS: dict[str, type[Clock]] = {"virtual": VirtualClock, "paced": PacedClock}


def hold_to_slice(table: dict[str, Any], longest: float, policies: Iterable[str], clock: str, runner: Any) -> None:
    """Run a plan under these policies; results are those without a slice, and nothing is left in any queue."""
    plan = dsms.plan_from({**table, "run": {**table["run"], "slice": longest}})
    wanted = expect_results(plan)
    for text in policies:
        if not is_suitable(text, plan, runner) or (clock == "paced" and text in YARDSTICKS):
            continue
        note(f"policy {text}")
        amounts: dict[str, float] = defaultdict(float)
        watching = [TurnLengths(longest), Amounts(amounts)]
        with fake_time():
            engine = Engine(plan, policy(text), clock=CLOCKS[clock](), runner=runner, observers=watching)
            engine.run()
        assert {name: amounts[name] for name in wanted.amounts} == pytest.approx(wanted.amounts)
        assert engine.ledger.held == pytest.approx(0)
        assert all(queue.oldest == NO_HEAD for queue in engine.ledger.queues)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("runner", [None, BatchRunner])
@CASES
@given(table=plan_tables(), longest=LONGEST)
def test_no_turn_of_any_plan_passes_its_slice(runner: Any, clock: str, table: dict[str, Any], longest: float) -> None:
    hold_to_slice(table, longest, POLICIES, clock, runner)


@pytest.mark.parametrize("clock", CLOCKS)
@settings(CASES, max_examples=max(1, CASES.max_examples // 5))
@given(table=plan_tables(), longest=LONGEST)
def test_no_turn_on_hosts_passes_its_slice(clock: str, table: dict[str, Any], longest: float) -> None:
    hold_to_slice(table, longest, dsms.policies(), clock, on_hosts(2))


class Amounts(Observer):
    """Sums the tuples that each query puts out."""

    trusted = True

    def __init__(self, amounts: dict[str, float]) -> None:
        self._amounts = amounts

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.queue.station.sink:
                self._amounts[step.queue.station.query.name] += step.made


# --- frames of rows


@st.composite
def row_plans(draw: st.DrawFn) -> dict[str, Any]:
    """Queries of functions on rows, each with a cost a row: the first is a path, the second may be a fork."""
    numbers = range(draw(st.integers(1, 4)))
    costs, moduli = st.sampled_from([0.000_1, 0.001, 0.004, 0.015]), st.sampled_from([2, 3, 1000])
    operators = [{"name": f"f{number}", "cost": draw(costs), "modulus": draw(moduli)} for number in numbers]
    frames = draw(st.lists(st.sampled_from([1, 5, 10, 10, 60]), min_size=1, max_size=5))
    return {
        "operators": operators,
        "frames": frames,
        "reads_middle": draw(st.booleans()) and len(operators) > 1,
        "declared": draw(st.booleans()),
        "wait": draw(st.sampled_from([0.0, 0.0, 0.0005, 0.03])),
        "together": draw(st.sampled_from([1, 3, 100])),
    }


def make_operator(table: dict[str, Any], fake: FakeTime | None, wait: float, declared: bool) -> dict[str, Any]:
    def function(batch: Batch) -> Any:
        if fake is not None:
            fake.spend(table["cost"] * len(batch), wait, len(batch))
        return batch.columns["x"] % table["modulus"] != 0

    operator = {"name": table["name"], "function": function}
    return {**operator, "cost": table["cost"]} if declared else operator


def make_row_plan(drawn: dict[str, Any], fake: FakeTime | None, declared: bool, **run: Any) -> dsms.Plan:
    operators = [make_operator(table, fake, drawn["wait"], declared) for table in drawn["operators"]]
    queries: dict[str, Any] = {"q": {"from": "s", "operators": operators}}
    if drawn["reads_middle"]:
        table = {"name": "other", "cost": 0.000_1, "modulus": 5}
        other = make_operator(table, fake, drawn["wait"], declared)
        queries["p"] = {"from": "q.f0", "operators": [other]}
    return dsms.plan_from({"streams": {"s": {"schema": {"x": "int64"}}}, "queries": queries, "run": run})


def expect_rows(drawn: dict[str, Any]) -> dict[str, list[int]]:
    kept = np.arange(sum(drawn["frames"]))
    wanted = {}
    for place, table in enumerate(drawn["operators"]):
        kept = kept[kept % table["modulus"] != 0]
        if place == 0 and drawn["reads_middle"]:
            wanted["p"] = kept[kept % 5 != 0].tolist()
    wanted["q"] = kept.tolist()
    return wanted


def run_rows(
    drawn: dict[str, Any], plan: dsms.Plan, text: str, clock: Clock, runner: Any, observers: list[Observer]
) -> dict[str, list[int]]:
    left: dict[str, list[int]] = {query.name: [] for query in plan.queries}
    engine = Engine(
        plan,
        policy(text),
        clock=clock,
        runner=runner,
        observers=observers,
        sink=lambda query, batch: left[query].extend(batch.columns["x"].tolist()),
    )
    first = 0
    for number, rows in enumerate(drawn["frames"]):
        engine.push("s", Batch.of({"x": np.arange(first, first + rows)}))
        first += rows
        if number % drawn["together"] == 0:
            engine.step()
    engine.end()
    engine.run()
    assert engine.ledger.held == 0
    assert engine.ledger.held_bytes == pytest.approx(0)
    engine.finish(clock.now())
    return left


class PacedFrames(Observer):
    """Holds every turn on frames to its slice: only one row that is longer by itself may pass it."""

    trusted = True

    def __init__(self, slice_: float, budget: float) -> None:
        self._slice, self._budget = slice_, budget

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        cost = sum(step.cost for step in steps) / self._budget
        assert cost <= self._slice * SLIGHTLY or (len(steps) == 1 and steps[0].taken == 1)


FRAME_RUNNERS: dict[str, Any] = {"batches": BatchRunner, "one host": on_hosts(1), "hosts": on_hosts(3)}


@pytest.mark.parametrize("runner", FRAME_RUNNERS)
@CASES
@given(drawn=row_plans(), longest=st.sampled_from([None, 0.005, 0.02]), budget=st.sampled_from([1.0, 0.5]))
def test_frames_are_cut_by_declared_cost(
    runner: str, drawn: dict[str, Any], longest: float | None, budget: float
) -> None:
    for text in LIVE_POLICIES:
        note(f"policy {text}")
        if text.startswith(("rr:", "rr-query:", "mtiq:", "fifo:", "chain:", "adaptive:")) and longest is None:
            continue  # these set their own share, which may have no slice
        with fake_time():
            run = {} if longest is None else {"slice": longest}
            plan = make_row_plan({**drawn, "wait": 0.0}, None, True, **run)
            held = PacedFrames(0.02 if longest is None else longest, budget)
            found = run_rows(drawn, plan, text, PacedClock(budget=budget), FRAME_RUNNERS[runner], [held])
        assert found == expect_rows(drawn)


class WallFrames(Observer):
    """Holds every turn on the wall clock to its slice: each step but the first begins within it, and is cut to fit."""

    trusted = True

    def __init__(self, slice_: float, fake: FakeTime, costs: dict[str, float], declared: bool) -> None:
        self._slice, self._fake, self._costs, self._declared = slice_, fake, costs, declared
        self._known: set[str] = set()

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        worked = [step for step in steps if step.cost]
        done = len(worked)  # a turn with which hosts went on is told after their work on it
        work, self._fake.work = self._fake.work[:done], self._fake.work[done:]
        assert [step.taken for step in worked] == [rows for _, _, rows in work]
        for place, (step, (began, seconds, rows)) in enumerate(zip(worked, work, strict=True)):
            name = step.queue.station.name
            left = self._slice - (began - start)
            assert place == 0 or left >= -1e-9
            if name in self._known or self._declared:  # the estimate is exact, because all rows cost the same
                assert rows == 1 or seconds <= max(left, 0) * SLIGHTLY
            elif name not in {before.queue.station.name for before in worked[:place]}:
                assert rows <= TRIAL_ROWS
        self._known |= {step.queue.station.name for step in worked}


@pytest.mark.parametrize("runner", FRAME_RUNNERS)
@CASES
@given(drawn=row_plans(), longest=st.sampled_from([None, 0.005, 0.02]))
def test_frames_are_cut_by_measured_cost_and_all_elapsed_time_counts(
    runner: str, drawn: dict[str, Any], longest: float | None
) -> None:
    for text in LIVE_POLICIES:
        note(f"policy {text}")
        if text.startswith(("rr:", "rr-query:", "mtiq:", "fifo:", "chain:", "adaptive:")) and longest is None:
            continue
        with fake_time() as fake:
            run = {"statistics": "average"} if longest is None else {"statistics": "average", "slice": longest}
            plan = make_row_plan(drawn, fake, drawn["declared"], **run)
            costs = {table["name"]: table["cost"] for table in drawn["operators"]} | {"other": 0.000_1}
            held = WallFrames(0.02 if longest is None else longest, fake, costs, drawn["declared"])
            found = run_rows(drawn, plan, text, WallClock(), FRAME_RUNNERS[runner], [held])
        assert found == expect_rows(drawn)
