"""What would come of each policy from here on, held against what does come of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC, FEW, POLICIES, is_suitable, make_path_plan, plan_tables, policy

import dsms
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners import TupleRunner
from dsms.errors import DsmsError
from dsms.measure.run_measures import MemoryMeasure, ResultMeasure
from dsms.plan.graph import Plan
from dsms.policies.adaptive.forecast import Forecast, ForecastWorkload, build_workload, choose_best, forecast
from dsms.policies.adaptive.recent_arrivals import RecentArrivals

FOUR = ("fifo", "rr", "greedy", "mtiq")


def candidates(*names: str) -> Mapping[str, Callable[[], Policy]]:
    return {name: partial(policy, name) for name in names}


def watched(plan: Plan, name: str = "fifo", keep: int = 4096) -> tuple[Engine, RecentArrivals]:
    recent = RecentArrivals(keep)
    return Engine(plan, policy(name), observers=[recent]), recent


def stocked(look: ForecastWorkload, name: str = "fifo", *observers: Observer) -> Engine:
    """An engine that begins with what another had in its queues."""

    def runner(*arguments: Any) -> TupleRunner:
        made = TupleRunner(*arguments)
        made.load_buffers(look.stocks)
        return made

    return Engine(look.plan, policy(name), runner=runner, observers=observers)


def until(engine: Engine, instant: float) -> Engine:
    while engine.clock.now() < instant and engine.step():
        pass
    return engine


# --- the forecast against the truth


def bursts(periods: int, startup: float = 0.0, **run: Any) -> Plan:
    """Two queries on bursts every 60, of different length: the short one is costly, the long one sheds quickly."""
    one = [60 * k + 0.005 * i for k in range(periods) for i in range(400)]
    two = [60 * k + 10 + 0.03 * i for k in range(periods) for i in range(600)]
    return dsms.plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": one}}, "t": {"arrivals": {"kind": "list", "at": two}}},
        "queries": {
            "p": {"from": "s", "operators": [
                {"name": "a", "cost": 0.02, "selectivity": 0.9, "startup": startup},
                {"name": "b", "cost": 0.06, "selectivity": 0.2, "startup": startup},
                {"name": "c", "cost": 0.01, "selectivity": 0.5, "startup": startup},
            ]},
            "q": {"from": "t", "operators": [
                {"name": "d", "cost": 0.03, "selectivity": 0.25, "startup": startup},
                {"name": "e", "cost": 0.05, "selectivity": 1.0, "startup": startup},
            ]},
        },
        "run": {"selectivity": "spread", **run},
    })  # fmt: skip


def truth(first: str, now: float, name: str, **run: Any) -> tuple[float, float, float, float]:
    """The real engine under a candidate from `now` on: memory's integral, mean delay, results, time taken."""
    engine = until(Engine(bursts(3, **run), policy(first), until=now + 60), now)
    engine.fold()  # what was before does not count
    memory, results = MemoryMeasure(), ResultMeasure(engine.plan)
    engine.swap(policy(name))
    engine.watch(memory, results)
    engine.run()
    engine.finish(engine.clock.now())
    return memory.tuples_integral, float(np.mean(results.latencies)), len(results.latencies), engine.clock.now() - now


