"""What every operator declares about itself: its cost, its selectivity, the size of what it puts out."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from dsms.batch import Batch
from dsms.errors import PlanError
from dsms.settings import Settings

ROW_COST = 1e-6  # time for a real row until it is measured
MOST = 1e6  # outputs per input: more is a typing error, and would fill the memory


def unmetered() -> float | None:
    """Nobody tells the time."""
    return None


class Aside(NamedTuple):
    """Rows that an operator could not take through, and why: nothing is dropped without a word."""

    kind: str  # "late" or "error"
    batch: Batch
    reason: str
    trace: str = ""  # where it was raised, if it was


@dataclass(eq=False)
class Operator(ABC):
    """Something that turns tuples into tuples; the declared figures are what a policy knows before it measures."""

    cost: float = 0.0  # time for one whole input tuple
    selectivity: float = 1.0  # outputs per input
    startup: float = 0.0  # time a run takes whatever it handles
    take: float | None = None  # the most tuples it takes in a run
    size: float | None = None  # bytes of an output tuple; None: as its input
    asides: list[Aside] = field(default_factory=list, init=False, repr=False)  # emptied by whoever runs it
    # Of an operator that is several operations in one: a reading to tell what each of them takes, if there is one.
    meter: Callable[[], float | None] = field(default=unmetered, repr=False, kw_only=True)
    # Whether one that has raised is as it was before: then what it raised on may be tried again in parts.
    atomic: ClassVar[bool] = False
    timed: ClassVar[bool] = False  # whether time alone, `upto` of a batch without rows, makes it do something

    def __post_init__(self) -> None:
        for name in ("cost", "selectivity", "startup"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise PlanError(f"{name} is {value}: a finite number is wanted", name)
            if value < 0:
                raise PlanError(f"{name} is {value}: it must not be negative", name)
        if self.selectivity > MOST:
            raise PlanError(f"selectivity is {self.selectivity:g}: at most {MOST:g} outputs per input", "selectivity")
        if self.cost == 0 and self.startup == 0:
            raise PlanError("cost is zero and there is no startup: one of the two must be positive", "cost")
        for name in ("take", "size"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise PlanError(f"{name} is {value}: a positive number is wanted", name)

    @property
    def declared(self) -> bool:
        """Whether its cost was declared, rather than supposed until it is measured."""
        return self.cost != ROW_COST

    def fresh(self, settings: Settings) -> Operator:
        """A copy without state for one run."""
        fresh = copy.copy(self)
        fresh.asides = []
        return fresh

    def deadline(self) -> int | None:
        """The timestamp at which it has something to put out even if no row comes; None: there is none."""
        return None

    @abstractmethod
    def process(self, batch: Batch, port: int = 0) -> Batch:
        """What these rows, come in by this port, put out."""
