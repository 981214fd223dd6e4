"""Every figure of a run, worked out a second time from the intervals in which tuples were where, and by hand."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import (
    DETERMINISTIC,
    POLICIES,
    YARDSTICKS,
    QueueHistory,
    RunFigures,
    make_path_plan,
    plan_tables,
    policy,
    union_length,
)

import dsms
from dsms.engine.runners import BatchRunner
from dsms.measure.staleness import Staleness
from dsms.simulation import Run

texts = st.sampled_from([text for text in POLICIES if text not in YARDSTICKS])
folds = st.sampled_from((1, 3, 4096))  # after how many turns the journal is handed on: no figure may depend on it


def simulated(plan: dsms.Plan, text: str, fold: int, **options: Any) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dsms.engine.engine.FLUSH_TURNS", fold)
        return dsms.simulate(plan, policy(text), **options)


def agree(run: Run, plan: dsms.Plan, due: RunFigures) -> None:
    def close(value: float) -> Any:
        return pytest.approx(value, rel=1e-9, abs=1e-9)

    elapsed = run.elapsed
    assert (run.turns, run.switches) == (due.turns, due.switches)
    for level, (most, integral) in ((run.memory.tuples, due.tuples), (run.memory.bytes, due.bytes)):
        assert (level.max, level.integral) == (close(most), close(integral))
        assert level.mean == close(integral / elapsed if elapsed else 0.0)
    assert run.longest_wait == close(due.longest_wait)
    assert run.outputs == close(sum(due.outputs.values()))
    assert {name: query.outputs for name, query in run.queries.items()} == close(due.outputs)
    if due.latencies:
        late = np.array(due.latencies)
        assert run.latency.mean == run.response.mean == close(late.mean())
        assert (run.latency.p50, run.latency.p99) == (close(np.quantile(late, 0.5)), close(np.quantile(late, 0.99)))
        assert run.latency.max == close(late.max())
    else:
        assert run.latency.mean is run.latency.p99 is run.latency.max is run.response.mean is None
    if plan.settings.fractional or not elapsed:
        assert run.staleness.mean is None
        return
    stale = {name: value / elapsed for name, value in due.stale.items()}
    assert {name: query.staleness for name, query in run.queries.items()} == close(stale)
    weights = {query.name: query.weight for query in plan.queries}
    assert run.staleness.mean == close(sum(stale.values()) / len(stale))
    assert run.staleness.weighted == close(sum(stale[q] * w for q, w in weights.items()) / sum(weights.values()))


@DETERMINISTIC
@given(table=plan_tables(), text=texts, fold=folds)
def test_figures_of_a_drained_run(table: dict[str, Any], text: str, fold: int) -> None:
    plan, history = dsms.plan_from(table), QueueHistory()
    run = simulated(plan, text, fold, observers=[history])
    last = max(end for _, _, ends in history.turns for end in ends)
    last = max(last, *(record.born for stream in plan.streams for record in history.written[id(stream)]))
    assert run.elapsed == last  # where nobody reads a stream, its tuples are gone when they come
    assert run.admitted == history.admitted
    agree(run, plan, history.figures(last))


@DETERMINISTIC
@given(table=plan_tables(), text=texts, fold=folds, data=st.data())
def test_figures_of_a_run_that_is_cut(table: dict[str, Any], text: str, fold: int, data: st.DataObject) -> None:
    """They are those of the drained run up to that instant: what is then on its way is known from what came of it."""
    plan, history = dsms.plan_from(table), QueueHistory()
    dsms.simulate(plan, policy(text), observers=[history])
    for cut in data.draw(st.lists(st.sampled_from(moments(history)), min_size=5, max_size=5)):
        history = QueueHistory()
        dsms.simulate(plan, policy(text), until=cut, observers=[history])
        run = simulated(plan, text, fold, until=cut, cut=True)
        assert run.elapsed == cut
        assert run.admitted == history.admitted
        agree(run, plan, history.figures(cut))


def moments(history: QueueHistory) -> list[float]:
    """When a step begins or ends, and when it is half done."""
    ends = sorted({0.0, *(end for start, _, ends in history.turns for end in (start, *ends))})
    return [*ends, *((a + b) / 2 for a, b in pairwise(ends))]


@DETERMINISTIC
@given(table=plan_tables(), text=texts, every=st.sampled_from((0.25, 1.0, 3.0)), cut=st.booleans())
def test_samples(table: dict[str, Any], text: str, every: float, cut: bool) -> None:
    """At 0, DT, 2·DT …: after the arrivals of that instant, before the next tuple is taken off its queue."""
    plan, history = dsms.plan_from(table), QueueHistory()
    dsms.simulate(plan, policy(text), until=13.0, observers=[history])
    run = dsms.simulate(plan, policy(text), until=13.0, cut=cut, sample=every)
    instants = [i * every for i in range(math.floor(run.elapsed / every) + 1)]
    if any(end == start for start, _, ends in history.turns for start, end in zip([start, *ends], ends, strict=False)):
        return  # work that takes no time: two states of one instant, and either may be meant
    assert [instant for instant, _ in run.memory.samples] == instants
    held = [history.sample(instant) for instant in instants]
    assert [held for _, held in run.memory.samples] == pytest.approx(held, abs=1e-9)


@DETERMINISTIC
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1), st.integers(1, 4))
def test_staleness_is_the_length_of_a_union(pairs: list[tuple[int, int]], chunk: int) -> None:
    intervals = sorted(((float(min(p)), float(max(p))) for p in pairs), key=lambda interval: interval[1])
    stale = Staleness()
    for i in range(0, len(intervals), chunk):
        since, until = zip(*intervals[i : i + chunk], strict=True)
        stale.add(since, until)
    assert stale.total == union_length(intervals)


@DETERMINISTIC
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1), st.integers(1, 4))
def test_staleness_of_results_that_leave_in_the_order_they_came(pairs: list[tuple[int, int]], chunk: int) -> None:
    since, until = sorted(float(min(p)) for p in pairs), sorted(float(max(p)) for p in pairs)
    stale = Staleness(ordered=True)
    for i in range(0, len(since), chunk):
        stale.add(since[i : i + chunk], until[i : i + chunk])
    assert stale.total == union_length(list(zip(since, until, strict=True)))


# --- by hand


def test_two_tuples_through_two_operators() -> None:
    """Both come at 0. FIFO: a b a b, one time unit each; results at 2 and 4."""
    run = dsms.simulate(make_path_plan({"cost": 1}, {"cost": 1}, at=[0, 0]), "fifo", sample=1)
    assert run.memory.samples == [(0, 2), (1, 2), (2, 1), (3, 1), (4, 0)]
    assert (run.memory.tuples.max, run.memory.tuples.integral, run.memory.tuples.mean) == (2, 6, 1.5)
    assert (run.latency.mean, run.latency.p50, run.latency.max) == (3, 3, 4)
    assert (run.turns, run.switches, run.longest_wait) == (4, 3, 2)
    assert (run.elapsed, run.outputs, run.output_rate) == (4, 2, 0.5)
    assert run.staleness.mean == 1.0


def test_what_is_in_service_need_not_count_as_memory() -> None:
    run = dsms.simulate(make_path_plan({"cost": 1}, {"cost": 1}, at=[0, 0], in_service=False), "fifo", sample=1)
    assert run.memory.samples == [(0, 2), (1, 2), (2, 1), (3, 1), (4, 0)]  # before the turn of that instant
    assert (run.memory.tuples.max, run.memory.tuples.integral) == (1, 2)


def test_a_sample_inside_a_turn_is_taken_before_the_next_tuple_is() -> None:
    plan = make_path_plan({"cost": 1}, at=[0, 0, 0], in_service=False)
    by_one, by_three = (dsms.simulate(plan, text, sample=1).memory.samples for text in ("rr", "rr:tuples=3"))
    assert by_one == by_three == [(0, 3), (1, 2), (2, 1), (3, 0)]


def test_a_sample_inside_a_turn_counts_what_comes_at_that_instant() -> None:
    """Two tuples at 0 and one at 1, when the second is about to be taken: 2 wait then, whether or not in one turn."""
    plan = make_path_plan({"cost": 1}, at=[0, 0, 1], in_service=False)
    by_one, by_three = (dsms.simulate(plan, text, sample=1).memory.samples for text in ("rr", "rr:tuples=3"))
    assert by_one == by_three == [(0, 2), (1, 2), (2, 1), (3, 0)]


def test_what_lasts_no_time_is_not_held() -> None:
    """The last operator's input is gone and its output has left at one instant; so no more than 1 is ever held."""
    run = dsms.simulate(make_path_plan({"cost": 1, "selectivity": 2}, {"cost": 1}, at=[0, 3]), "fifo")
    assert (run.memory.tuples.max, run.memory.tuples.integral) == (2, 2 * (1 + 2 + 1))


