"""What is wrong with a query text, and where in it."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from dsms.errors import PlanError


class CqlError(PlanError):
    """A query text that cannot be understood; `start` is the offset in it of the token that is to blame."""

    def __init__(self, message: str, start: int | None = None, text: str = "") -> None:
        self.start = start
        place = "" if start is None or not text else position(text, start)
        super().__init__(message, place)

    def placed(self, text: str) -> CqlError:
        """The same error with line and column, now that the text is known."""
        return CqlError(self.message, self.start, text)

    def within(self, place: str, file: str = "") -> PlanError:
        """The same error in a plan file: line and column are those of the query text, so they stay with the message."""
        return PlanError(str(self), place, file)


def position(text: str, start: int) -> str:
    """An offset in a text as people count."""
    return f"line {text.count(chr(10), 0, start) + 1}, column {start - text.rfind(chr(10), 0, start)}"


def start_of(node: exp.Expr) -> int | None:
    """Where the first token of a part of the query stands."""
    starts = [part.meta["start"] for part in node.walk() if part.meta.get("start") is not None]
    return min(starts, default=None)


def refuse_others(node: exp.Expr, allowed: Container[str]) -> None:
    """Nothing that sqlglot read may be passed over in silence."""
    for name, value in node.args.items():
        if value and name not in allowed:
            word = name.rstrip("_").upper()
            start = start_of(value) if isinstance(value, exp.Expr) else start_of(node)
            raise CqlError(f"{word} is not part of CQL here", start)
