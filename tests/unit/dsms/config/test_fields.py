"""The validator of configuration tables: which values a field takes, and what an error says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

from dsms.config.fields import (
    AnyField,
    BooleanField,
    ChoiceField,
    EitherField,
    Field,
    IntegerField,
    NamesField,
    NumberField,
    OptionalField,
    TableField,
    TextField,
    read_dataclass,
)
from dsms.errors import PlanError

ORDER = EitherField((ChoiceField(("weak",)), IntegerField(1)))


@dataclass(frozen=True)
class Pipe:
    """A table for these tests."""

    width: Annotated[int, IntegerField(least=1)] = 7
    kind: Annotated[str, ChoiceField(("round", "square"))] = "round"
    length: Annotated[float | None, NumberField(above=0)] = None


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (NumberField(), 3, 3.0),
        (NumberField(least=0), np.float64(0.5), 0.5),
        (NumberField(may_be_infinite=True), math.inf, math.inf),
        (IntegerField(least=0), np.int64(0), 0),
        (TextField(may_be_empty=True), "", ""),
        (BooleanField(), False, False),
        (ChoiceField(("a", "b")), "b", "b"),
        (ORDER, 3, 3),
        (ORDER, "weak", "weak"),
        (OptionalField(NumberField()), None, None),
        (TableField(), {}, {}),
        (NamesField(), "s", ["s"]),
        (NamesField(), ("s", "t"), ["s", "t"]),
        (AnyField(), None, None),
    ],
)
def test_a_field_converts_values_that_fit(field: Field[Any], value: object, expected: object) -> None:
    read = field.read(value)
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (NumberField(), math.inf, "inf is not a number"),
        (NumberField(may_be_infinite=True), math.nan, "nan is not a number"),
        (NumberField(above=0), True, "True is not a positive number"),
        (NumberField(least=0), "3", "'3' is not a number from 0"),
        (NumberField(least=0, most=1), 2, "2 is not a number from 0 to 1"),
        (NumberField(above=0, most=1), 0, "0 is not a number above 0 and up to 1"),
        (NumberField(above=1, below=2), 2, "2 is not a number above 1 and below 2"),
        (NumberField(above=0), 10**400, "a number of 401 digits (too large) is not a positive number"),
        (IntegerField(), 1.0, "1.0 is not a whole number"),
        (IntegerField(least=1), False, "False is not a whole number from 1"),
        (IntegerField(1, 9), 10, "10 is not a whole number from 1 to 9"),
        (TextField(), "", "'' is not a string of at least one character"),
        (TextField(may_be_empty=True), 3, "3 is not a string"),
        (BooleanField(), 1, "1 is not a boolean (true or false)"),
        (ChoiceField(("wall", "paced")), "pace", "'pace' is not a valid choice (did you mean 'paced'?); there are "),
        (ORDER, 0, "0 is not one of ['weak'] or a whole number from 1"),
        (OptionalField(NumberField()), "x", "'x' is not a number"),
        (TableField(), 3, "3 is not a table"),
        (NamesField(), [], "[] is not a list of names of streams or operators"),
        (NamesField(), ["s", "s"], "['s', 's'] names an input twice"),
    ],
)
def test_an_error_shows_the_value_and_says_what_was_expected(field: Field[Any], value: object, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        field.read(value, "here")
    assert caught.value.place == "here"
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        (NumberField(), "1e3", 1000.0),
        (IntegerField(), "12", 12),
        (BooleanField(), " True ", True),
        (TextField(), "x", "x"),
    ],
)
def test_a_field_parses_text(field: Field[Any], text: str, expected: object) -> None:
    assert field.parse(text) == expected


@pytest.mark.parametrize("field", [NumberField(least=0), IntegerField(least=0), BooleanField()])
@pytest.mark.parametrize("text", ["", "x", "-1", "nan"])
def test_text_that_does_not_fit_is_refused_as_it_was_written(field: Field[Any], text: str) -> None:
    with pytest.raises(PlanError) as caught:
        field.parse(text)
    assert caught.value.message == f"{text!r} is not {field.expected}"


def test_a_dataclass_declares_its_table() -> None:
    assert read_dataclass(Pipe, {}) == Pipe(7, "round", None)
    assert read_dataclass(Pipe, {"length": 2, "kind": "square"}) == Pipe(7, "square", 2.0)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"widht": 3}, "widht: no such key (did you mean 'width'?); there are ['kind', 'length', 'width']"),
        ({"width": 0}, "width: 0 is not a whole number from 1"),
        ({"length": None}, "length: None is not a positive number"),
    ],
)
def test_a_table_that_does_not_fit_its_dataclass_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_dataclass(Pipe, table)
    assert str(caught.value) == message
