"""Batches, and the operators that take and give them: list in, list out."""

from __future__ import annotations

import functools
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from dsms import Batch, plan_from, simulate
from dsms.config.run import Settings
from dsms.operators import AbstractOperator, FunctionOperator, Operator

PEOPLE: dict[str, list[Any]] = {"name": ["ann", "bob", "cid"], "age": [30, 20, 10]}


def abstract(model: str, selectivity: float, name: str = "q.o", seed: int = 1, **figures: Any) -> Operator:
    """An abstract operator as a run has it."""
    run = {"tuples": "fractional"} if model == "fractional" else {"selectivity": model}
    operator = AbstractOperator(cost=1.0, selectivity=selectivity, name=name, **figures)
    return operator.fresh(Settings.read({**run, "seed": seed}))


def tuples(*identity: int, **attributes: Any) -> Batch:
    """Abstract tuples with these identities."""
    return Batch.of(identity=np.array(identity, dtype=np.uint64), **attributes)


def identities(batch: Batch) -> list[int]:
    return [int(identity) for identity in batch.each("identity")]


def test_a_batch_is_made_of_lists_and_read_as_records() -> None:
    batch = Batch.of(PEOPLE)
    assert len(batch) == 3
    assert batch.records() == [{"name": "ann", "age": 30}, {"name": "bob", "age": 20}, {"name": "cid", "age": 10}]


def test_a_batch_of_nothing_is_empty() -> None:
    assert (len(Batch()), len(Batch.of()), Batch.of().records()) == (0, 0, [])
    assert Batch.of({"a": []}).records() == []


def test_columns_that_differ_in_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"columns of one batch differ in length: \{'a': 2, 'b': 3\}"):
        Batch.of({"a": [1, 2], "b": [1, 2, 3]})


def test_attributes_that_differ_in_length_from_the_columns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"columns of one batch differ in length: \{'a': 2, 'ts': 3\}"):
        Batch.of({"a": [1, 2]}, ts=[1, 2, 3])
    with pytest.raises(ValueError, match=r"columns of one batch differ in length: \{'size': 1, 'cost': 2\}"):
        Batch.of(size=[1.0], cost=np.array([1.0, 2.0]))


def test_a_number_of_rows_that_differs_from_the_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        Batch.of({"a": [1, 2]}, rows=5)


def test_abstract_rows_have_a_number_and_no_columns() -> None:
    batch = Batch.of(rows=4, size=2.5)
    assert len(batch) == 4
    assert batch.each("size").tolist() == [2.5, 2.5, 2.5, 2.5]


def test_attributes_are_scalars_until_they_vary() -> None:
    batch = Batch.of({"a": [1, 2]}, ts=7, arrived=[0.5, 1.5])
    assert batch.ts == 7
    assert batch.each("ts").tolist() == [7, 7]
    assert batch.each("arrived").tolist() == [0.5, 1.5]
    assert batch.each("sign").tolist() == [1, 1]


def test_first_is_the_value_of_the_first_row() -> None:
    batch = Batch.of({"a": [1, 2]}, ts=7, arrived=[0.5, 1.5])
    assert (batch.first("ts"), batch.first("arrived")) == (7, 0.5)


def test_total_sums_over_rows_whether_the_attribute_varies_or_not() -> None:
    assert Batch.of(rows=3, size=2.0).total("size") == 6.0
    assert Batch.of(size=[1.0, 2.5]).total("size") == 3.5
    assert Batch.of(size=[]).total("size") == 0


def test_pick_takes_a_mask() -> None:
    batch = Batch.of(PEOPLE, ts=[1, 2, 3], size=9.0)
    picked = batch.pick(np.array([True, False, True]))
    assert picked.records() == [{"name": "ann", "age": 30}, {"name": "cid", "age": 10}]
    assert (len(picked), picked.each("ts").tolist(), picked.each("size").tolist()) == (2, [1, 3], [9.0, 9.0])


def test_pick_takes_positions_and_repeats_them() -> None:
    picked = Batch.of(PEOPLE, ts=[1, 2, 3]).pick(np.array([2, 0, 0]))
    assert [row["name"] for row in picked.records()] == ["cid", "ann", "ann"]
    assert (len(picked), picked.each("ts").tolist()) == (3, [3, 1, 1])


def test_pick_takes_a_slice_and_copies_nothing() -> None:
    batch = Batch.of(PEOPLE)
    picked = batch.pick(slice(1, 9))
    assert [row["name"] for row in picked.records()] == ["bob", "cid"]
    assert len(picked) == 2
    assert np.shares_memory(picked.columns["age"], batch.columns["age"])


def test_pick_leaves_the_batch_as_it_was() -> None:
    batch = Batch.of(PEOPLE)
    batch.pick(np.array([False, False, False]))
    assert len(batch) == 3


def test_pick_of_no_rows_keeps_their_place_in_the_order_of_arrival() -> None:
    nothing = Batch.of(PEOPLE, ts=[1, 2, 3], seq=[7, 8, 9], watermark=4).pick(np.array([], dtype=int))
    assert (len(nothing), nothing.first("seq"), nothing.watermark, nothing.each("ts").tolist()) == (0, 7, 4, [])


