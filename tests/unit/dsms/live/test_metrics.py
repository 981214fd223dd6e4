"""A domain's metrics against what can be worked out by hand and against its own status; no cluster."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live.domains import BROKEN, EVEN, JOIN, ResultCollector, asked, batch, domain_of, settled
from support.monitored import Hand, table, watched
from support.strategies import DETERMINISTIC, POLICIES, is_suitable, plan_tables, policy

import dsms
from dsms.data.batch import Batch
from dsms.engine.engine import Engine
from dsms.engine.runners import BatchRunner
from dsms.errors import OperatorError
from dsms.live.monitor.metrics import Metrics, Samples
from dsms.live.monitor.monitor import Monitor
from dsms.live.monitor.operator_times import BLOCKED, IDLE, RUNNABLE
from dsms.measure.metric_names import HISTOGRAM, LATENCY, WAIT, by_name
from dsms.operators.state_size import MAX_SAMPLED_OBJECTS, state_bytes
from dsms.policies.registry import policy_named

STATES = [f"dsms_operator_{state}_seconds_total" for state in ("running", "runnable", "blocked", "idle")]


def taken(watch: Monitor, engine: Engine) -> Samples:
    return Metrics("0").measure(watch, engine, engine.row_runner.state_bytes())


def of(samples: Samples, metric: str) -> dict[Any, Any]:
    """Values by what they are of: without the domain, and without a tuple around a single label."""
    assert all(len(labels) == len(by_name(metric).labels) for labels, _ in samples[metric])
    found = {labels[1:]: value for labels, value in samples[metric]}
    return {labels[0] if len(labels) == 1 else labels: value for labels, value in found.items()}


def bucket(edges: tuple[float, ...], *values: float) -> list[int]:
    """How many are in each."""
    found = [0] * (len(edges) + 1)
    for value in values:
        found[next((place for place, edge in enumerate(edges) if value <= edge), len(edges))] += 1
    return found


def test_where_the_time_went_by_hand() -> None:
    """fifo: a 1–3, b 3–7, a 7–9, b 9–13, on tuples that come at 1 and 2; looked at at 15."""
    watch, engine = watched(dsms.plan_from(table()))
    engine.run()
    engine.clock.wait_until(15)
    found = taken(watch, engine)
    split = {name: [of(found, state)[name] for state in STATES] for name in ("a", "b")}
    assert split == {"a": [4, 4, 0, 7], "b": [8, 4, 0, 3]}
    assert of(found, "dsms_operator_taken_tuples_total") == {"a": 2, "b": 2}
    assert of(found, "dsms_queue_wait_seconds") == {"a": (bucket(WAIT, 0, 5), 5), "b": (bucket(WAIT, 2, 7), 9)}
    assert of(found, "dsms_scheduler_decisions_total") == {(): 4}
    assert of(found, "dsms_slice_used_seconds_total") == of(found, "dsms_slice_granted_seconds_total") == {(): 12}
    assert of(found, "dsms_scheduler_idle_with_work_seconds_total") == {(): 0}


def test_how_late_results_were_by_hand() -> None:
    watch, engine = watched(dsms.plan_from(table()))
    engine.run()
    found = taken(watch, engine)
    late = of(found, "dsms_tuple_latency_seconds")
    assert late == {"p": (bucket(LATENCY, 2, 7), 9), "q": (bucket(LATENCY, 6, 11), 17)}
    assert of(found, "dsms_staleness_seconds_total") == {"p": 8, "q": 12}
    assert of(found, "dsms_freshness_ratio") == {"p": pytest.approx(4 / 5), "q": 0}  # of 8 to 13
    assert of(found, "dsms_result_rows_total") == {"p": 2, "q": 2}


def test_a_join_that_waits_for_its_other_input_is_blocked() -> None:
    """A tuple of s comes at 1, one of t at 4: until then t may still have an older one."""
    arrivals = {name: {"arrivals": {"kind": "list", "at": at}} for name, at in (("s", [1]), ("t", [4]))}
    join = {"name": "join", "inputs": ["s", "t"], "cost": 1.0}
    plan = {"streams": arrivals, "queries": {"q": {"operators": [join]}}, "run": {"bounds": False}}
    watch, engine = watched(dsms.plan_from(plan))
    engine.run()
    found = taken(watch, engine)
    assert [of(found, state)["join"] for state in STATES] == [2, 0, 3, 1]


@DETERMINISTIC
@given(tables=plan_tables(), place=st.integers(0, len(POLICIES) - 1))
def test_the_four_times_of_every_operator_add_up_to_the_time_there_was(tables: dict[str, Any], place: int) -> None:
    plan, text = dsms.plan_from(tables), POLICIES[place]
    if not is_suitable(text, plan):
        return
    watch = Monitor(plan)
    engine = Engine(plan, policy(text), observers=watch.observers)
    more = True
    while more:
        more = engine.step()
        watch.times.accrue_to(engine.clock.now())
        for account in watch.times.accounts.values():
            whole = account.running + account.spent[IDLE] + account.spent[RUNNABLE] + account.spent[BLOCKED]
            assert whole == pytest.approx(engine.clock.now())
            assert min(account.running, *account.spent) >= -1e-9
    assert sum(account.running for account in watch.times.accounts.values()) == pytest.approx(watch.times.used)


def test_time_in_which_answers_are_waited_for_is_idle_with_work() -> None:
    """By this clock a turn takes twice its work: of 12 seconds in turns 6 are none of the operators'."""
    watch, engine = watched(dsms.plan_from(table([0, 0])), clock=Hand(), runner=BatchRunner)
    engine.run()
    found = taken(watch, engine)
    [[_, idle]], [[_, used]] = (
        found[f"dsms_{name}_seconds_total"] for name in ("scheduler_idle_with_work", "slice_used")
    )
    assert used == 12
    assert 0 < idle <= engine.clock.now() - used
    assert of(found, "dsms_scheduler_decision_seconds")[()][0][0] >= 1