@pytest.mark.parametrize("run", [{}, {"slice": 0.5}, {"slice": 0.5, "startup": 0.06}])
@pytest.mark.parametrize(("first", "now"), [("fifo", 65.0), ("fifo", 78.0), ("mtiq", 63.0), ("mtiq", 78.0)])
def test_where_the_pattern_recurs_the_forecast_comes_true(first: str, now: float, run: dict[str, Any]) -> None:
    """Begun in the middle of the second round of bursts."""
    engine, recent = watched(bursts(2, **run), first)
    now = until(engine, now).clock.now()
    assert engine.ledger.held > 100
    found = forecast(engine, recent, candidates(*FOUR), horizon=60.0)
    true = {name: truth(first, now, name, **run) for name in FOUR}
    longest = max(elapsed for *_, elapsed in true.values())
    for name, (held, delay, results, elapsed) in true.items():
        assert found[name].mean_queued == pytest.approx(held / longest, rel=0.01)
        # Results are few, and with start-ups many of them stem from tuples further down, whose ages are estimates.
        assert found[name].mean_delay == pytest.approx(delay, rel=0.05 if run.get("startup") else 0.02)
        assert found[name].output_rate == pytest.approx(results / elapsed, rel=0.01)
    by_memory = sorted(FOUR, key=lambda name: true[name][0])
    by_delay = sorted(FOUR, key=lambda name: true[name][1])
    assert sorted(FOUR, key=lambda name: found[name].mean_queued) == by_memory
    assert sorted(FOUR, key=lambda name: found[name].mean_delay or 0) == by_delay
    assert choose_best(found, {"memory": 1.0}, present="fifo")[0] == by_memory[0]
    assert choose_best(found, {"delay": 1.0}, present="fifo")[0] == by_delay[0]


def test_it_knows_nothing_of_real_outcomes_or_of_arrivals_to_come() -> None:
    outlooks = []
    for seed, future in ((1, [9.0] * 50), (2, [])):
        plan = make_path_plan(
            {"cost": 1, "selectivity": 0.4}, {"cost": 2, "selectivity": 0.5}, at=[0.0] * 20 + future, seed=seed
        )
        engine, recent = watched(plan)
        engine.step()
        outlooks.append(forecast(engine, recent, candidates("fifo", "greedy"), horizon=100.0))
    assert outlooks[0] == outlooks[1]


def test_a_startup_makes_long_turns_worth_it() -> None:
    """Four tuples of cost 1 and start-up 3 before one operator: 4·4 by one, 3 + 4 together."""
    plan = make_path_plan({"cost": 1, "startup": 3}, at=[0.0] * 5)
    engine, recent = watched(plan)
    engine.step()
    found = forecast(engine, recent, candidates("fifo", "rr:tuples=4"), horizon=0.0)
    assert found["fifo"].turns == 4
    assert found["rr:tuples=4"].turns == 1
    assert found["fifo"].output_rate == 4 / 16
    assert found["rr:tuples=4"].output_rate == 4 / 7
    # Arrived 4 ago; done after 4, 8, 12, 16, or after 4, 5, 6, 7.
    assert found["fifo"].mean_delay == 14
    assert found["rr:tuples=4"].mean_delay == 9.5
    # Over 16 units each, though the second is done after 7.
    assert found["fifo"].mean_queued == (4 + 3 + 2 + 1) * 4 / 16
    assert found["rr:tuples=4"].mean_queued == (4 * 4 + 3 + 2 + 1) / 16


def test_what_was_measured_counts_not_what_was_declared() -> None:
    arrivals = {"kind": "list", "at": [0.0] * 3, "cost": [2.0] * 3}
    engine, recent = watched(make_path_plan({"cost": 8}, at=[], stream={"arrivals": arrivals}, statistics="average"))
    engine.step()
    found = forecast(engine, recent, candidates("fifo"), horizon=0.0)
    assert found["fifo"].output_rate == pytest.approx(1 / 9)  # 0.875·8 + 0.125·16


def test_the_shadow_has_the_weights_and_rates_that_the_engine_has_now() -> None:
    plan = make_path_plan({"cost": 0.1}, {"cost": 0.1}, at=np.arange(0, 30, 0.5), statistics="window", window=10.0)
    engine, recent = watched(plan)
    until(engine, 12.0)  # 21 arrivals in the window up to 10
    engine.control.weigh("q", 3.0)
    twin = stocked(build_workload(engine, recent, horizon=0.0))
    assert twin.control.weights == {"q": 3.0}
    for station, own in zip(twin.plan.stations, engine.plan.stations, strict=True):
        assert twin.statistics.of(station).inflows == engine.statistics.of(own).inflows == (2.1,)


