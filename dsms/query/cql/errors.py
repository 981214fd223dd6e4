"""Errors in query texts, with line and column."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from dsms.errors import PlanError


class CqlError(PlanError):
    """An error in a query text; `start` is the offset of the token that causes it."""

    def __init__(self, message: str, start: int | None = None, text: str = "") -> None:
        self.start = start
        place = "" if start is None or not text else format_position(text, start)
        super().__init__(message, place)

    def placed(self, text: str) -> CqlError:
        """The same error with line and column in this text."""
        return CqlError(self.message, self.start, text)

    def within(self, place: str, file: str = "") -> PlanError:
        """The same error in a plan file; line and column of the query text stay in the message."""
        return PlanError(str(self), place, file)


def format_position(text: str, start: int) -> str:
    """Format an offset as line and column, both from 1."""
    return f"line {text.count(chr(10), 0, start) + 1}, column {start - text.rfind(chr(10), 0, start)}"


def start_of(node: exp.Expr) -> int | None:
    """The offset of the first token of a part of the query."""
    starts = [part.meta["start"] for part in node.walk() if part.meta.get("start") is not None]
    return min(starts, default=None)


def refuse_unsupported_args(node: exp.Expr, allowed: Container[str]) -> None:
    """Refuse syntax that sqlglot accepts and CQL does not have, instead of ignoring it."""
    for name, value in node.args.items():
        if value and name not in allowed:
            word = name.rstrip("_").upper()
            start = start_of(value) if isinstance(value, exp.Expr) else start_of(node)
            raise CqlError(f"{word} is not part of CQL here", start)
