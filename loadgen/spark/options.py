"""Reads and checks the options of our Spark data sources; options of Spark itself are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dsms.config.fields import BooleanField, Field, IntegerField, NumberField
from dsms.errors import DsmsError, PlanError, existing

SPARK_OPTIONS = {"checkpointlocation", "path", "queryname", "outputmode"}  # Spark's own, passed along with ours
T = TypeVar("T")
V = TypeVar("V")


class Options:
    """Reads options by name, in any case; an unknown option is an error that lists the known options."""

    def __init__(self, format_: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._format, self._options = format_, {name.lower(): value for name, value in options.items()}
        for name in self._options.keys() - {*known} - SPARK_OPTIONS:
            raise DsmsError(f"{format_}: no option {name!r}{existing(name, known)}")

    def text(self, name: str, default: str | None = None) -> str | None:
        """The text of an option."""
        return self._options.get(name, default)

    def number(self, name: str, default: T, least: float = 0.0) -> float | T:
        """A number, above `least`."""
        return self._read(name, NumberField(above=least, may_be_infinite=True), default)

    def whole(self, name: str, default: T, least: int = 1) -> int | T:
        """A whole number, not below `least`."""
        return self._read(name, IntegerField(least), default)

    def truth(self, name: str, default: bool = False) -> bool:
        """True or false."""
        return self._read(name, BooleanField(), default)

    def names(self, name: str) -> list[str]:
        """Names separated by commas."""
        return [each.strip() for each in self._options.get(name, "").split(",") if each.strip()]

    def _read(self, name: str, field: Field[V], default: T) -> V | T:
        if (text := self._options.get(name)) is None:
            return default
        try:
            return field.parse(text)
        except PlanError as error:
            raise DsmsError(f"{self._format}: option {name!r}: {error.message}") from None
