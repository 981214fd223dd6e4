"""The selector above policies: warm-up, exploration, choices by score, and what changes them."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dsms
from dsms.config.qos import Qos
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy, StatefulPolicy
from dsms.errors import PlanError, PolicyError
from dsms.policies.adaptive.adaptive import Adaptive
from dsms.policies.adaptive.gatherer import Gatherer, Statistic
from dsms.policies.adaptive.heuristics import HEURISTICS, MIN_SCORE, Best, Roulette, Selection, SelectionContext
from dsms.policies.adaptive.selector import Choice, Scores
from dsms.policies.adaptive.settings import Tuning
from dsms.policies.fifo import Fifo
from dsms.policies.registry import policy_named

FOUR = "greedy+fifo+mtiq+rr"
CHOSEN = ("best", "roulette")


def bursts(until: int, **tables: Any) -> dsms.Plan:
    """Ten tuples a time unit, all but done before the next: every period is like any other.

    Greedy holds 2.7 tuples in the mean, mtiq 3.0, fifo 3.4; fifo's results are 0.41 late, greedy's 0.49, mtiq's 0.53.
    """
    operators = [
        {"name": "a", "cost": 0.02, "selectivity": 0.5},
        {"name": "b", "cost": 0.1, "selectivity": 0.5},
        {"name": "c", "cost": 0.02},
    ]
    at = [t + i * 0.01 for t in range(until) for i in range(10)]
    return dsms.plan_from({
        "streams": {"s": {"arrivals": {"kind": "list", "at": at}}},
        "queries": {"q": {"from": "s", "operators": operators}},
        "run": {"selectivity": "spread"},
        **tables,
    })  # fmt: skip


def adaptive(text: str = "", **given: Any) -> Adaptive:
    made = policy_named(f"adaptive:{text}") if text else Adaptive(**{"candidates": FOUR, **given})
    assert isinstance(made, Adaptive)
    return made


def chosen(policy: Adaptive) -> Counter[str]:
    """How often each was chosen, warm-up and exploration left out."""
    return Counter(choice.chosen for choice in policy.choices if choice.why in CHOSEN)


def test_the_first_warms_up_each_is_tried_once_and_the_first_again() -> None:
    policy = adaptive(select="best")
    dsms.simulate(bursts(20), policy)
    told = [(round(c.instant), c.chosen, c.why) for c in policy.choices]
    assert told[:6] == [
        (0, "greedy", "warm-up"),
        (5, "greedy", "exploration"),
        (6, "fifo", "exploration"),
        (7, "mtiq", "exploration"),
        (8, "rr", "exploration"),
        (9, "greedy", "exploration"),
    ]
    assert told[6][0] == 10
    assert {why for _, _, why in told[6:]} == {"best"}


def test_warm_up_and_exploration_can_be_left_out() -> None:
    policy = adaptive("warmup=0,explore=0,every=3,candidates=fifo+greedy")
    dsms.simulate(bursts(10), policy)
    assert [(c.chosen, c.why) for c in policy.choices][:2] == [
        ("fifo", "first"),
        (policy.choices[1].chosen, "roulette"),
    ]
    assert policy.choices[1].scores == {"fifo": 0.5, "greedy": 0.5}


def test_an_algorithm_is_kept_for_as_long_as_is_said() -> None:
    policy = adaptive(select="roulette", every=3.0, warmup=1.0)
    dsms.simulate(bursts(40), policy)
    instants = [choice.instant for choice in policy.choices if choice.why == "roulette"]
    assert len(instants) > 5
    assert all(3 <= b - a < 4 for a, b in pairwise(instants))


def test_warm_up_does_not_count() -> None:
    """The first candidate starts with empty queues, so its time does not count."""
    policy = adaptive(warmup=4.0)
    engine = Engine(bursts(20), policy)
    while len(policy.choices) < 2:
        engine.step()
    assert policy.selector is not None
    assert policy.selector.gatherer.views == {}
    assert policy.selector.scores == dict.fromkeys(FOUR.split("+"), 0.5)


@pytest.mark.parametrize(("qos", "best"), [("memory", "greedy"), ("delay", "fifo")])
def test_the_best_for_one_requirement_is_chosen_most_often(qos: str, best: str) -> None:
    """Raindrop's single-QoS demonstration."""
    policy = adaptive(select="best", qos=qos, candidates="greedy+fifo+mtiq")
    dsms.simulate(bursts(120), policy)
    counts = chosen(policy)
    assert counts[best] > 0.7 * counts.total()


