"""The union operator: merges several inputs into one stream in timestamp order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from dsms.config.run import Settings
from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.errors import PlanError
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator
from dsms.operators.instant_barrier import InstantBarrier
from dsms.operators.row_order import merge_in_time_order


@dataclass(eq=False)
class UnionOperator(Operator):
    """Merges all ports by timestamp, sign and port; columns match by position and take the first port's names."""

    cost: float = DEFAULT_ROW_COST_S
    inputs: int = 2
    names: tuple[tuple[str, ...], ...] | None = None  # the columns of each port; None: all ports use the same names
    _pending: InstantBarrier = field(init=False, repr=False)
    is_time_driven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs < 1:
            raise PlanError(f"a union of {self.inputs} inputs: it needs at least one", "inputs")
        if self.names is not None and len(self.names) != self.inputs:
            raise PlanError(
                f"a union of {self.inputs} inputs: expected the columns of each, not of {len(self.names)}", "names"
            )
        if self.names is not None and len({len(names) for names in self.names}) > 1:
            raise PlanError(f"the inputs of a union have different numbers of columns: {self.names}", "names")
        self._pending = InstantBarrier(self.inputs)

    def fresh(self, settings: Settings) -> UnionOperator:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        complete = self._pending.add(self._rename(batch, port) if len(batch) else batch, port)
        return merge_in_time_order(complete.rows, batch, complete.watermark, complete.ended)

    def _rename(self, batch: Batch, port: int) -> Batch:
        if self.names is None:
            return batch
        columns = {}
        for old, new in zip(self.names[port], self.names[0], strict=True):
            columns[new] = batch.columns[old]
            if old + NULLS_SUFFIX in batch.columns:
                columns[new + NULLS_SUFFIX] = batch.columns[old + NULLS_SUFFIX]
        return replace(batch, columns=columns)
