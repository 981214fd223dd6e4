"""An operator raises on a batch: bad rows are rejected, all others are processed, and its state stays right."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live.domains import values
from support.strategies import DETERMINISTIC

import dsms
from dsms.data.batch import Batch
from dsms.data.dead_letter import DeadLetter
from dsms.engine.runners.bad_rows import process_without_bad_rows
from dsms.engine.runners.station_state import StationState
from dsms.errors import OperatorError
from dsms.io import DeadLetterFile
from dsms.operators import FunctionOperator, Operator


def rows(*values: int, **more: Any) -> Batch:
    return Batch.of({"x": np.array(values, dtype=np.int64)}, **more)


class Picky:
    """Doubles what it is given, unless something in it is bad."""

    def __init__(self, bad: set[int]) -> None:
        self.bad, self.calls = bad, 0

    def __call__(self, batch: Batch) -> Batch:
        self.calls += 1
        if wrong := self.bad & set(values(batch)):
            raise ValueError(f"cannot take {min(wrong)}")
        return Batch.of({"x": batch.columns["x"] * 2}, watermark=batch.watermark, ended=batch.ended)


def aside(dead_letters: list[DeadLetter] | tuple[DeadLetter, ...]) -> list[int]:
    return [x for each in dead_letters for x in values(each.batch)]


def test_the_one_bad_row_of_many_is_found_in_a_logarithm_of_steps() -> None:
    picky = Picky({700})
    made, dead_letters = process_without_bad_rows(picky, rows(*range(1024)), ValueError("cannot take 700"))
    assert values(made) == [2 * x for x in range(1024) if x != 700]
    assert [(values(each.batch), each.reason) for each in dead_letters] == [([700], "ValueError: cannot take 700")]
    assert picky.calls == 2 * math.log2(1024)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.sets(st.integers(0, 30)))
@DETERMINISTIC
def test_all_others_get_through_in_their_order(given_rows: list[int], bad: set[int]) -> None:
    bad.add(given_rows[-1])  # something is wrong with it
    made, dead_letters = process_without_bad_rows(Picky(bad), rows(*given_rows, watermark=99), ValueError())
    assert values(made) == [2 * x for x in given_rows if x not in bad]
    assert aside(dead_letters) == [x for x in given_rows if x in bad]
    assert made.watermark == 99


def test_of_a_batch_with_too_many_bad_rows_the_rest_is_put_aside_in_parts() -> None:
    picky = Picky(set(range(512)))
    made, dead_letters = process_without_bad_rows(picky, rows(*range(1024)), ValueError(), most=4)
    assert values(made) == [2 * x for x in range(512, 1024)]
    assert aside(dead_letters) == list(range(512))
    assert picky.calls < 40
    assert dead_letters[-1].reason.endswith("(on 256 rows together)")


def test_what_was_raised_is_told_with_where() -> None:
    def broken(batch: Batch) -> Batch:
        raise KeyError("nowhere")

    try:
        broken(rows(1))
    except KeyError as error:
        _, [each] = process_without_bad_rows(broken, rows(1), error)
    assert each.reason == "KeyError: 'nowhere'"
    assert "in broken" in each.trace


def make_state(operator: Operator, rejects_bad_rows: bool = True) -> StationState:
    return StationState("f", operator, 1, (8.0,), 8.0, True, rejects_bad_rows=rejects_bad_rows)


def test_accounts_of_a_step_that_was_salvaged_are_those_of_its_rows() -> None:
    found = make_state(FunctionOperator(cost=1.0, function=Picky({2})))
    found.put(0, rows(1, 2, 3), 0.0)
    outcome, made = found.work(0, 0.0, math.inf)
    assert (outcome.taken, outcome.made, values(made), outcome.consecutive_failures) == (3, 2, [2, 6], 0)
    assert aside(outcome.dead_letters) == [2]


def test_batches_that_are_bad_altogether_are_counted_until_a_row_gets_through() -> None:
    found = make_state(FunctionOperator(cost=1.0, function=Picky({2})))
    consecutive_failures = []
    for batch in (rows(2), rows(2, 2), Batch(watermark=3), rows(2, 1), rows(2), rows(1)):
        found.put(0, batch, 0.0)
        consecutive_failures.append(found.work(0, 0.0, math.inf)[0].consecutive_failures)
    assert consecutive_failures == [1, 2, 2, 0, 1, 0]


class FailingCounter(Operator):
    """Counts, and fails half-way."""

    seen = 0

    def process(self, batch: Batch, port: int = 0) -> Batch:
        self.seen += len(batch)
        if 13 in values(batch):
            raise RuntimeError("half-way")
        return batch


def test_one_with_state_is_not_tried_again_and_its_state_is_said_to_be_in_doubt() -> None:
    operator = FailingCounter(cost=1.0)
    found = make_state(operator)
    found.put(0, rows(1, 13, watermark=5), 0.0)
    outcome, made = found.work(0, 0.0, math.inf)
    assert (outcome.taken, outcome.made, outcome.consecutive_failures, made.watermark) == (2, 0, math.inf, 5)
    assert (aside(outcome.dead_letters), operator.seen) == ([1, 13], 2)


def test_where_rows_are_not_put_aside_what_was_raised_ends_the_run() -> None:
    def leave(batch: Batch) -> Batch:
        sys.exit(3)

    found = make_state(FunctionOperator(cost=1.0, function=leave), rejects_bad_rows=False)
    found.put(0, rows(1), 0.0)
    with pytest.raises(OperatorError, match=re.escape("operator 'f' raised SystemExit: 3")):
        found.work(0, 0.0, math.inf)


@pytest.mark.parametrize("policy", ["fifo", "chain"])
def test_in_virtual_time_too_the_query_lives_on(policy: str) -> None:
    plan = dsms.plan_from(
        {
            "streams": {"s": {"schema": {"x": "int64"}}},
            "queries": {"q": {"from": "s", "operators": [{"name": "f", "function": Picky({3, 5})}]}},
            "run": {"on_error": "dead-letter"},
        }
    )
    found, reject_rows = list[int](), list[int]()
    engine = dsms.Engine(
        plan,
        dsms.policy_named(policy),
        sink=lambda _, batch: found.extend(values(batch)),
        aside=lambda _, each: reject_rows.extend(values(each.batch)),
    )
    engine.push("s", rows(*range(8)))
    engine.run()
    assert (found, reject_rows) == ([0, 2, 4, 8, 12, 14], [3, 5])
    assert (engine.runner.rejected_rows["f", "error"], engine.ledger.held) == (2, 0)
    assert engine.runner.reasons == {("f", "error"): "ValueError: cannot take 3"}


def test_dead_letters_have_the_trace(tmp_path: Path) -> None:
    _, dead_letters = process_without_bad_rows(Picky({1}), rows(1), ValueError("cannot take 1"))
    with DeadLetterFile(tmp_path / "dead.jsonl") as letters:
        for each in dead_letters:
            letters.add("q.f", each)
    letter = json.loads((tmp_path / "dead.jsonl").read_text())
    assert (letter["where"], letter["reason"], letter["row"]) == ("q.f", "ValueError: cannot take 1", {"x": 1})
    assert letter["trace"].endswith("ValueError: cannot take 1\n")