@pytest.mark.parametrize(("qos", "best"), [("memory", "greedy"), ("delay", "fifo")])
def test_the_wheel_favours_the_best_and_tries_all(qos: str, best: str) -> None:
    policy = adaptive(select="roulette", qos=qos, candidates="greedy+fifo+mtiq")
    dsms.simulate(bursts(250), policy)
    counts = chosen(policy)
    assert counts.most_common(1)[0][0] == best
    assert counts[best] > counts.total() / 3
    assert set(counts) == {"greedy", "fifo", "mtiq"}


def test_tuned_for_one_thing_it_does_better_in_that_than_tuned_for_another() -> None:
    runs = {q: dsms.simulate(bursts(120), adaptive(select="best", qos=q)) for q in ("memory", "delay")}
    assert runs["memory"].memory.tuples.mean < runs["delay"].memory.tuples.mean
    late = {q: run.latency.mean or 0.0 for q, run in runs.items()}
    assert 0 < late["delay"] < late["memory"]


def test_other_requirements_while_it_runs_change_who_is_chosen() -> None:
    policy = adaptive(select="best", qos="memory", candidates="greedy+fifo+mtiq")
    engine = Engine(bursts(160), policy)
    while engine.clock.now() < 80:
        engine.step()
    before = chosen(policy)
    policy.qos = "delay"
    engine.run()
    after = chosen(policy) - before
    assert before.most_common(1)[0][0] == "greedy"
    assert after.most_common(1)[0][0] == "fifo"
    assert after["fifo"] > 0.7 * after.total()


@pytest.mark.parametrize(
    ("tables", "given", "expected"),
    [({}, None, "balanced"), ({"qos": {"delay": 1.0}}, None, "delay"), ({"qos": {"delay": 1.0}}, "memory", "memory")],
)
def test_requirements_come_from_the_plan_unless_they_are_given(tables: Any, given: str | None, expected: str) -> None:
    policy = adaptive(qos=given)
    Engine(bursts(1, **tables), policy)
    assert policy.selector is not None
    assert policy.selector.qos == Qos.of(expected)


def test_the_tables_of_a_plan_hold_for_the_policy_unless_its_text_says_otherwise() -> None:
    table = {"candidates": ["mtiq:ratio=0.3,threshold=50", "fifo"], "every": 4.0, "warmup": 1.0, "select": "best"}
    plan = bursts(20, adaptive=table)
    policy = adaptive("every=3,candidates=greedy")
    policy.candidates = None
    dsms.simulate(plan, policy)
    assert policy.selector is not None
    assert list(policy.selector.candidates) == ["mtiq:ratio=0.3,threshold=50", "fifo"]
    assert (policy.selector.tuning.every, policy.selector.tuning.warmup) == (3.0, 1.0)
    assert policy.choices[-1].why == "best"


def test_every_choice_is_told_with_its_scores() -> None:
    told: list[Choice] = []
    policy = adaptive(select="roulette")
    policy.listen(told.append)
    swaps: list[str] = []

    class Swaps(Observer):
        def swap(self, now: float, before: Policy, after: Policy) -> None:
            swaps.append(after.name)

    dsms.simulate(bursts(40), policy, observers=[Swaps()])
    assert told == policy.choices
    assert all(list(choice.scores) == FOUR.split("+") for choice in told)
    assert all(0 <= value <= 1 for choice in told for value in choice.scores.values())
    names = [choice.chosen for choice in told]
    assert swaps == [after for before, after in pairwise(names) if after != before]


def test_one_who_fails_when_told_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def fail(choice: Choice) -> None:
        raise ValueError(choice.chosen)

    policy = adaptive(candidates="fifo")
    policy.listen(fail)
    dsms.simulate(bursts(2), policy)
    assert "failed on a choice" in caplog.text


def test_a_choice_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    def told(seed: int) -> list[Choice]:
        policy = adaptive(select="roulette")
        dsms.simulate(bursts(60), policy, seed=seed)
        return policy.choices

    assert told(1) == told(1)
    assert [choice.chosen for choice in told(1)] != [choice.chosen for choice in told(2)]


class Views(Gatherer):
    """A gatherer that has seen what it is told to have."""

    def __init__(self, **means: float) -> None:
        super().__init__(bursts(1))
        for name, mean in means.items():
            self.algorithm = name
            for value in (mean - 1, mean, mean + 1):
                self._add("plan", "queued", np.array([value]))


