"""Dataflow operations and expressions: what is done with one item of a stream, step by step, against which windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dsms.dataflow.expression import listed

Kind = Literal["record", "join", "left", "right"]
SIGNS: dict[Kind, str] = {"record": "->", "join": "join", "left": "-left", "right": "-right"}


@dataclass(frozen=True)
class Operation:
    """One step of an item: against which window, on which attributes; a recorder writes its window, others read."""

    kind: Kind
    window: str
    on: tuple[str, ...] = ()
    own: str | None = None  # of -right: the window of what takes away, where an equal item makes it change nothing

    @property
    def writes(self) -> frozenset[str]:
        """The windows it modifies."""
        return frozenset({self.window} if self.kind == "record" else ())

    @property
    def reads(self) -> frozenset[str]:
        """The windows it looks into."""
        return frozenset(() if self.kind == "record" else {self.window, self.own or self.window})

    def __str__(self) -> str:
        on = f"[{listed(self.on)}]" if self.on else ""
        return f"{SIGNS[self.kind]}{on}({self.window})"


@dataclass(frozen=True)
class Dataflow:
    """What happens to each item of a stream: each operation handles what the one before it puts out."""

    stream: str
    operations: tuple[Operation, ...]

    def __str__(self) -> str:
        return f"{self.stream}: {', '.join(map(str, self.operations))}"
