"""Reads a table whose `kind` decides which other keys it may have: arrivals and generated values."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from dsms.config.fields import BooleanField, ChoiceField, Field, IntegerField, NumberField, TextField
from dsms.errors import PlanError, existing

T = TypeVar("T")


@dataclass(frozen=True)
class KindTable:
    """The entries of one `{kind = …}` table, and the folder its relative paths start from."""

    entries: Mapping[str, object]
    folder: Path = Path()
    what: ClassVar[str]  # is described, in the plural

    def kind(self, known: Collection[str]) -> str:
        """Which of the known kinds this table describes."""
        name = self.entries.get("kind")
        if not isinstance(name, str) or name not in known:
            problem = f"{name!r} is not a kind of {self.what}" if "kind" in self.entries else "missing"
            raise PlanError(f"{problem}{existing(str(name), known)}", "kind")
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
        return self._read(key, NumberField(above, least, below), default)

    def share(self, key: str, default: float | None = None) -> float:
        """The number of this key, from 0 to 1."""
        return self._read(key, NumberField(least=0, most=1), default)

    def whole(self, key: str, default: int | None = None, least: int | None = None) -> int:
        """The whole number of this key, `least` or more."""
        return self._read(key, IntegerField(least), default)

    def text(self, key: str, default: str | None = None, among: Collection[str] = ()) -> str:
        """The text of this key, one of `among` if any are named."""
        return self._read(key, ChoiceField(among) if among else TextField(), default)

    def flag(self, key: str) -> bool:
        """Whether this key is set; false by default."""
        return self._read(key, BooleanField(), False)

    def one_of(self, *keys: str, needed: bool = True) -> str | None:
        """Which of these keys is given: exactly one, or, where none is needed, at most one."""
        given = [key for key in keys if key in self.entries]
        if len(given) > 1 or (needed and not given):
            count = "exactly" if needed else "at most"
            raise PlanError(f"{given or 'none'} given; expected {count} one of {list(keys)}", (given or keys[:1])[-1])
        return given[0] if given else None

    def required(self, key: str) -> object:
        """The value of this key."""
        if key not in self.entries:
            kind, given = self.entries["kind"], sorted(self.entries)
            raise PlanError(f"missing; {self.what} of kind {kind!r} need it; there are only {given}", key)
        return self.entries[key]

    def _read(self, key: str, field: Field[T], default: T | None) -> T:
        return default if key not in self.entries and default is not None else field.read(self.required(key), key)