def test_who_ran_keeps_a_faded_score_and_the_others_are_scored_against_history() -> None:
    views, memory = Views(fifo=4.0, greedy=2.0), Qos.of("memory")
    scores = Scores(["fifo", "greedy", "rr"], 0.9, "z")
    scores.update("greedy", views, memory)  # required for the first time: all are scored
    first = dict(scores.now)
    assert first["greedy"] > 0.5 > first["fifo"]
    assert first["rr"] == 0.5  # nothing is known of it
    scores.update("greedy", views, memory)
    assert scores.now["greedy"] == pytest.approx(0.5 + 0.9 * (first["greedy"] - 0.5))
    assert scores.now["fifo"] == pytest.approx(0.5 + 0.9 * (first["fifo"] - 0.5))  # one evaluation longer unseen


def test_what_is_not_seen_for_long_is_neither_good_nor_bad() -> None:
    views = Views(fifo=4.0, greedy=2.0)
    scores = Scores(["fifo", "greedy"], 0.9, "z")
    for _ in range(100):
        scores.update("greedy", views, Qos.of("memory"))
    assert scores.now == pytest.approx({"fifo": 0.5, "greedy": 0.5}, abs=1e-4)


def test_read_the_other_way_a_score_fades_to_nothing() -> None:
    """The score, not z: a z of 0 would make what is to be small look perfect."""
    views = Views(fifo=4.0, greedy=2.0)
    scores = Scores(["fifo", "greedy"], 0.9, "score")
    scores.update("greedy", views, Qos.of("memory"))
    first = dict(scores.now)
    scores.update("greedy", views, Qos.of("memory"))
    assert scores.now == pytest.approx({name: value * 0.9 for name, value in first.items()})


def question(**scores: float) -> SelectionContext:
    engine: Any = None
    return SelectionContext(engine, {name: policy_named(name) for name in scores}, "fifo", Qos.of("memory"), scores)


def test_the_wheel_gives_everyone_a_chance() -> None:
    wheel, asked = Roulette(Tuning(), 1), question(fifo=0.9, greedy=0.1, rr=0.0)
    counts = Counter(wheel.choose(asked).chosen for _ in range(4000))
    assert counts["fifo"] / 4000 == pytest.approx(0.9 / (1 + MIN_SCORE), abs=0.02)
    assert counts["greedy"] / 4000 == pytest.approx(0.1 / (1 + MIN_SCORE), abs=0.02)
    assert counts["rr"] > 0


def test_the_best_is_chosen_and_of_equals_the_one_that_has_waited_longest() -> None:
    best = Best(Tuning(), 1)
    assert best.choose(question(fifo=0.9, greedy=0.1)).chosen == "fifo"
    assert [best.choose(question(fifo=0.5, greedy=0.5, rr=0.495)).chosen for _ in range(4)] == [
        "greedy", "rr", "fifo", "greedy",
    ]  # fmt: skip


class Starving(Engine):
    """An engine that says what it is told of how often it was asked in vain."""

    vain = 0

    @property
    def starvations(self) -> int:
        return self.vain

    @starvations.setter
    def starvations(self, counted: int) -> None:
        return


def test_one_that_starves_operators_is_changed_at_once() -> None:
    policy = adaptive(select="best", candidates="greedy+fifo", warmup=0.0, explore=0.0, every=50.0, starvation=3)
    engine = Starving(bursts(20), policy)
    for starvations in (1, 2, 3):  # up to the threshold
        engine.vain = starvations
        engine.step()
    assert [choice.chosen for choice in policy.choices] == ["greedy"]
    engine.vain = 4
    engine.step()
    assert [(choice.chosen, choice.why) for choice in policy.choices] == [("greedy", "first"), ("fifo", "starvation")]
    engine.step()
    assert engine.control.policy.name == "fifo"
    engine.vain = 7  # counted from when it was chosen
    engine.step()
    assert len(policy.choices) == 2
    engine.vain = 8
    engine.step()
    assert [choice.chosen for choice in policy.choices] == ["greedy", "fifo", "greedy"]


def test_a_starving_algorithm_is_found_out_by_the_engine_itself() -> None:
    """Greedy prefers a, which is empty most of the time."""
    policy = adaptive(select="best", candidates="greedy+rr", warmup=0.0, explore=0.0, every=50.0, starvation=10)
    dsms.simulate(bursts(5), policy)
    assert [(choice.chosen, choice.why) for choice in policy.choices][:2] == [("greedy", "first"), ("rr", "starvation")]


def test_one_that_starves_operators_while_it_is_tried_gives_way_to_the_next() -> None:
    policy = adaptive(candidates="greedy+fifo", starvation=0)
    engine = Starving(bursts(20), policy)
    engine.vain = 1
    engine.step()
    engine.step()
    assert [(c.chosen, c.why) for c in policy.choices] == [("greedy", "warm-up"), ("fifo", "starvation")]


