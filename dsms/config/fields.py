"""Validates configuration tables: a field knows which values it takes, a table is a set of named fields.

A dataclass declares its fields as `Annotated[int, IntegerField(least=1)]`; `read_dataclass` makes one from a table.
Errors name the place, the value and what exists: `run.mode: 'blok' is not a valid choice (did you mean 'block'?) …`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Generic, TypeVar, get_type_hints

from dsms.durations import MICROS_PER_S, parse_duration_us
from dsms.errors import PlanError, existing

T = TypeVar("T")
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}  # as texts


class Field(ABC, Generic[T]):
    """The values that one key may have."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a value must be, with its article: `a whole number from 1`."""

    @abstractmethod
    def _convert(self, value: object) -> T | None:
        """The value as the program uses it; None if it is not one of this field's."""

    def read(self, value: object, place: str = "") -> T:
        """Check and convert the value that a table has at this place."""
        converted = self._convert(value)
        if converted is None:
            raise PlanError(f"{_show(value)} is not {self.expected}", place)
        return converted

    def parse(self, text: str, place: str = "") -> T:
        """Check and convert a value written as text, such as a command's option."""
        value = self._parse(text)
        converted = None if value is None else self._convert(value)
        if converted is None:
            raise PlanError(f"{text!r} is not {self.expected}", place)
        return converted

    def _parse(self, text: str) -> object:
        return text


@dataclass(frozen=True)
class NumberField(Field[float]):
    """A finite number within limits; `above` and `below` are not part of the range, `least` and `most` are."""

    above: float = -math.inf
    least: float = -math.inf
    below: float = math.inf
    most: float = math.inf
    may_be_infinite: bool = False

    @property
    def expected(self) -> str:
        limits = {"above": self.above, "from": self.least, "below": self.below, "up to": self.most}
        named = {word: limit for word, limit in limits.items() if math.isfinite(limit)}
        match named:
            case {"above": 0, **rest} if not rest:
                return "a positive number"
            case {"from": low, "up to": high}:
                return f"a number from {low:g} to {high:g}"
        return f"a number {' and '.join(f'{word} {limit:g}' for word, limit in named.items())}" if named else "a number"

    def _convert(self, value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, Real):
            return None
        try:
            number = float(value)
        except OverflowError:
            return None
        if math.isnan(number) or (math.isinf(number) and not self.may_be_infinite):
            return None
        too_small = number < self.least or (self.above > -math.inf and number <= self.above)
        too_large = number > self.most or (self.below < math.inf and number >= self.below)
        return None if too_small or too_large else number

    def _parse(self, text: str) -> float | None:
        try:
            return float(text)
        except ValueError:
            return None


class DurationField(Field[float]):
    """A length of time from 0: a number in the plan's unit, or a text such as `200us` where that unit is a second."""

    expected = "a number from 0 or a duration, as in '200us'"

    def _convert(self, value: object) -> float | None:
        if not isinstance(value, str):
            return NumberField(least=0)._convert(value)
        try:
            return parse_duration_us(value) / MICROS_PER_S
        except PlanError:
            return None

    def _parse(self, text: str) -> object:
        number = NumberField()._parse(text)
        return text if number is None else number


@dataclass(frozen=True)
class IntegerField(Field[int]):
    """A whole number, from `least` to `most`."""

    least: int | None = None
    most: int | None = None

    @property
    def expected(self) -> str:
        low = "" if self.least is None else f" from {self.least}"
        return f"a whole number{low}" + ("" if self.most is None else f" to {self.most}")

    def _convert(self, value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, Integral):
            return None
        number = int(value)
        too_small = self.least is not None and number < self.least
        return None if too_small or (self.most is not None and number > self.most) else number

    def _parse(self, text: str) -> int | None:
        try:
            return int(text)
        except ValueError:
            return None


@dataclass(frozen=True)
class TextField(Field[str]):
    """A string."""

    may_be_empty: bool = False

    @property
    def expected(self) -> str:
        return "a string" if self.may_be_empty else "a string of at least one character"

    def _convert(self, value: object) -> str | None:
        return value if isinstance(value, str) and (value or self.may_be_empty) else None


class BooleanField(Field[bool]):
    """True or false."""

    expected = "a boolean (true or false)"

    def _convert(self, value: object) -> bool | None:
        return value if isinstance(value, bool) else None

    def _parse(self, text: str) -> bool | None:
        return BOOLEANS.get(text.strip().lower())