def test_who_was_in_charge_before_has_a_zero_and_a_selector_says_what_it_thinks() -> None:
    watch, engine = watched(dsms.plan_from(table(list(range(40)))))
    for text in ("chain", "adaptive:select=best,candidates=greedy+fifo,warmup=0,explore=2,every=4"):
        for _ in range(5):
            engine.step()
        engine.swap(policy_named(text))
    before = of(taken(watch, engine), "dsms_selector_active")
    engine.run()
    found = taken(watch, engine)
    assert list(of(found, "dsms_policy_active").values()) == [0, 0, 1]
    assert list(of(found, "dsms_policy_active"))[:2] == ["fifo", "chain"]
    assert of(found, "dsms_policy_switches_total") == {(): 2}
    assert before == {"greedy": 1, "fifo": 0}
    assert set(of(found, "dsms_selector_score")) == {"greedy", "fifo"}
    assert of(found, "dsms_selector_choices_total")[()] >= 1


@pytest.mark.parametrize("hosts", [None, 2], ids=["inline", "two hosts"])
def test_metrics_agree_with_the_status_and_with_what_was_pushed(hosts: int | None) -> None:
    results = ResultCollector()
    with domain_of(asked(even=EVEN, join=JOIN), results, hosts) as domain:
        for number in range(50):
            domain.admit([("s", batch(*range(4 * number, 4 * number + 4))), ("t", batch(4 * number))])
        results.of("join", 50)
        status, found = settled(domain), domain.metrics()
        assert of(found, "dsms_result_rows_total") == {"even": 100, "join": 50}
        assert of(found, "dsms_stream_rows_total") == {"s": 200, "t": 50}
        for name, (counts, total) in of(found, "dsms_tuple_latency_seconds").items():
            assert (sum(counts), total > 0) == (len(results.rows[name]), True)
        assert of(found, "dsms_scheduler_decisions_total")[()] == status.turns
        assert of(found, "dsms_memory_tuples") == of(found, "dsms_memory_bound_tuples") == {(): 0}
        assert set(of(found, "dsms_queue_bytes").values()) == {0}
        assert of(found, "dsms_state_bytes")["join.join"] > 0
        again = domain.metrics()
        whole = [sum(of(told, state)["join.join"] for state in STATES) for told in (found, again)]
        assert whole[1] > whole[0]
        for name in (n for n in found if n.endswith("_total")):
            assert all(of(again, name)[labels] >= value for labels, value in of(found, name).items()), name


