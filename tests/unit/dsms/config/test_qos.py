"""QoS requirements as texts and tables, and the two equations that score an algorithm."""

from __future__ import annotations

from typing import Any, cast

import pytest

import dsms
from dsms.config.qos import DEFAULT, TEMPLATES, Qos, Requirement, score_qos, z_score
from dsms.errors import PlanError, PolicyError

PLAN: dict[str, Any] = {
    "streams": {"s": {"arrivals": {"kind": "list", "at": [0]}}},
    "queries": {"q": {"from": "s", "operators": [{"name": "a", "cost": 1}]}},
}


def requirements(qos: Qos) -> list[tuple[str, str, float]]:
    return [(r.statistic, r.goal, r.weight) for r in qos.requirements]


def test_an_algorithm_is_compared_with_all_of_history() -> None:
    """Raindrop's table 5.1: both z, and the score of three quarters queue size and one quarter throughput."""
    queue, throughput = z_score(20, (30, 10, 50)), z_score(8, (6, 2, 10))
    assert (queue, throughput) == (0.25, 0.75)
    qos = Qos((Requirement("queued", "minimise", 0.75), Requirement("throughput", "maximise", 0.25)))
    assert score_qos(qos, {"queued": queue, "throughput": throughput}) == 0.75


@pytest.mark.parametrize(
    ("mean", "history", "faded", "expected"),
    [
        (20, (30, 10, 50), 0.5, 0.375),  # half forgotten
        (20, (30, 10, 50), 0.0, 0.5),  # wholly
        (5, (5, 5, 5), 1.0, 0.5),  # no spread
        (0, (90, 0, 100), 1.0, 0.0),  # means may differ by more than half the spread
        (100, (10, 0, 100), 1.0, 1.0),
        (None, (1, 0, 2), 1.0, 0.5),  # not seen
        (3, None, 1.0, 0.5),
    ],
)
def test_z_is_neutral_where_nothing_is_known_and_never_leaves_0_to_1(
    mean: float | None, history: tuple[float, float, float] | None, faded: float, expected: float
) -> None:
    assert z_score(mean, history, faded) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory=1", [("queued", "minimise", 1.0)]),
        (
            "memory=0.5,delay=0.3,rate=0.2",
            [("queued", "minimise", 0.5), ("delay", "minimise", 0.3), ("output_rate", "maximise", 0.2)],
        ),
        ("memory=0.5+delay=0.5", [("queued", "minimise", 0.5), ("delay", "minimise", 0.5)]),
        ("queued=0.75, max:throughput=0.25", [("queued", "minimise", 0.75), ("throughput", "maximise", 0.25)]),
        ("min:mine=1", [("mine", "minimise", 1.0)]),
        ("delay", [("delay", "minimise", 1.0)]),
        ("delay70-rate30", [("delay", "minimise", 0.7), ("output_rate", "maximise", 0.3)]),
    ],
)
def test_a_text_says_what_is_wanted(text: str, expected: list[tuple[str, str, float]]) -> None:
    assert requirements(Qos.of(text)) == expected
    assert Qos.of(str(Qos.of(text))) == Qos.of(text)