@dataclass(frozen=True)
class ChoiceField(Field[str]):
    """One of a few strings."""

    choices: Collection[str]

    @property
    def expected(self) -> str:
        return f"one of {list(self.choices)}"

    def _convert(self, value: object) -> str | None:
        return value if isinstance(value, str) and value in self.choices else None

    def read(self, value: object, place: str = "") -> str:
        """Check the value; an error suggests the nearest choice."""
        if self._convert(value) is None:
            raise PlanError(f"{_show(value)} is not a valid choice{existing(str(value), self.choices)}", place)
        return str(value)


@dataclass(frozen=True)
class EitherField(Field[Any]):
    """A value that fits at least one of several fields."""

    fields: tuple[Field[Any], ...]

    @property
    def expected(self) -> str:
        return " or ".join(each.expected for each in self.fields)

    def _convert(self, value: object) -> Any:
        return next((fit for each in self.fields if (fit := each._convert(value)) is not None), None)


@dataclass(frozen=True)
class OptionalField(Field[Any]):
    """A value that fits another field, or None."""

    inner: Field[Any]

    @property
    def expected(self) -> str:
        return self.inner.expected

    def _convert(self, value: object) -> Any:
        return self.inner._convert(value)

    def read(self, value: object, place: str = "") -> Any:
        """Check and convert the value, unless it is None."""
        return None if value is None else self.inner.read(value, place)


class TableField(Field[Mapping[str, Any]]):
    """A table with any keys."""

    expected = "a table"

    def _convert(self, value: object) -> Mapping[str, Any] | None:
        return value if isinstance(value, Mapping) else None


class NamesField(Field[list[str]]):
    """The names of the streams and operators that an operator reads: one, or a list without duplicates."""

    expected = "a list of names of streams or operators"

    def _convert(self, value: object) -> list[str] | None:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
            return None
        return list(names)

    def read(self, value: object, place: str = "") -> list[str]:
        """Check the names and make a list of them."""
        names = super().read(value, place)
        if len(set(names)) < len(names):
            raise PlanError(f"{names} names an input twice", place)
        return names


class AnyField(Field[Any]):
    """Any value: the code that uses it checks it."""

    expected = "a value"

    def _convert(self, value: object) -> Any:
        return value

    def read(self, value: object, place: str = "") -> Any:
        """Return the value as it is."""
        return value


def read_fields(table: object, fields: Mapping[str, Field[Any]], place: str = "") -> dict[str, Any]:
    """Check that a table has no other keys than these, and convert the values that it has."""
    given = check_table(table, place)
    for key in given:
        if key not in fields:
            raise PlanError(f"no such key{existing(key, fields)}", _join(place, key))
    return {key: fields[key].read(value, _join(place, key)) for key, value in given.items()}


def fields_of(cls: type) -> dict[str, Field[Any]]:
    """The fields that a dataclass declares by `Annotated`."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        name: field
        for name, hint in hints.items()
        for field in getattr(hint, "__metadata__", ())
        if isinstance(field, Field)
    }


def read_dataclass(cls: type[T], table: Mapping[str, Any]) -> T:
    """Make a dataclass of the values in a table; what the table does not have keeps its default."""
    return cls(**read_fields(table, fields_of(cls)))


def check_table(value: object, place: str) -> Mapping[str, Any]:
    """Return the value if it is a table."""
    return TableField().read(value, place)


def check_name(name: str, place: str) -> None:
    """Refuse a name with characters that mean something in plans, options and metrics."""
    if not name or "." in name or any(c.isspace() or c in ",:=[]" for c in name):
        raise PlanError(f"{name!r} cannot be a name: no spaces and none of . , : = [ ]", place)


def read_at(place: str, read: Any, table: Any) -> Any:
    """Call a reader; add the table's place to the error that it raises."""
    try:
        return read(table)
    except PlanError as error:
        raise error.within(place) from None


def to_finite(value: object) -> float | None:
    """The value as a float if it is a finite number that a float can hold; True and False are not numbers."""
    return NumberField()._convert(value)


def is_number(value: object) -> bool:
    """Whether the value is a finite number that a float can hold; True and False are not numbers."""
    return to_finite(value) is not None


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _show(value: object) -> str:
    """A value for an error message; a very large number is not written out."""
    if isinstance(value, Integral) and abs(int(value)) >= 10**40:
        return f"a number of {int(math.log10(abs(int(value)))) + 1} digits (too large)"
    return repr(value)