def test_real_rows_are_forecast_as_abstract_tuples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parity.py").write_text("def even(batch):\n    return batch.columns['x'] % 2 == 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = dsms.plan_from({
        "streams": {"s": {}},
        "queries": {"q": {"from": "s", "operators": [
            {"name": "even", "function": "parity:even", "cost": 1.0, "selectivity": 0.5},
            {"name": "slow", "cost": 3.0},
        ]}},
        "run": {"selectivity": "spread"},
    })  # fmt: skip
    engine, recent = watched(plan)
    engine.push("s", dsms.Batch.of({"x": np.arange(9)}))
    engine.step()
    found = forecast(engine, recent, candidates("fifo", "greedy"), horizon=2.0)
    # Eight rows left and one on its way; twice nine more are expected, as nine came in one unit; half of them go on.
    assert found["fifo"].turns == 8 + 2 * 9 + 1 + 13
    assert found["fifo"].mean_delay is not None


# --- stocking


@DETERMINISTIC
@given(table=plan_tables(), text=st.sampled_from(POLICIES), steps=st.integers(0, 25))
def test_a_stocked_engine_begins_with_the_same_queues_and_drains(table: dict[str, Any], text: str, steps: int) -> None:
    """Forks, unions, shared and private buffers, fractional tuples."""
    assume(is_suitable(text, dsms.plan_from(table)))
    engine, recent = watched(dsms.plan_from(table), text)
    for _ in range(steps):
        engine.step()
    look = build_workload(engine, recent, horizon=0.0)
    results = ResultMeasure(look.plan)
    twin = stocked(look, "rr-query", results)
    counts = [queue.count for queue in twin.ledger.queues]
    if engine.plan.settings.fractional:
        assert sum(counts) == pytest.approx(sum(q.count for q in engine.ledger.queues), abs=0.5 + 1e-9)
    else:
        assert counts == [queue.count for queue in engine.ledger.queues]
        assert twin.ledger.held == engine.ledger.held
        heads = [queue.oldest - engine.admitted for queue in engine.ledger.queues]
        assert [queue.oldest for queue in twin.ledger.queues] == heads
    assert all(queue.oldest < 0 or not queue.count for queue in twin.ledger.queues)
    twin.run()
    twin.finish(twin.clock.now())
    assert twin.ledger.held == 0
    assert all(queue.count == 0 for queue in twin.ledger.queues)
    assert all(
        not line.outcomes for line in (queue.payload for queue in twin.ledger.queues)
    )  # all that was drawn, came


@DETERMINISTIC
@given(table=plan_tables(tuples=("individual",)), text=st.sampled_from(POLICIES), steps=st.integers(0, 15))
def test_where_no_chance_is_involved_the_delay_is_that_of_the_results(
    table: dict[str, Any], text: str, steps: int
) -> None:
    """All operators pass nothing, all, or two for one: then a tuple's chances are what becomes of it."""
    for query in table["queries"].values():
        for operator in query["operators"]:
            operator["selectivity"] = float(math.ceil(operator["selectivity"]))
    engine, recent = watched(dsms.plan_from(table))
    for _ in range(steps):
        engine.step()
    look = build_workload(engine, recent, horizon=4.0)
    results = ResultMeasure(look.plan)
    twin = stocked(look, text, results)
    twin.run()
    twin.finish(twin.clock.now())
    found = forecast(engine, recent, candidates(text), horizon=4.0)[text]
    assert found.mean_delay == pytest.approx(results.quantiles()["mean"])
    assert found.output_rate == pytest.approx(len(results.latencies) / (twin.clock.now() or 1.0) or None)


