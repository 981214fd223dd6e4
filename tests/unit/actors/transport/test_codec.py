"""Messages between actors come out as they went in; rows are raw buffers, errors keep their class and cause."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.messages import pass_on

from actors.transport.codec import ALIGNMENT_BYTES, PREFIX, Encoder
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.data.journal import RepeatedValue
from dsms.errors import Cause, DsmsError, OperatorError, PlanError, QosError, UnreachableError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(0, 9), inner),
)
DTYPES = ["<i8", "<f8", "|b1", "<i4", "<M8[us]", "<U5", "|u1"]


@given(PLAIN)
def test_plain_values_are_equal_afterwards(value: Any) -> None:
    assert pass_on(value) == value


@given(st.lists(st.tuples(st.sampled_from(DTYPES), st.integers(0, 40)), max_size=6))
def test_columns_of_every_type_are_equal_afterwards_and_read_only(shapes: list[tuple[str, int]]) -> None:
    columns = [np.arange(rows).astype(dtype) for dtype, rows in shapes]
    received = pass_on(columns)
    for column, back in zip(columns, received, strict=True):
        assert back.dtype == column.dtype
        assert back.tolist() == column.tolist()
        assert not (len(back) and back.flags.writeable)  # a function that writes into its rows must not change others'


@given(st.lists(st.none() | st.text() | st.floats(allow_nan=False) | st.booleans()))
def test_text_with_nulls_is_equal_afterwards(values: list[Any]) -> None:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    back = pass_on(column)
    assert back.dtype == object
    assert back.tolist() == values


def test_half_of_a_surrogate_pair_is_text_too() -> None:
    column = np.array(["\ud800", None], dtype=object)
    assert pass_on(column).tolist() == column.tolist()
    assert str(pass_on(OperatorError("no number: '\ud800'"))) == "no number: '\ud800'"


def test_a_column_of_other_objects_is_equal_afterwards() -> None:
    column = np.array([(1, 2), {"a": 3}, 10**30], dtype=object)
    assert pass_on(column).tolist() == column.tolist()


def test_a_batch_keeps_its_columns_and_attributes() -> None:
    batch = Batch.of(
        {"x": np.arange(9)[::2], "name": np.array(["a", "", None, "d", "é"], dtype=object)},
        arrived=np.linspace(0, 1, 5),
        ts=7,
        sign=-1,
        watermark=5,
        ended=True,
    )
    back = pass_on({"key": batch})["key"]
    assert back.records() == batch.records()
    for name in Batch.__slots__:
        if name != "columns":
            assert np.array_equal(getattr(back, name), getattr(batch, name)), name


def test_a_read_only_column_that_repeats_one_value_is_sent_whole() -> None:
    column = Batch.of({"x": [1, 2, 3]}, arrived=2.5).each("arrived")
    assert pass_on(column).tolist() == [2.5, 2.5, 2.5]


def test_a_batch_reference_and_a_repeated_value_are_equal_afterwards() -> None:
    reference = BatchRef("k", 3, 24.0, latest=9, due=0.5)
    repeated = pass_on(RepeatedValue(1.5, 4))
    assert pass_on(reference) == reference
    assert (type(repeated), list(repeated)) == (RepeatedValue, [1.5] * 4)


def test_numbers_of_numpy_and_infinity_are_equal_afterwards() -> None:
    assert pass_on((np.int64(3), np.float64(0.1), math.inf)) == (3, 0.1, math.inf)


@pytest.mark.parametrize(
    "error",
    [
        DsmsError("plain"),
        PlanError("wrong", "queries.q", "plan.toml"),
        QosError("odd"),
        UnreachableError("away"),
        OperatorError("gone", Cause.PROCESS_GONE),
        OperatorError("broken"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_ours_keep_class_message_and_cause(error: Any) -> None:
    back = pass_on(error)
    assert (type(back), str(back)) == (type(error), str(error))
    assert getattr(back, "cause", None) == getattr(error, "cause", None)


class AwkwardError(Exception):
    """Cannot be rebuilt from its one argument."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def test_any_other_error_is_an_operators_that_names_its_class() -> None:
    back = pass_on(AwkwardError(1, 2))
    assert (type(back), str(back), back.cause) == (OperatorError, "AwkwardError: 1 and 2", Cause.ERROR)


def test_buffers_of_columns_are_sent_as_they_lie_and_aligned() -> None:
    column = np.arange(1000, dtype=np.int32)[:999]
    message, payload, padding = Encoder().encode([column])
    assert np.shares_memory(np.frombuffer(payload, np.int32), column)
    assert (len(payload) + len(padding)) % ALIGNMENT_BYTES == 0
    assert PREFIX.unpack(message[: PREFIX.size])[1] == len(payload) + len(padding)


def test_what_cannot_be_sent_is_named() -> None:
    with pytest.raises(TypeError, match="a set cannot be part of a message"):
        Encoder().encode({1, 2})