def test_a_tuple_shared_by_two_queries_counts_once_until_both_have_read_it() -> None:
    """FIFO serves a and b in turn; a tuple of the stream goes when the second has taken it."""
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 0]}, "size": 10}},
        "queries": {name: {"from": "s", "operators": [{"name": f"{name}1", "cost": 1}]} for name in "ab"},
    }
    shared = dsms.simulate(dsms.plan_from(table), "fifo", sample=1)
    assert [held for _, held in shared.memory.samples] == [2, 2, 1, 1, 0]
    assert (shared.memory.bytes.max, shared.memory.bytes.integral) == (20, 60)
    private = dsms.simulate(dsms.plan_from(table | {"run": {"buffers": "private"}}), "fifo", sample=1)
    assert [held for _, held in private.memory.samples] == [4, 3, 2, 1, 0]
    assert (private.memory.bytes.max, private.memory.bytes.integral) == (40, 100)


def test_staleness_is_a_union_and_a_tuple_that_is_filtered_out_does_not_count() -> None:
    """Every second passes, taking 2 each. Arrivals at 0, 1, 10: the second is a result, in [1, 4]; elapsed is 12."""
    run = dsms.simulate(make_path_plan({"cost": 2, "selectivity": 0.5}, at=[0, 1, 10], selectivity="spread"), "fifo")
    assert run.elapsed == 12
    assert run.staleness.mean == pytest.approx(3 / 12)
    assert run.response.mean == 3