def test_a_paused_domain_says_what_waits_for_whom_in_tuples_and_in_bytes() -> None:
    with domain_of(asked(even=EVEN), ResultCollector()) as domain:
        domain.pause()
        domain.admit([("s", batch(*range(100)))])
        domain.admit([("s", batch(*range(50)))])
        found = domain.metrics()
        assert of(found, "dsms_domain_paused") == {(): 1}
        assert set(of(found, "dsms_queue_tuples").values()) == {150}
        assert set(of(found, "dsms_queue_bytes").values()) == {150 * 8}
        assert of(found, "dsms_memory_bytes") == {(): 150 * 8}
        [[_, bound]], [[_, gap]] = (found[f"dsms_memory_{name}_tuples"] for name in ("bound", "gap"))
        assert bound + gap == 150


def test_a_domain_that_failed_with_one_of_its_processes_still_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its operators keep cannot be asked for any more; all else is known."""

    def gone() -> dict[str, float]:
        raise OperatorError("a process is gone with the stations in it")

    with domain_of(BROKEN, ResultCollector()) as domain:
        monkeypatch.setattr(domain.engine.runner, "state_bytes", gone)
        with pytest.raises(OperatorError):  # a part without metrics is down
            domain.metrics()
        domain.admit([("s", batch(13))])
        settled(domain)
        found = domain.metrics()
        assert of(found, "dsms_domain_failed") == {(): 1}
        assert of(found, "dsms_stream_rows_total")["s"] == 1


def test_counts_go_on_when_queries_come_and_go_and_so_do_the_bytes_of_what_waits() -> None:
    results = ResultCollector()
    with domain_of(asked(even=EVEN), results) as domain:
        domain.admit([("s", batch(*range(10)))])
        results.of("even", 5)
        domain.pause()
        domain.admit([("s", batch(*range(10)))])
        before = domain.metrics()
        domain.add({"queries": {"odd": {"cql": "SELECT x FROM s WHERE x % 2 = 1"}}})
        after = domain.metrics()
        for name in ("dsms_operator_taken_tuples_total", "dsms_queue_bytes", "dsms_result_rows_total"):
            kept = of(before, name)
            assert {labels: of(after, name)[labels] for labels in kept} == kept
        assert of(after, "dsms_result_rows_total")["odd"] == 0
        domain.resume()
        results.of("even", 10)
        assert of(domain.metrics(), "dsms_result_rows_total") == {"even": 10, "odd": 0}


def test_rows_that_came_too_late_are_counted_where_they_were_put_aside() -> None:
    streams = {"s": {"schema": {"x": "int64", "at": "timestamp"}, "timestamp": "at", "late": "1ms"}}
    plan = {"streams": streams, "queries": {"q": {"cql": "SELECT x FROM s"}}, "run": {"on_error": "dead-letter"}}
    with domain_of(plan, ResultCollector()) as domain:
        at = np.array([10_000_000, 0, 11_000_000])
        domain.admit([("s", Batch.of({"x": np.arange(3), "at": at}))])
        settled(domain)
        late = of(domain.metrics(), "dsms_late_rows_total")
    assert (sum(late.values()), late["q.arrange"]) == (1, 1)


class Keeper:
    """Something with columns in it, by whatever ways."""

    def __init__(self, many: int) -> None:
        self.rows = {number: [np.zeros(100, np.float64)] for number in range(many)}
        self.again = self.rows


@pytest.mark.parametrize(("many", "near"), [(10, 0.0), (50 * MAX_SAMPLED_OBJECTS, 0.01)])
def test_the_size_of_a_state_is_that_of_its_columns_or_judged_by_some_of_them(many: int, near: float) -> None:
    operator: Any = dsms.plan_from(table()).stations[0].operator
    operator.kept = Keeper(many)  # an attribute that only this one has
    assert state_bytes(operator) == pytest.approx(many * 800, rel=near)


@pytest.mark.parametrize("many", [3, 100_000])
def test_texts_in_a_state_count_with_their_characters(many: int) -> None:
    operator: Any = dsms.plan_from(table()).stations[0].operator
    operator.kept = np.array(["x" * 43] * many, dtype=object)
    assert state_bytes(operator) == 100 * many


def test_every_value_is_a_number_and_every_metric_is_in_the_table() -> None:
    with domain_of(asked(even=EVEN, join=JOIN), ResultCollector(), policy="adaptive") as domain:
        domain.admit([("s", batch(1, 2)), ("t", batch(2))])
        for name, samples in domain.metrics().items():
            metric = by_name(name)
            for labels, value in samples:
                assert len(labels) == len(metric.labels)
                if metric.kind == HISTOGRAM:
                    counts, total = value
                    assert len(counts) == len(metric.buckets) + 1
                    assert math.isfinite(total)
                else:
                    assert math.isfinite(value)
