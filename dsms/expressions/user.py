"""The user's own functions in expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsms.batch import Column
from dsms.errors import PlanError, existing
from dsms.expressions.faults import Faults
from dsms.schema import DTYPES

CLASSES: dict[str, tuple[type, ...]] = {
    "int64": (int, np.integer),
    "timestamp": (int, np.integer),
    "float64": (float, int, np.floating, np.integer),
    "bool": (bool, np.bool_),
    "string": (str,),
}
EMPTY = {"string": ""}  # what lies under a null or a fault; 0 of the other types


@dataclass(frozen=True)
class UserFunction:
    """Code of the user's: called with arrays, one an argument, or with the values of one row at a time."""

    function: Callable[..., Any]
    returns: str  # its type
    per_row: bool = False

    def __post_init__(self) -> None:
        if self.returns not in DTYPES:
            raise PlanError(
                f"a function returns {self.returns!r}: no such type{existing(self.returns, DTYPES)}", "returns"
            )

    def values(
        self, name: str, faults: Faults, nulls: Column | None, rows: int, arguments: list[Any]
    ) -> tuple[Column, Column | None]:
        """Its values and nulls; rows in which an argument is null are null and not given to it."""
        given = np.arange(rows) if nulls is None else np.flatnonzero(~nulls)
        arrays = [np.broadcast_to(values, rows)[given] for values in arguments]
        answer = np.full(rows, EMPTY.get(self.returns, 0), dtype=DTYPES[self.returns])
        call = self._by_row if self.per_row else self._at_once
        inner = Faults()
        values, missing = call(name, inner, len(given), arrays) if len(given) else (answer[:0], None)
        faults.move(inner, given)
        answer[given] = values
        if missing is not None and missing.any():
            nulls = np.zeros(rows, dtype=bool) if nulls is None else nulls.copy()
            nulls[given[missing]] = True
        return answer, nulls

    def _at_once(self, name: str, faults: Faults, rows: int, arrays: list[Column]) -> tuple[Column, Column | None]:
        try:
            return self._checked(self.function(*arrays), rows), None
        except Exception as error:  # whatever the user's code does
            if rows == 1:
                faults.add(np.True_, None, f"function {name!r}: {type(error).__name__}: {error}")
                return np.full(1, EMPTY.get(self.returns, 0), dtype=DTYPES[self.returns]), None
        # Only the rows that are to blame are faults: each is tried by itself.
        parts = []
        for row in range(rows):
            inner = Faults()
            parts.append(self._at_once(name, inner, 1, [array[row : row + 1] for array in arrays])[0])
            faults.move(inner, np.array([row]))
        return np.concatenate(parts), None

    def _checked(self, answer: Any, rows: int) -> Column:
        """The answer as a column, if it is one."""
        values = np.asarray(answer)
        if values.shape != (rows,):
            raise TypeError(f"it answered an array of shape {values.shape}: {(rows,)} is wanted")
        wanted = DTYPES[self.returns]
        if values.dtype.kind not in "OUT" if wanted.hasobject else not np.can_cast(values.dtype, wanted, "same_kind"):
            raise TypeError(f"it answered {values.dtype}: {self.returns} is wanted")
        return values.astype(wanted, copy=False)

    def _by_row(self, name: str, faults: Faults, rows: int, arrays: list[Column]) -> tuple[Column, Column | None]:
        answers: list[Any] = []
        wrong: dict[str, list[int]] = {}
        given = zip(*(array.tolist() for array in arrays), strict=True) if arrays else [()] * rows
        for row, values in enumerate(given):
            try:
                answers.append(self._one(self.function(*values)))
            except Exception as error:  # whatever the user's code does
                answers.append(None)
                wrong.setdefault(f"function {name!r}: {type(error).__name__}: {error}", []).append(row)
        for reason, positions in wrong.items():
            faults.found.append((np.array(positions), reason))
        missing = np.array([answer is None for answer in answers])
        filled = [EMPTY.get(self.returns, 0) if answer is None else answer for answer in answers]
        return np.array(filled, dtype=DTYPES[self.returns]), missing

    def _one(self, answer: Any) -> Any:
        """The answer for a row, if it is of the type or null."""
        if answer is not None and not isinstance(answer, CLASSES[self.returns]):
            raise TypeError(f"it answered {answer!r}: {self.returns} is wanted")
        if isinstance(answer, int) and not -(2**63) <= answer < 2**63:
            raise OverflowError(f"it answered {answer}, which does not fit into int64")
        return answer