def test_staleness_is_weighted_by_query() -> None:
    """The stream comes at 0 and 9; a leaves at 1 and 10, b at 3 and 12: stale 2 and 6 of 12."""
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 9]}}},
        "queries": {
            "a": {"from": "s", "operators": [{"name": "a1", "cost": 1}], "weight": 3},
            "b": {"from": "s", "operators": [{"name": "b1", "cost": 2}]},
        },
    }
    run = dsms.simulate(dsms.plan_from(table), "fifo")
    assert {name: query.staleness for name, query in run.queries.items()} == {"a": 2 / 12, "b": 6 / 12}
    assert run.staleness.mean == pytest.approx(4 / 12)
    assert run.staleness.weighted == pytest.approx((3 * 2 + 6) / 4 / 12)


def test_a_tuple_in_service_at_the_cut_makes_its_query_stale() -> None:
    """It takes 10 and the run is cut at 5: G1 counts what is being processed."""
    run = dsms.simulate(make_path_plan({"cost": 10}, at=[0]), "fifo", until=5, cut=True)
    assert (run.staleness.mean, run.outputs, run.turns) == (1.0, 0, 0)
    assert (run.memory.tuples.max, run.memory.tuples.integral, run.longest_wait) == (1, 5, 0)


def test_a_turn_of_several_tuples_at_the_cut() -> None:
    """Three tuples of 4 each in one turn, cut at 5: one result, one in service since 4, one still waiting since 0."""
    run = dsms.simulate(make_path_plan({"cost": 4}, at=[0, 0, 0]), "rr:tuples=3", until=5, cut=True)
    assert (run.outputs, run.turns, run.latency.max) == (1, 1, 4)
    assert (run.staleness.mean, run.longest_wait) == (1.0, 5.0)
    assert run.memory.tuples.integral == 3 * 4 + 2 * 1


def test_a_cut_with_tuples_waiting_in_the_queues() -> None:
    """Cut at 3: one result at 2; a tuple is through a and waits for b, another waits for a, both to become results."""
    run = dsms.simulate(make_path_plan({"cost": 1}, {"cost": 1}, at=[0, 0, 2]), "fifo", until=3, cut=True)
    assert (run.outputs, run.admitted, run.longest_wait) == (1, 3, 2)
    assert (run.staleness.mean, run.memory.tuples.integral) == (1.0, 2 + 2 + 2)