def test_what_is_stocked_in_the_middle_gives_what_is_left_of_the_way() -> None:
    """Ten before a and four before b: a gives 5, b gives 9/3."""
    plan = make_path_plan(
        {"cost": 1, "selectivity": 0.5}, {"cost": 1, "selectivity": 1 / 3}, at=[0.0] * 18, selectivity="spread"
    )
    engine, recent = watched(plan, "mtiq")
    for _ in range(8):
        engine.step()
    assert [queue.count for queue in engine.ledger.queues] == [10, 4]
    look = build_workload(engine, recent, horizon=0.0)
    results = ResultMeasure(look.plan)
    twin = stocked(look, "fifo", results)
    twin.run()
    twin.finish(twin.clock.now())
    assert len(results.latencies) == 3
    assert twin.clock.now() == 10 + 9


@pytest.mark.parametrize(("buffers", "held"), [("shared", 5), ("private", 8)])
def test_readers_of_one_buffer_have_the_last_of_the_same_tuples(buffers: str, held: int) -> None:
    """Greedy lets a, which leaves nothing, take two of five; b has yet to begin."""
    plan = dsms.plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0] * 5}}},
        "queries": {"q": {"operators": [
            {"name": "a", "cost": 1, "selectivity": 0, "inputs": ["s"]},
            {"name": "b", "cost": 5, "inputs": ["s"]},
        ]}},
        "run": {"buffers": buffers},
    })  # fmt: skip
    engine, recent = watched(plan, "greedy")
    until(engine, 2.0)
    assert [queue.count for queue in engine.ledger.queues] == [3, 5]
    twin = stocked(build_workload(engine, recent, horizon=0.0))
    numbers = [[entry[0] for entry in queue.payload.tuples] for queue in twin.ledger.queues]
    assert numbers == [[-3, -2, -1], [-5, -4, -3, -2, -1]]
    assert twin.ledger.held == held
    twin.run()
    assert twin.ledger.held == 0


def test_ages_are_those_of_the_arrivals_between_head_and_newest() -> None:
    """Three tuples at 0, 1 and 7 wait for a, none further down: they are 8, 7 and 1 old at 8."""
    engine, recent = watched(make_path_plan({"cost": 8}, {"cost": 1}, at=[0, 0, 1, 7]))
    engine.step()
    stock = build_workload(engine, recent, horizon=0.0).stocks
    assert stock[0].seq.tolist() == [-3, -2, -1]
    assert stock[0].arrived.tolist() == [-8, -7, -1]
    assert stock[1].arrived.tolist() == [-8]  # what a has put out


def test_what_waits_for_its_first_station_is_what_came_last_in_its_stream() -> None:
    """Of two streams that take turns, one waits in full: its numbers are not spread over those of the other."""
    plan = dsms.plan_from({
        "streams": {
            "s": {"arrivals": {"kind": "list", "at": [0, 1, 8]}},
            "t": {"arrivals": {"kind": "list", "at": [2, 3, 4, 5, 6, 7]}},
        },
        "queries": {
            "p": {"from": "s", "operators": [{"name": "a", "cost": 9}]},
            "q": {"from": "t", "operators": [{"name": "b", "cost": 9, "selectivity": 0.5}]},
        },
    })  # fmt: skip
    engine, recent = watched(plan)
    engine.step()
    stock = build_workload(engine, recent, horizon=0.0).stocks
    assert (stock[0].seq + 9).tolist() == [1, 8]
    assert stock[0].arrived.tolist() == [-8, -1]
    assert (stock[1].seq + 9).tolist() == [2, 3, 4, 5, 6, 7]
    assert build_workload(engine, recent, horizon=0.0, limit=8).stocks[1].seq.tolist() == [-7, -5, -2]


# --- the running engine is left alone


class Forecasts(Observer):
    """Looks ahead before every third turn."""

    trusted = True

    def __init__(self) -> None:
        self.recent, self.turns, self.made = RecentArrivals(16), 0, 0

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, now: float) -> None:
        self.turns += 1
        if self.turns % 3 == 0:
            self.made += len(forecast(self._engine, self.recent, candidates("rr", "fifo"), horizon=5.0))


