"""Several inputs as one, in the order of their timestamps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from dsms.batch import NULLS, Batch
from dsms.errors import PlanError
from dsms.operators.base import ROW_COST, Operator
from dsms.operators.order import merged
from dsms.operators.pending import Pending
from dsms.settings import Settings


@dataclass(eq=False)
class Union(Operator):
    """The rows of all ports, with the columns of the first by their places; at one instant by sign, then by port."""

    cost: float = ROW_COST
    inputs: int = 2
    names: tuple[tuple[str, ...], ...] | None = None  # the columns of each port; None: they are called the same
    _pending: Pending = field(init=False, repr=False)
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs < 1:
            raise PlanError(f"a union of {self.inputs} inputs: at least one is wanted", "inputs")
        if self.names is not None and len(self.names) != self.inputs:
            raise PlanError(f"a union of {self.inputs} inputs with columns of {len(self.names)}", "names")
        if self.names is not None and len({len(names) for names in self.names}) > 1:
            raise PlanError(f"inputs of a union differ in how many columns they have: {self.names}", "names")
        self._pending = Pending(self.inputs)

    def fresh(self, settings: Settings) -> Union:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        complete = self._pending.add(self._renamed(batch, port) if len(batch) else batch, port)
        return merged(complete.rows, batch, complete.upto, complete.ended)

    def _renamed(self, batch: Batch, port: int) -> Batch:
        if self.names is None:
            return batch
        columns = {}
        for old, new in zip(self.names[port], self.names[0], strict=True):
            columns[new] = batch.columns[old]
            if old + NULLS in batch.columns:
                columns[new + NULLS] = batch.columns[old + NULLS]
        return replace(batch, columns=columns)
