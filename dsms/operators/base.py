"""The operator interface: `process` a batch, plus the declared cost, selectivity and output size that policies use."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.dead_letter import DeadLetter
from dsms.errors import PlanError

DEFAULT_ROW_COST_S = 1e-6  # assumed for a real row until the cost is measured
MAX_SELECTIVITY = 1e6  # outputs per input: a higher value is most likely a typo and would fill the memory


def read_no_meter() -> float | None:
    """Return None: no meter is installed."""
    return None


@dataclass(eq=False)
class Operator(ABC):
    """Turns batches into batches; the declared figures are all a policy knows before anything is measured."""

    cost: float = 0.0  # seconds for one whole input tuple
    selectivity: float = 1.0  # outputs per input
    startup: float = 0.0  # fixed seconds for each run
    take: float | None = None  # maximum tuples in a run
    size: float | None = None  # bytes of an output tuple; None: as large as its input
    dead_letters: list[DeadLetter] = field(default_factory=list, init=False, repr=False)  # the runner empties it
    # A time reading with which an operator of several operations measures each of them; None: no meter.
    meter: Callable[[], float | None] = field(default=read_no_meter, repr=False, kw_only=True)
    # Whether an exception leaves the state unchanged: then the runner may retry the failed batch in parts.
    atomic: ClassVar[bool] = False
    is_time_driven: ClassVar[bool] = False  # whether a watermark alone, in a batch without rows, makes it work

    def __post_init__(self) -> None:
        for name in ("cost", "selectivity", "startup"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise PlanError(f"{name} is {value}: it must be a finite number", name)
            if value < 0:
                raise PlanError(f"{name} is {value}: it must not be negative", name)
        if self.selectivity > MAX_SELECTIVITY:
            raise PlanError(
                f"selectivity is {self.selectivity:g}: at most {MAX_SELECTIVITY:g} outputs per input", "selectivity"
            )
        if self.cost == 0 and self.startup == 0:
            raise PlanError("cost is zero and there is no startup: one of the two must be positive", "cost")
        for name in ("take", "size"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise PlanError(f"{name} is {value}: it must be a positive number", name)

    @property
    def has_declared_cost(self) -> bool:
        """Whether the plan declares the cost; otherwise it is a default until it is measured."""
        return self.cost != DEFAULT_ROW_COST_S

    @classmethod
    def kind_name(cls) -> str:
        """The kind of operator in plain words, for metrics and explanations: `window`, `aggregate`, …"""
        return cls.__name__.removesuffix("Operator").lower()

    def fresh(self, settings: Settings) -> Operator:
        """Return a copy without state, for one run."""
        fresh = copy.copy(self)
        fresh.dead_letters = []
        return fresh

    def deadline(self) -> int | None:
        """Return the timestamp at which it emits rows even if no input row arrives; None: never."""
        return None

    @abstractmethod
    def process(self, batch: Batch, port: int = 0) -> Batch:
        """Process the rows of a batch that entered by a port, and return the output rows."""