def test_without_any_wish_memory_delay_and_rate_count_alike() -> None:
    assert [DEFAULT.weight_of(name) for name in ("memory", "delay", "rate")] == pytest.approx([1 / 3] * 3)
    assert TEMPLATES["balanced"] == DEFAULT
    assert Qos.of("memory=0.4,delay=0.6").weight_of("rate") == 0
    assert Qos.of("memory=0.4,delay=0.6").weight_of("queued") == 0.4
    assert Qos.of("max:mine=1").weight_of("mine") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory=0.5,delay=0.4", "the weights add up to 0.9, not to 1: memory=0.5, delay=0.4"),
        ("memory=1.00001", "the weights add up to 1.00001, not to 1"),
        ("memory=1.5,delay=-0.5", "the weight of delay: -0.5 is not a positive number"),
        ("memory=0,delay=1", "the weight of queued: 0.0 is not a positive number"),
        ("memory=nan", "the weight of queued: nan is not a positive number"),
        ("memory=0.5,min:queued=0.5", "'queued' is required twice"),
        ("memroy=1", "no short name 'memroy' (did you mean 'memory'?); there are ['age'"),
        ("up:mine=1", "the goal of mine: 'up' is not a valid choice"),
        ("memory=much", "'memory=much' in 'memory=much': expected NAME=WEIGHT"),
        ("balance", "no template 'balance' (did you mean 'balanced'?); there are ['balanced', 'delay'"),
        ("", "no template ''; there are ['balanced'"),
    ],
)
def test_a_text_that_cannot_be_meant_is_refused_with_its_value(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        Qos.of(text)
    assert message in str(refused.value)


def test_weights_a_millionth_off_are_taken_and_no_requirement_is_not() -> None:
    for text, weights in (
        ("memory=0.333333,delay=0.333333,rate=0.333334", [0.333333, 0.333333, 0.333334]),
        ("memory=0.3333333,delay=0.3333333,rate=0.3333333", [0.3333333] * 3),
    ):
        assert [Qos.of(text).weight_of(name) for name in ("memory", "delay", "rate")] == weights
    with pytest.raises(PolicyError, match="no requirement: give at least one"):
        Qos(())
    with pytest.raises(PolicyError, match=r"qos is 3: it must be a Qos, a table, or a text"):
        Qos.of(cast(Any, 3))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"memory": 0.5, "delay": 0.5}, "memory=0.5,delay=0.5"),
        ({"template": "memory-rate"}, "memory=0.5,rate=0.5"),
        ({"rate": 0.5, "mine": {"weight": 0.5, "goal": "maximize"}}, "rate=0.5,max:mine=0.5"),
        ({"memory": {"weight": 1, "goal": "maximise"}}, "max:queued=1"),
        ({"memory": {"weight": 1}}, "memory=1"),
    ],
)
def test_a_plan_says_what_is_wanted_of_it(table: dict[str, Any], expected: str) -> None:
    assert dsms.plan_from(PLAN | {"qos": table}).qos == Qos.of(expected)


def test_a_plan_that_says_nothing_wants_nothing_in_particular() -> None:
    assert dsms.plan_from(PLAN).qos is None


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"memory": 0.5}, "qos", "the weights add up to 0.5, not to 1"),
        ({}, "qos", "no requirement"),
        ({"memory": "all"}, "qos.memory", "the weight of queued: 'all' is not a positive number"),
        ({"memory": True}, "qos.memory", "the weight of queued: True is not"),
        ({"dealy": 1}, "qos.dealy", "no short name 'dealy' (did you mean 'delay'?)"),
        ({"mine": {"weight": 1, "gaol": "maximise"}}, "qos.mine.gaol", "no such key (did you mean 'goal'?)"),
        ({"mine": {"goal": "maximise"}}, "qos.mine", "the weight of mine: nan is not"),
        ({"mine": {"weight": 1, "goal": ["up"]}}, "qos.mine", "the goal of mine: ['up'] is not a valid choice"),
        (
            {"template": "memory", "delay": 1},
            "qos.template",
            "a template cannot be combined with other keys: remove ['delay']",
        ),
        ({"template": "mem"}, "qos.template", "no template 'mem'"),
        ({"template": ["memory"]}, "qos.template", "no template ['memory']"),
        (3, "qos", "3 is not a table"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(table: Any, place: str, message: str) -> None:
    with pytest.raises(PlanError) as refused:
        dsms.plan_from(PLAN | {"qos": table})
    assert refused.value.place == place
    assert refused.value.message.startswith(message)


def test_a_statistic_that_is_not_gathered_cannot_be_required() -> None:
    with pytest.raises(PolicyError, match=r"no plan statistic 'agee' is gathered \(did you mean 'age'\?\)"):
        Qos.of("min:agee=1").check(["age", "delay"])
