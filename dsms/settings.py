"""What holds for a whole run: the `[run]` table of a plan file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal

from dsms.errors import PlanError, existing

CHOICES = {
    "tuples": ("individual", "fractional"),
    "selectivity": ("random", "spread"),
    "buffers": ("shared", "private"),
    "statistics": ("declared", "average", "window"),
    "on_error": ("fail", "dead-letter"),
    "mode": ("block", "item"),
}
NUMBERS = ("slice", "until", "window", "history", "max_wait", "scheduling_cost")
MAY_BE_ZERO = ("until", "scheduling_cost")


@dataclass(frozen=True)
class Settings:
    """How tuples, buffers and statistics are modelled, and how long a turn may be."""

    tuples: str = "individual"
    selectivity: str = "random"
    buffers: str = "shared"
    in_service: bool = True  # whether a tuple being processed counts as memory
    bounds: bool = True  # whether a join or union asks how old an empty input's next tuple can be; False: it waits
    statistics: str = "declared"
    history: float = 0.875  # "average": the weight of what was known before
    window: float = 10.0  # "window": how long statistics are gathered before they serve
    seed: int = 1
    slice: float | None = None  # longest turn; None: one tuple in virtual time, 20 ms on the other clocks
    until: float | None = None  # arrivals after this are not admitted
    max_wait: float | None = None  # a segment with work that has waited longer is run whatever its priority
    scheduling_cost: float = 0.0  # time that entering a changed priority into the ready order takes
    on_error: str = "fail"  # what becomes of a row that an expression cannot be worked out for
    order: Literal["preserving", "weak"] | int = (
        "preserving"  # of joins' results: or "weak", or how many items may be ahead of their time
    )
    mode: Literal["block", "item"] = "block"  # by which T the order of a join's operations is chosen

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Settings:
        """The settings of a plan file's `[run]` table."""
        names = [f.name for f in fields(cls)]
        for key, value in table.items():
            if key not in names:
                raise PlanError(f"no setting {key!r}{existing(key, names)}", key)
            _check(key, value)
        given: dict[str, Any] = dict(table)
        given.update((key, float(given[key])) for key in NUMBERS if key in given)
        return cls(**given)

    @property
    def ahead(self) -> float:
        """How many items a join may work on before it is known that nothing older comes."""
        return self.order if isinstance(self.order, int) else 0 if self.order == "preserving" else math.inf

    @property
    def fractional(self) -> bool:
        return self.tuples == "fractional"

    @property
    def fate(self) -> str:
        """How an abstract operator decides: by chance, evenly spread, or a fraction of each tuple."""
        return "fractional" if self.fractional else self.selectivity


def is_number(value: Any) -> bool:
    """Whether this is a finite number that a float can hold; true and false are not numbers."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _check(key: str, value: Any) -> None:
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise PlanError(f"{value!r} is not one of {list(CHOICES[key])}", key)
    elif key in ("in_service", "bounds"):
        if not isinstance(value, bool):
            raise PlanError(f"{value!r} is neither true nor false", key)
    elif key == "order":
        if value not in ("preserving", "weak") and not (type(value) is int and value > 0):
            raise PlanError(f"{value!r} is neither 'preserving' nor 'weak' nor a number of items from 1", key)
    elif key == "seed":
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise PlanError(f"{value!r} is not a whole number from 0", key)
    elif not is_number(value) or value < 0 or (value == 0 and key not in MAY_BE_ZERO):
        raise PlanError(f"{value!r} is not {'a number from 0' if key in MAY_BE_ZERO else 'a positive number'}", key)
    elif key == "history" and value >= 1:
        raise PlanError(f"{value!r} leaves no weight for new data: a number between 0 and 1 is wanted", key)
