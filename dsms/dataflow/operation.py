"""A dataflow expression: the sequence of operations on each item of a stream, each against one window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dsms.dataflow.expression import format_attributes

Kind = Literal["record", "join", "left", "right"]
OPERATION_SYMBOLS: dict[Kind, str] = {"record": "->", "join": "join", "left": "-left", "right": "-right"}


@dataclass(frozen=True)
class Operation:
    """One step of an item: a window and attributes; `record` writes the window, the other kinds read it."""

    kind: Kind
    window: str
    on: tuple[str, ...] = ()
    own: str | None = None  # for -right: the window of its own stream, where an equal item makes it a no-op

    @property
    def writes(self) -> frozenset[str]:
        """The windows it modifies."""
        return frozenset({self.window} if self.kind == "record" else ())

    @property
    def reads(self) -> frozenset[str]:
        """The windows it reads."""
        return frozenset(() if self.kind == "record" else {self.window, self.own or self.window})

    def __str__(self) -> str:
        on = f"[{format_attributes(self.on)}]" if self.on else ""
        return f"{OPERATION_SYMBOLS[self.kind]}{on}({self.window})"


@dataclass(frozen=True)
class Dataflow:
    """The operations on each item of a stream; each one processes the output of the one before it."""

    stream: str
    operations: tuple[Operation, ...]

    def __str__(self) -> str:
        return f"{self.stream}: {', '.join(map(str, self.operations))}"