def test_pick_of_rows_without_columns_counts_them() -> None:
    batch = Batch.of(rows=5)
    assert len(batch.pick(slice(1, 3))) == 2
    assert len(batch.pick(np.array([0, 0, 4]))) == 3
    assert len(batch.pick(np.array([True, False, True, False, False]))) == 2


@pytest.mark.parametrize(
    ("rows", "first", "rest"), [(0, [], [1, 2, 3]), (2, [1, 2], [3]), (3, [1, 2, 3], []), (9, [1, 2, 3], [])]
)
def test_cut_gives_the_first_rows_and_the_rest(rows: int, first: list[int], rest: list[int]) -> None:
    parts = Batch.of({"a": [1, 2, 3]}, seq=[7, 8, 9]).cut(rows)
    assert [part.columns["a"].tolist() for part in parts] == [first, rest]
    assert [len(part) for part in parts] == [len(first), len(rest)]
    assert [part.each("seq").tolist() for part in parts] == [[6 + a for a in first], [6 + a for a in rest]]


def test_records_hold_plain_python_values() -> None:
    (record,) = Batch.of({"a": [1], "b": [1.5], "c": ["x"], "d": [True]}).records()
    assert [type(value) for value in record.values()] == [int, float, str, bool]


def test_a_batch_survives_a_process_boundary() -> None:
    batch = pickle.loads(pickle.dumps(Batch.of(PEOPLE, ts=[1, 2, 3])))
    assert batch.records() == Batch.of(PEOPLE).records()
    assert batch.each("ts").tolist() == [1, 2, 3]


def test_a_function_may_answer_with_a_mask_of_the_rows_to_keep() -> None:
    adults = FunctionOperator(cost=1.0, function=lambda batch: batch.columns["age"] >= 18)
    kept = adults.process(Batch.of(PEOPLE, arrived=[1.0, 2.0, 3.0]))
    assert [row["name"] for row in kept.records()] == ["ann", "bob"]
    assert kept.each("arrived").tolist() == [1.0, 2.0]


def test_a_function_may_answer_with_a_batch() -> None:
    older = FunctionOperator(cost=1.0, function=lambda batch: Batch.of({"age": batch.columns["age"] + 1}))
    assert older.process(Batch.of(PEOPLE)).records() == [{"age": 31}, {"age": 21}, {"age": 11}]


def test_a_function_without_an_answer_of_its_own_passes_everything_on() -> None:
    assert FunctionOperator(cost=1.0).process(Batch.of(PEOPLE)).records() == Batch.of(PEOPLE).records()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, "NoneType"),
        ([True, False, True], "list"),
        (np.array([0, 1, 2]), "ndarray"),
        (np.array([True, False]), "ndarray"),
    ],
)
def test_a_function_that_answers_with_something_else_is_told_what_is_wanted(answer: Any, kind: str) -> None:
    def odd(batch: Batch) -> Any:
        return answer

    wanted = f"function 'odd' returned {kind}: it must return a Batch or a boolean mask of 3 rows"
    with pytest.raises(TypeError, match=wanted):
        FunctionOperator(cost=1.0, function=odd).process(Batch.of(PEOPLE))


def test_a_callable_without_a_name_is_told_the_same() -> None:
    nameless = functools.partial(lambda answer, batch: answer, 3)
    with pytest.raises(TypeError, match="returned int: it must return a Batch or a boolean mask of 3 rows"):
        FunctionOperator(cost=1.0, function=nameless).process(Batch.of(PEOPLE))


@pytest.mark.parametrize("function", [None, lambda batch: batch])
def test_what_a_function_has_taken_leaves_memory(function: Any) -> None:
    """Three tuples of 40 bytes, one after the other, each for two units of time; the abstract peer as yardstick."""
    operators = [{"name": "a", "cost": 1.0}, {"name": "b", "cost": 1.0} | ({"function": function} if function else {})]
    table = {
        "streams": {"s": {"size": 40, "arrivals": {"kind": "list", "at": [0, 10, 20]}}},
        "queries": {"q": {"from": "s", "operators": operators}},
    }
    memory = simulate(plan_from(table), "fifo").memory
    assert (memory.tuples.max, memory.tuples.integral) == (1, 6)
    assert (memory.bytes.max, memory.bytes.integral) == (40, 240)


def test_random_selectivity_passes_some_tuples_on_by_their_identity() -> None:
    batch = tuples(*range(10_000))
    passed = identities(abstract("random", 0.3).process(batch))
    assert len(passed) == pytest.approx(3000, abs=150)
    assert passed == sorted(passed)  # order kept, each as it was
    assert set(passed) <= set(range(10_000))


def test_random_selectivity_is_the_same_however_the_tuples_are_split() -> None:
    together = identities(abstract("random", 0.3).process(tuples(*range(100))))
    operator = abstract("random", 0.3)
    apart = [identities(operator.process(tuples(number))) for number in range(100)]
    assert [identity for part in apart for identity in part] == together