@FEW
@given(table=plan_tables(), text=st.sampled_from(POLICIES), statistics=st.sampled_from(("declared", "average")))
def test_a_run_with_forecasts_in_it_is_the_run_without(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, Any], text: str, statistics: str
) -> None:
    table["run"]["statistics"] = statistics
    assume(is_suitable(text, dsms.plan_from(table)))
    folder, forecasts = tmp_path_factory.mktemp("traces"), Forecasts()
    plain = dsms.simulate(table, text, trace=folder / "plain")
    looked = dsms.simulate(table, text, trace=folder / "looked", observers=[forecasts.recent, forecasts])
    assert plain == looked
    assert (folder / "plain").read_bytes() == (folder / "looked").read_bytes()
    assert forecasts.made == forecasts.turns // 3 * 2


# --- its cost


def test_an_enormous_backlog_is_looked_at_in_proportion() -> None:
    """Ten thousand tuples come at once and a few a second after: a twentieth of it tells the same story."""
    at = [0.0] * 10_000 + [float(t) for t in range(1, 2_000)]
    plan = make_path_plan({"cost": 0.1, "selectivity": 0.5}, {"cost": 0.4, "selectivity": 0.5}, {"cost": 0.2}, at=at)
    engine, recent = watched(plan, keep=1 << 15)
    until(engine, 1_000.0)
    whole = forecast(engine, recent, candidates("fifo", "mtiq"), horizon=500.0, limit=10**9)
    part = forecast(engine, recent, candidates("fifo", "mtiq"), horizon=500.0, limit=1_000)
    for name in whole:
        assert part[name].turns <= 1_000 < 10_000 < whole[name].turns
        assert part[name].mean_queued == pytest.approx(whole[name].mean_queued, rel=0.05)
        assert part[name].mean_delay == pytest.approx(whole[name].mean_delay, rel=0.05)
        assert part[name].output_rate == pytest.approx(whole[name].output_rate, rel=0.05)


@pytest.mark.parametrize("limit", [1, 10, 300])
def test_the_horizon_is_as_long_as_the_limit_allows(limit: int) -> None:
    engine, recent = watched(
        make_path_plan({"cost": 0.01}, {"cost": 0.01, "selectivity": 2}, {"cost": 0.01}, at=range(1000))
    )
    until(engine, 900.0)
    found = forecast(engine, recent, candidates("fifo"), horizon=1e6, limit=limit)
    assert limit - 4 <= found["fifo"].turns <= limit


def test_a_pattern_too_short_for_the_horizon_is_repeated_but_not_for_ever() -> None:
    engine, recent = watched(make_path_plan({"cost": 0.5}, at=[0, 1, 2, 3, 4, 50]))
    until(engine, 3.5)
    assert forecast(engine, recent, candidates("fifo"), horizon=2.0)["fifo"].turns == 2
    assert forecast(engine, recent, candidates("fifo"), horizon=7.0)["fifo"].turns == 8
    assert forecast(engine, recent, candidates("fifo"), horizon=1000.0)["fifo"].turns == 16


def test_where_there_is_nothing_to_do_there_is_nothing_to_say() -> None:
    engine, recent = watched(make_path_plan({"cost": 0.5}, at=[50]))
    found = forecast(engine, recent, candidates("fifo", "rr"), horizon=10.0)
    assert found == dict.fromkeys(("fifo", "rr"), Forecast(0.0, 0.0, 0.0, 0.0, 0.0, 0))
    assert choose_best(found, {"memory": 0.5, "delay": 0.5}, present="rr")[0] == "rr"


def test_a_horizon_or_limit_that_makes_no_sense_is_refused() -> None:
    engine, recent = watched(make_path_plan({"cost": 1}, at=[0]))
    with pytest.raises(DsmsError, match=r"horizon is -1"):
        forecast(engine, recent, candidates("fifo"), horizon=-1)
    with pytest.raises(DsmsError, match=r"limit 0"):
        forecast(engine, recent, candidates("fifo"), horizon=1, limit=0)


