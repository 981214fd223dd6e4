"""The options of our Spark data sources: what there is, what it must be, and what else Spark may put among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dsms.errors import DsmsError, existing

SPARKS = {"checkpointlocation", "path", "queryname", "outputmode"}
T = TypeVar("T")


class Options:
    """Reads options by name, whatever their case; whoever wants something else is told what there is."""

    def __init__(self, format_: str, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._format, self._given = format_, {name.lower(): value for name, value in given.items()}
        for name in self._given.keys() - {*known} - SPARKS:
            raise DsmsError(f"{format_}: no option {name!r}{existing(name, known)}")

    def text(self, name: str, default: str | None = None) -> str | None:
        """An option as it is."""
        return self._given.get(name, default)

    def number(self, name: str, default: T, least: float = 0.0) -> float | T:
        """A number, above `least`."""
        found: float | T = self._read(name, default, float, lambda value: value > least, f"a number above {least:g}")
        return found

    def whole(self, name: str, default: T, least: int = 1) -> int | T:
        """A whole number, not below `least`."""
        found: int | T = self._read(name, default, int, lambda value: value >= least, f"a whole number from {least}")
        return found

    def truth(self, name: str, default: bool = False) -> bool:
        """True or false."""
        names = {"true": True, "false": False, "1": True, "0": False}
        value = self._given.get(name, str(default)).strip().lower()
        if value not in names:
            raise DsmsError(f"{self._format}: option {name!r} is {value!r}; true or false is wanted")
        return names[value]

    def names(self, name: str) -> list[str]:
        """Names between commas."""
        return [each.strip() for each in self._given.get(name, "").split(",") if each.strip()]

    def _read(self, name: str, default: T, kind: Callable[[str], Any], fits: Callable[[Any], bool], wanted: str) -> Any:
        if (text := self._given.get(name)) is None:
            return default
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise DsmsError(f"{self._format}: option {name!r} is {text!r}; {wanted} is wanted")
        return value
