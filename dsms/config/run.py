"""Settings of a whole run: the `[run]` table of a plan file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from dsms.config.fields import (
    BooleanField,
    ChoiceField,
    DurationField,
    EitherField,
    IntegerField,
    NumberField,
    read_dataclass,
)

Number = Annotated[float, NumberField(above=0)]
Limit = Annotated[float | None, NumberField(above=0)]
DeadTime = Annotated[float, DurationField()]
Order = Annotated[
    Literal["preserving", "weak"] | int, EitherField((ChoiceField(("preserving", "weak")), IntegerField(least=1)))
]


@dataclass(frozen=True)
class Settings:
    """How tuples, buffers and statistics are modelled, and how long a turn may be."""

    tuples: Annotated[str, ChoiceField(("individual", "fractional"))] = "individual"
    selectivity: Annotated[str, ChoiceField(("random", "spread"))] = "random"
    buffers: Annotated[str, ChoiceField(("shared", "private"))] = "shared"
    in_service: Annotated[bool, BooleanField()] = True  # whether a tuple being processed counts as memory
    # Whether a join or union asks how old an empty input's next tuple can be; False: it waits for that tuple.
    bounds: Annotated[bool, BooleanField()] = True
    statistics: Annotated[str, ChoiceField(("declared", "average", "window"))] = "declared"
    history: Annotated[float, NumberField(above=0, below=1)] = 0.875  # "average": the weight of older measurements
    window: Number = 10.0  # "window": how long statistics are gathered before they are used
    seed: Annotated[int, IntegerField(least=0)] = 1
    slice: Limit = None  # longest turn; None: the clock's, one tuple in virtual time, else 20 ms
    until: Annotated[float | None, NumberField(least=0)] = None  # arrivals after this are not admitted
    max_wait: Limit = None  # a segment with work that has waited longer runs next, whatever its priority
    scheduling_cost: Annotated[float, NumberField(least=0)] = 0.0  # of entering a changed priority into the ready order
    turn_cost: DeadTime = 0.0  # simulated: time that each turn takes besides its work
    hop_cost: DeadTime = 0.0  # simulated: time that a turn takes to go on at another host
    on_error: Annotated[str, ChoiceField(("fail", "dead-letter"))] = "fail"  # for a row that an expression fails on
    # Of joins' results: the order of their inputs, any order, or how many items may be processed ahead of older ones.
    order: Order = "preserving"
    mode: Annotated[Literal["block", "item"], ChoiceField(("block", "item"))] = "block"  # which T orders a join's steps

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Settings:
        """Read the `[run]` table of a plan file."""
        return read_dataclass(cls, table)

    @property
    def eager_rows(self) -> float:
        """How many items a join may work on before it is known that nothing older comes."""
        return self.order if isinstance(self.order, int) else 0 if self.order == "preserving" else math.inf

    @property
    def fractional(self) -> bool:
        return self.tuples == "fractional"

    @property
    def selectivity_model(self) -> str:
        """How an abstract operator decides: by chance, evenly spread, or a fraction of each tuple."""
        return "fractional" if self.fractional else self.selectivity
