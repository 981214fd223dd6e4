"""What columns a stream has and of what type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dsms.errors import PlanError, existing

# A timestamp is int64 microseconds; a string is a Python string in a column of objects, which numpy picks, compares
# and sorts faster than its own variable strings.
DTYPES: dict[str, np.dtype[np.generic]] = {
    "int64": np.dtype(np.int64),
    "float64": np.dtype(np.float64),
    "bool": np.dtype(np.bool_),
    "timestamp": np.dtype(np.int64),
    "string": np.dtype(object),
}


@dataclass(frozen=True)
class Schema:
    """Columns in order, each with its type; any of them may hold nulls."""

    fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, types: Mapping[str, str]) -> Schema:
        """The schema that a plan file's table `{ src = "int64", … }` describes."""
        for name, kind in types.items():
            if kind not in DTYPES:
                raise PlanError(f"{kind!r} is no type{existing(str(kind), DTYPES)}", name)
            if not name or "?" in name or "." in name:
                raise PlanError(f"{name!r} cannot be the name of a column: no ? and no . in it", name)
        return cls(tuple(types.items()))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        return any(name == known for known, _ in self.fields)

    def __getitem__(self, name: str) -> str:
        """The type of a column."""
        for known, kind in self.fields:
            if known == name:
                return kind
        raise PlanError(f"no column {name!r}{existing(name, self)}")
