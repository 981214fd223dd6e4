"""Generates the columns of a stream's rows as the plan's `values` tables describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsms.arrivals import Floats
from dsms.data.batch import Column
from dsms.errors import PlanError
from dsms.plan.graph import Stream
from loadgen.spec.values.fills import Fill
from loadgen.spec.values.kinds import DEFAULTS, ValueTable, make_fills


@dataclass(frozen=True)
class Values:
    """The fills of a stream's columns, in the order of its schema; a column `x?` says which rows of `x` are null."""

    columns: Mapping[str, Fill]

    @classmethod
    def read(cls, stream: Stream, seed: int, folder: Path) -> Values:
        """Read the `values` tables of a stream; a column without one gets the default of its type."""
        place = f"streams.{stream.name}"
        if stream.schema is None:
            raise PlanError("no `schema`: rows cannot be generated without columns; declare one", place)
        columns: dict[str, Fill] = {}
        for name, kind in stream.schema.fields:
            default = {"kind": "due"} if name == stream.timestamp else DEFAULTS[kind]
            table = stream.values.get(name, default)
            try:
                columns |= make_fills(ValueTable(table, folder, stream=stream, column=name, type=kind, seed=seed))
            except PlanError as error:
                raise error.within(f"{place}.values.{name}") from None
        return cls(columns)

    def rows(self, first: int, instants: Floats) -> dict[str, Column]:
        """The columns of the rows from number `first` on, which are due at these instants.

        A row depends only on its number and instant, not on which rows are generated together or in which process.
        """
        return {name: fill.rows(first, instants) for name, fill in self.columns.items()}
