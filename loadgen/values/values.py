"""The rows of a stream's load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsms.arrivals import Floats
from dsms.batch import Column
from dsms.errors import PlanError
from dsms.plan import Stream
from loadgen.values.fills import Fill
from loadgen.values.kinds import DEFAULTS, ValueTable, filled


@dataclass(frozen=True)
class Values:
    """What fills the columns of a stream, in the order of its schema; nulls of a column `x` stand in a column `x?`."""

    columns: Mapping[str, Fill]

    @classmethod
    def read(cls, stream: Stream, seed: int, folder: Path) -> Values:
        """What the plan says of this stream's columns, and for the others something that suits their types."""
        place = f"streams.{stream.name}"
        if stream.schema is None:
            raise PlanError("no `schema`: rows cannot be made without columns", place)
        columns: dict[str, Fill] = {}
        for name, kind in stream.schema.fields:
            default = {"kind": "due"} if name == stream.timestamp else DEFAULTS[kind]
            table = stream.values.get(name, default)
            try:
                columns |= filled(ValueTable(table, folder, stream=stream, column=name, type=kind, seed=seed))
            except PlanError as error:
                raise error.within(f"{place}.values.{name}") from None
        return cls(columns)

    def rows(self, first: int, instants: Floats) -> dict[str, Column]:
        """The columns of the rows from number `first` on, which are due at these instants.

        A pure function of the numbers: whichever rows are asked for together, in whatever process, each is the same.
        """
        return {name: fill.rows(first, instants) for name, fill in self.columns.items()}
