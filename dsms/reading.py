"""Checked pieces of plan files: names, tables, numbers; what does not fit is refused with its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from dsms.errors import PlanError, existing


def names(given: Any, place: str) -> list[str]:
    """One name, or a list of them."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise PlanError(f"{given!r} is not a list of names of streams or operators", place)
    if len(set(names)) < len(names):
        raise PlanError(f"{list(names)} names an input twice", place)
    return list(names)


def placed(place: str, read: Any, table: Mapping[str, Any]) -> Any:
    try:
        return read(table)
    except PlanError as error:
        raise error.within(place) from None


def table_of(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PlanError(f"{value!r} is not a table", place)
    return value


def only(table: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
    for key in table:
        if key not in keys:
            raise PlanError(f"no key {key!r} here{existing(key, keys)}", place)


def named(name: str, place: str) -> None:
    if not name or "." in name or any(c.isspace() or c in ",:=[]" for c in name):
        raise PlanError(f"{name!r} cannot be a name: no spaces and none of . , : = [ ]", place)


def number(value: Any, place: str, positive: bool = False) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise PlanError(f"{value!r} is not a number", place)
    try:
        number = float(value)
    except OverflowError:
        raise PlanError(f"a number of {len(str(value))} digits is too large", place) from None
    if positive and not (math.isfinite(number) and number > 0):
        raise PlanError(f"{value} is not a positive number", place)
    return number
