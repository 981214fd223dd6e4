"""A table of a plan that says its `kind`, and has the keys of that kind: each fault is told with its key."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dsms.errors import PlanError, existing


@dataclass(frozen=True)
class KindTable:
    """The entries of one `{kind = …}` table, and the folder its relative paths start from."""

    entries: Mapping[str, object]
    folder: Path = Path()
    what: ClassVar[str]  # is described, in the plural

    def kind(self, known: Collection[str]) -> str:
        """Which of those known this table describes."""
        name = self.entries.get("kind")
        if not isinstance(name, str) or name not in known:
            kind = f"kind of {self.what}"
            said = f"{name!r} is no {kind}" if "kind" in self.entries else f"missing; a {kind} wanted"
            raise PlanError(f"{said}{existing(str(name), known)}", "kind")
        return name

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Refuse the first key that this kind does not have."""
        for key in self.entries:
            if key not in known:
                kind = self.entries["kind"]
                raise PlanError(f"no such key for {self.what} of kind {kind!r}{existing(key, known)}", key)

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        above: float = -math.inf,
        least: float = -math.inf,
        below: float = math.inf,
    ) -> float:
        """The finite number of this key: greater than `above`, no less than `least`, less than `below`."""
        if key not in self.entries and default is not None:
            return default
        value = self.required(key)
        number = finite(value)
        if number is None or not above < number < below or number < least:
            limits = {"above": above, "from": least, "below": below}
            said = " and".join(f" {word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit))
            raise PlanError(f"{value!r} given; a finite number{said} wanted", key)
        return number

    def share(self, key: str, default: float | None = None) -> float:
        """The number of this key, from 0 to 1."""
        value = self.number(key, default)
        if not 0 <= value <= 1:
            raise PlanError(f"{value!r} given; a number from 0 to 1 wanted", key)
        return value

    def whole(self, key: str, default: int | None = None, least: int | None = None) -> int:
        """The whole number of this key, `least` or more."""
        value = self.required(key) if default is None else self.entries.get(key, default)
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or (least is not None and value < least):
            limit = "" if least is None else f" of {least} or more"
            raise PlanError(f"{value!r} given; a whole number{limit} wanted", key)
        return int(value)

    def text(self, key: str, default: str | None = None, among: Collection[str] = ()) -> str:
        """The text of this key, one of `among` if any are named."""
        if key not in self.entries and default is not None:
            return default
        value = self.required(key)
        if among and value not in among:
            raise PlanError(f"{value!r} given, which is none of those known{existing(str(value), among)}", key)
        if not isinstance(value, str) or not value:
            raise PlanError(f"{value!r} given; a text wanted", key)
        return value

    def flag(self, key: str) -> bool:
        """Whether this key is set; it is not where nothing is said."""
        value = self.entries.get(key, False)
        if not isinstance(value, bool):
            raise PlanError(f"{value!r} given; true or false wanted", key)
        return value

    def one_of(self, *keys: str, needed: bool = True) -> str | None:
        """Which of these keys is given: exactly one, or, where none is needed, at most one."""
        given = [key for key in keys if key in self.entries]
        if len(given) > 1 or (needed and not given):
            wanted = f"{'exactly' if needed else 'at most'} one of {list(keys)} wanted"
            raise PlanError(f"{given or 'none'} given; {wanted}", given[-1] if given else keys[0])
        return given[0] if given else None

    def required(self, key: str) -> object:
        """What is given for this key."""
        if key not in self.entries:
            kind, given = self.entries["kind"], sorted(self.entries)
            raise PlanError(f"missing; {self.what} of kind {kind!r} want it, given are {given}", key)
        return self.entries[key]


def finite(value: object) -> float | None:
    """The value as a float if it is a finite number; True and False are not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