def test_without_a_threshold_nobody_counts() -> None:
    policy = adaptive()
    engine = Starving(bursts(5), policy)
    engine.vain = 10**6
    engine.step()
    assert len(policy.choices) == 1


def test_it_is_taken_out_of_charge_like_any_policy() -> None:
    policy = adaptive(warmup=1.0)
    engine = Engine(bursts(20), policy)
    while engine.clock.now() < 4:
        engine.step()
    engine.swap(policy_named("rr"))
    count = len(policy.choices)
    engine.run()
    assert (engine.control.chosen.name, engine.control.policy.name) == ("rr", "rr")
    assert len(policy.choices) == count
    assert engine.ledger.held == 0


def test_it_may_be_put_in_charge_again_and_of_another_run() -> None:
    policy = adaptive(warmup=1.0)
    engine = Engine(bursts(20), policy)
    while engine.clock.now() < 6:
        engine.step()
    before = policy.selector
    engine.swap(policy)
    assert policy.selector is not before
    engine.run()
    assert policy.choices[0].instant >= 6
    for other in (policy_named("rr"), policy, policy_named("fifo"), policy):  # taken out, and put in once more
        engine.swap(other)
    assert sum(isinstance(observer, Gatherer) for observer in engine.observers) == 1
    assert dsms.simulate(bursts(20), policy).outputs == dsms.simulate(bursts(20), "fifo").outputs


def test_candidates_are_put_in_charge_and_taken_out_by_their_own_hooks() -> None:
    told = []

    class NotifiedFifo(Fifo, StatefulPolicy):
        name = "told"

        def begin(self, engine: Engine) -> Policy:
            told.append("begin")
            return self

        def end(self, engine: Engine) -> None:
            told.append("end")

    policy = adaptive(candidates=[NotifiedFifo(), "greedy"], warmup=1.0, select="best")
    engine = Engine(bursts(20), policy)
    while engine.clock.now() < 3.5:
        engine.step()
    assert [choice.chosen for choice in policy.choices] == ["told", "told", "greedy", "told"]
    assert told == ["begin", "end", "begin"]
    engine.swap(policy_named("rr"))
    assert told == ["begin", "end", "begin", "end"]


def test_a_statistic_of_ones_own_may_be_required() -> None:
    policy = adaptive(select="best", qos="max:luck=1", candidates="greedy+fifo+mtiq")
    policy.define(Statistic("luck", "plan", lambda engine: float(engine.control.policy.name == "mtiq")))
    dsms.simulate(bursts(80), policy)
    counts = chosen(policy)
    assert counts["mtiq"] > 0.7 * counts.total()


def test_what_is_not_gathered_cannot_be_required() -> None:
    with pytest.raises(PolicyError, match=r"no plan statistic 'luck' is gathered; there are \['age', 'delay'"):
        Engine(bursts(5), adaptive(qos="max:luck=1"))
    policy = adaptive()
    Engine(bursts(5), policy)
    with pytest.raises(PolicyError, match="no plan statistic 'luck'"):
        policy.qos = "max:luck=1"
    with pytest.raises(PolicyError, match=r"the weights add up to 0\.5"):
        policy.qos = "memory=0.5"


def test_nor_while_it_is_in_charge_whoever_asks() -> None:
    """Else the run would end when candidates are scored next."""
    engine = Engine(bursts(5), adaptive(select="best", qos="memory"))
    with pytest.raises(PolicyError, match="no plan statistic 'freshness' is gathered"):
        engine.control.require("freshness=1")
    assert str(engine.control.qos) == "memory=1"
    engine.swap(policy_named("fifo"))
    engine.control.require("freshness=1")
    with pytest.raises(PolicyError, match="no plan statistic 'freshness' is gathered"):
        engine.swap(adaptive())
    engine.run()


def test_asked_by_itself_it_answers_as_the_one_it_would_begin_with() -> None:
    plan = bursts(1)
    policy, greedy = adaptive(), policy_named("greedy")
    segments = policy.segments(plan)
    for segment in segments:
        segment.mean_cost = 2.0
        segment.freed = 1.0
    assert [s.names for s in segments] == [s.names for s in greedy.segments(plan)]
    assert [policy.priority(s) for s in segments] == [greedy.priority(s) for s in segments]
    assert [policy.share(s) for s in segments] == [greedy.share(s) for s in segments]