# --- what is remembered


def test_recent_keeps_the_last_arrivals_and_marks_of_older_ones_that_wait() -> None:
    engine, recent = watched(make_path_plan({"cost": 1000.0}, at=np.arange(1000) / 8), keep=16)
    engine.step()
    assert engine.admitted == 1000
    pattern = recent.pattern()
    assert 16 <= len(pattern.seq) < 32
    assert pattern.seq.tolist() == list(range(1000 - len(pattern.seq), 1000))
    assert recent.since == (pattern.seq[0] - 1) / 8
    assert recent.newest() == [999]
    wanted = np.arange(1, 1000)
    assert np.abs(recent.arrived(wanted) - wanted / 8).max() <= 1000 / 8 / 6  # bounded, so no better than thinned
    assert recent.arrived(pattern.seq).tolist() == pattern.instants.tolist()


def test_recent_that_begins_late_takes_what_it_has_not_seen_as_just_come() -> None:
    engine = Engine(make_path_plan({"cost": 2}, at=[0, 0, 3, 3.5]), policy("fifo"))
    engine.step()
    recent = RecentArrivals()
    engine.watch(recent)
    assert recent.newest() == [1]
    engine.step()
    assert recent.newest() == [3]
    assert recent.arrived(np.array([0, 1, 2, 3])).tolist() == [2, 2, 3, 3.5]


# --- the choice

OUTLOOKS = {
    "chain": Forecast(
        held=100.0, delays=120.0, outputs=20.0, elapsed=10.0, length=10.0, turns=1
    ),  # 10, 6, 2 in the mean
    "fifo": Forecast(held=200.0, delays=80.0, outputs=20.0, elapsed=10.0, length=10.0, turns=1),  # 20, 4, 2
    "batch": Forecast(held=300.0, delays=100.0, outputs=20.0, elapsed=5.0, length=10.0, turns=1),  # 30, 5, 4
}


@pytest.mark.parametrize(
    ("weights", "winner", "scores"),
    [
        ({"memory": 1.0}, "chain", [1, 2, 3]),
        ({"delay": 1.0}, "fifo", [1.5, 1, 1.25]),
        ({"rate": 1.0}, "batch", [2, 2, 1]),
        ({"memory": 0.5, "delay": 0.5}, "chain", [1.25, 1.5, 2.125]),
        ({"memory": 0.0, "delay": 0.5, "rate": 0.5}, "batch", [1.75, 1.5, 1.125]),
    ],
)
def test_the_best_has_the_least_weighted_cost(weights: dict[str, float], winner: str, scores: list[float]) -> None:
    name, reasons = choose_best(OUTLOOKS, weights, present="fifo")
    assert name == winner
    assert [ratios["score"] for ratios in reasons.values()] == scores


def test_reasons_are_the_ratios_to_the_best_in_each_metric() -> None:
    _, reasons = choose_best(OUTLOOKS, {"memory": 0.5, "delay": 0.5}, present="fifo")
    assert reasons["fifo"] == {"memory": 2.0, "delay": 1.0, "score": 1.5}


@pytest.mark.parametrize(("hysteresis", "winner"), [(0.0, "chain"), (0.19, "chain"), (0.2, "fifo"), (0.5, "fifo")])
def test_the_present_one_stays_unless_it_is_clearly_beaten(hysteresis: float, winner: str) -> None:
    """J is 1.5 for FIFO and 1.25 for Chain: 20 % above."""
    assert choose_best(OUTLOOKS, {"memory": 0.5, "delay": 0.5}, "fifo", hysteresis)[0] == winner


def test_one_that_is_no_candidate_gives_way() -> None:
    assert choose_best(OUTLOOKS, {"memory": 0.5, "delay": 0.5}, "mtiq", hysteresis=9.0)[0] == "chain"


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(DsmsError, match=r"no metric 'memmory'.*memory"):
        choose_best(OUTLOOKS, {"memmory": 1.0}, "fifo")