def test_a_cut_counts_pending_tuples_only_if_they_will_be_results() -> None:
    """Every second passes. Cut at 5: the third, waiting since 4, will be filtered out; the second left at 4."""
    plan = make_path_plan({"cost": 2, "selectivity": 0.5}, at=[0, 1, 4.5], selectivity="spread")
    assert dsms.simulate(plan, "fifo", until=5, cut=True).staleness.mean == pytest.approx(3 / 5)


def test_batches_do_not_give_another_staleness_at_a_cut() -> None:
    """They need not know what will become of a pending tuple, but then there is no figure rather than a wrong one."""
    plan = make_path_plan({"cost": 1}, {"cost": 4}, at=[0, 0, 0])  # at 2 two of them wait for b
    runs = [dsms.simulate(plan, "mtiq", until=2, cut=True, runner=runner) for runner in (None, BatchRunner)]
    assert runs[0].staleness.mean == 1.0
    assert runs[1].staleness.mean in (1.0, None)


def test_a_tuple_between_two_operators_at_a_cut_is_on_its_way_though_no_queue_holds_it() -> None:
    """a works on it from 0 to 4 and the run is cut at 2; what is in service does not count as memory."""
    plan = make_path_plan({"cost": 4}, {"cost": 1}, at=[0], in_service=False)
    assert dsms.simulate(plan, "fifo", until=2, cut=True).staleness.mean == 1.0
    assert dsms.simulate(plan, "fifo", until=2, cut=True, runner=BatchRunner).staleness.mean in (1.0, None)


@pytest.mark.parametrize("fold", [1, 2, 4096])
def test_the_wait_of_a_tuple_in_service_at_the_cut_counts_wherever_the_journal_ends(fold: int) -> None:
    """The second tuple waits from 0 to 2 and is in service at 3, when the run is cut."""
    assert simulated(make_path_plan({"cost": 2}, at=[0, 0]), "fifo", fold, until=3, cut=True).longest_wait == 2


def test_a_tuple_keeps_its_size_through_a_union() -> None:
    """s brings 1 byte, t 40; both come at 0. s goes through u and v, then t: 41, 41, 40, 40 bytes, 1 each."""
    table = {
        "streams": {
            "s": {"arrivals": {"kind": "list", "at": [0]}, "size": 1},
            "t": {"arrivals": {"kind": "list", "at": [0]}, "size": 40},
        },
        "queries": {"q": {"operators": [{"name": "u", "cost": 1, "inputs": ["s", "t"]}, {"name": "v", "cost": 1}]}},
    }
    for runner in (None, BatchRunner):
        held = dsms.simulate(dsms.plan_from(table), "fifo", runner=runner).memory.bytes
        assert (held.max, held.integral) == (41, 41 + 41 + 40 + 40)


def test_a_size_of_its_own_holds_behind_an_operator_that_passes_everything() -> None:
    """Two tuples of 3 bytes, made 5 by a (1 each), taken by b (2 each): 6 for 1, 3 + 5 for 2, 3 for 1, 5 for 2."""
    arrivals = {"kind": "list", "at": [0, 0], "size": [3.0, 3.0]}
    plan = make_path_plan({"cost": 1, "size": 5}, {"cost": 2}, at=[], stream={"arrivals": arrivals})
    for runner in (None, BatchRunner):
        held = dsms.simulate(plan, "fifo", runner=runner).memory.bytes
        assert (held.max, held.integral) == (8, 6 + 8 * 2 + 3 + 5 * 2)


def test_a_run_without_arrivals_has_no_figures() -> None:
    run = dsms.simulate(make_path_plan({"cost": 1}, at=[]), "fifo", sample=1)
    assert (run.elapsed, run.turns, run.admitted, run.outputs, run.output_rate) == (0, 0, 0, 0, None)
    assert run.latency.mean is run.staleness.mean is run.staleness.weighted is None
    assert (run.memory.tuples.max, run.memory.tuples.mean) == (0, 0)