def test_random_selectivity_differs_by_operator_and_by_seed() -> None:
    batch = tuples(*range(100))
    answers = [
        identities(abstract("random", 0.5, name, seed).process(batch))
        for name, seed in (("q.o", 1), ("q.p", 1), ("q.o", 2))
    ]
    assert answers[0] != answers[1] != answers[2] != answers[0]


def test_selectivity_of_nought_passes_nothing_and_of_one_everything() -> None:
    for model in ("random", "spread"):
        assert identities(abstract(model, 0.0).process(tuples(1, 2, 3))) == []
        assert identities(abstract(model, 1.0).process(tuples(1, 2, 3))) == [1, 2, 3]


def test_selectivity_above_one_gives_copies_with_fates_of_their_own() -> None:
    for model in ("random", "spread"):
        copies = identities(abstract(model, 3.0).process(tuples(1, 2)))
        assert len(copies) == 6
        assert len(set(copies)) == 6
        assert (copies[0], copies[3]) == (1, 2)  # the first of them is the tuple itself


def test_a_tuple_come_in_by_another_port_has_a_fate_of_its_own() -> None:
    operator = abstract("random", 1.0)
    assert identities(operator.process(tuples(5), port=0)) != identities(operator.process(tuples(5), port=1))


def test_spread_selectivity_passes_every_so_manieth() -> None:
    operator = abstract("spread", 0.25)
    assert identities(operator.process(tuples(*range(1, 13)))) == [4, 8, 12]


def test_spread_selectivity_goes_on_where_it_stopped() -> None:
    operator = abstract("spread", 0.4)
    passed = [len(operator.process(tuples(number))) for number in range(10)]
    assert passed == [0, 0, 1, 0, 1, 0, 0, 1, 0, 1]  # ⌊(n+1)s⌋ − ⌊ns⌋


def test_spread_selectivity_of_a_tenth_passes_the_tenth() -> None:
    operator = abstract("spread", 0.1)
    passed = [number for number in range(1, 1001) if len(operator.process(tuples(number)))]
    assert passed == list(range(10, 1001, 10))


def test_a_fresh_spread_begins_anew() -> None:
    operator = abstract("spread", 0.5)
    operator.process(tuples(1))
    again = operator.fresh(Settings.read({"selectivity": "spread"}))
    assert [len(again.process(tuples(number))) for number in (1, 2)] == [0, 1]


def test_fractional_tuples_lose_a_part_of_themselves() -> None:
    passed = abstract("fractional", 0.2).process(Batch.of(rows=1, size=0.5, seq=7))
    assert len(passed) == 1
    assert passed.total("size") == pytest.approx(0.1)
    assert passed.first("seq") == 7


def test_fractional_tuples_lose_a_part_each() -> None:
    passed = abstract("fractional", 0.5).process(Batch.of(size=[1.0, 0.2]))
    assert passed.each("size").tolist() == pytest.approx([0.5, 0.1])


def test_outputs_have_the_size_their_operator_declares_or_their_inputs() -> None:
    batch = tuples(1, 2, size=np.array([40.0, 60.0]))
    assert abstract("random", 1.0).process(batch).each("size").tolist() == [40.0, 60.0]
    assert abstract("random", 1.0, size=8.0).process(batch).each("size").tolist() == [8.0, 8.0]


def test_outputs_keep_what_their_inputs_brought() -> None:
    batch = tuples(1, 2, seq=np.array([7, 9]), arrived=np.array([0.5, 1.5]), cost=3.0)
    passed = abstract("random", 2.0).process(batch)
    assert passed.each("seq").tolist() == [7, 7, 9, 9]
    assert passed.each("arrived").tolist() == [0.5, 0.5, 1.5, 1.5]
    assert passed.each("cost").tolist() == [3.0, 3.0, 3.0, 3.0]


def test_an_operator_leaves_the_batch_it_was_given_as_it_was() -> None:
    for model in ("random", "spread", "fractional"):
        batch = tuples(1, 2, 3, size=np.array([1.0, 2.0, 3.0]))
        abstract(model, 2.5).process(batch)
        assert identities(batch) == [1, 2, 3]
        assert batch.each("size").tolist() == [1.0, 2.0, 3.0]


def test_texts_count_with_their_characters() -> None:
    texts = np.array(["", "four", "x" * 1000], dtype=object)
    short, long = Batch.of({"text": texts[:2]}).memory(), Batch.of({"text": texts[2:]}).memory()
    assert short == 2 * (8 + sys.getsizeof("")) + 4
    assert long == 8 + sys.getsizeof(texts[2])
    assert Batch.of({"text": texts}).memory() == short + long


def test_of_objects_that_are_no_texts_the_places_count() -> None:
    assert Batch.of({"mixed": np.array(["four", None, 3], dtype=object)}).memory() == 3 * (8 + sys.getsizeof("")) + 4