@pytest.mark.parametrize(("qos", "best"), [("memory", "greedy"), ("delay", "fifo")])
def test_a_look_ahead_needs_no_exploration(qos: str, best: str) -> None:
    policy = adaptive(select="predictive", qos=qos, candidates="mtiq+greedy+fifo", horizon=5.0)
    run = dsms.simulate(bursts(30), policy)
    assert [(c.chosen, c.why) for c in policy.choices][:2] == [("mtiq", "first"), (best, "predictive")]
    counts = Counter(choice.chosen for choice in policy.choices[1:])
    assert counts[best] > 0.7 * counts.total()
    assert set(policy.choices[-1].figures) == {"mtiq", "greedy", "fifo"}
    assert run.outputs == dsms.simulate(bursts(30), "fifo").outputs


def test_a_heuristic_of_ones_own_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the engine, the candidates, the requirements and the scores; it may skip exploration."""

    class Alternating:
        explores = False
        observers = ()

        def __init__(self, tuning: Tuning, seed: int) -> None:
            self.seed = seed

        def choose(self, question: SelectionContext) -> Selection:
            other = next(name for name in question.candidates if name != question.active)
            return Selection(other, "alternating", {"queued": question.engine.ledger.held})

    monkeypatch.setitem(HEURISTICS, "alternating", Alternating)
    policy = adaptive("select=alternating,candidates=fifo+greedy")
    dsms.simulate(bursts(7), policy)
    assert [c.chosen for c in policy.choices] == ["fifo", "greedy"] * 3 + ["fifo"]
    # The first is not kept for long, as nothing was known when it was chosen; then each twice as long, up to `every`.
    instants = [c.instant for c in policy.choices]
    assert instants[:4] == pytest.approx([0, 0.125, 0.375, 0.875], abs=0.3)
    assert policy.choices[1].why == "alternating"
    assert "queued" in policy.choices[1].figures


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"select": "beste"}, "adaptive: select: 'beste' is not a valid choice (did you mean 'best'?); there are"),
        ({"candidates": "greedy+fiffo"}, "adaptive: candidates: no policy 'fiffo' (did you mean 'fifo'?); there are"),
        ({"candidates": "fifo+adaptive:every=3"}, "adaptive: candidates: 'adaptive' cannot be its own candidate"),
        ({"candidates": []}, "adaptive: candidates is []: expected policies"),
        ({"candidates": [3]}, "adaptive: candidates: 3 is not a policy"),
        ({"candidates": "mtiq:ratio=2"}, "adaptive: candidates: mtiq: ratio is 2.0"),
        ({"every": 0}, "adaptive: every: 0 is not a positive number"),
        ({"period": -1}, "adaptive: period: -1 is not a positive number"),
        ({"warmup": -1}, "adaptive: warmup: -1 is not a number from 0"),
        ({"explore": math.inf}, "adaptive: explore: inf is not a number from 0"),
        ({"decay": 0}, "adaptive: decay: 0 is not a number above 0 and up to 1"),
        ({"decay": 1.5}, "adaptive: decay: 1.5 is not a number above 0 and up to 1"),
        ({"fade": "both"}, "adaptive: fade: 'both' is not a valid choice; there are ['score', 'z']"),
        ({"starvation": -1}, "adaptive: starvation: -1 is not a number from 0"),
        ({"qos": "memory=2"}, "qos: the weights add up to 2, not to 1"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_with_its_value(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        adaptive(**given)
    assert str(refused.value).startswith(message)


def test_one_candidate_cannot_be_two() -> None:
    with pytest.raises(PolicyError, match=r"candidates are \['rr:tuples=3', 'rr:tuples=3'\]: name each once"):
        Engine(bursts(1), adaptive(candidates=["rr:tuples=3", "rr:tuples=3"]))


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"evry": 1}, "adaptive.evry", "no such key (did you mean 'every'?)"),
        ({"every": "often"}, "adaptive.every", "'often' is not a positive number"),
        ({"candidates": ["fifo", "fiffo"]}, "adaptive.candidates", "adaptive: candidates: no policy 'fiffo'"),
        ({"select": ["best"]}, "adaptive.select", "['best'] is not a valid choice"),
        (3, "adaptive", "3 is not a table"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(table: Any, place: str, message: str) -> None:
    with pytest.raises(PlanError) as refused:
        bursts(1, adaptive=table)
    assert refused.value.place == place
    assert refused.value.message.startswith(message)


def test_the_defaults_are_raindrops() -> None:
    defaults = Tuning(candidates="fifo")
    assert (defaults.every, defaults.period, defaults.warmup, defaults.explore) == (2.0, 1.0, 5.0, 1.0)
    assert Tuning.candidates == "chain+fifo+mtiq+rr"
