"""Calls user functions in expressions: with whole columns, or row by row; a failing row is a row error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsms.data.batch import Column
from dsms.data.schema import DTYPES
from dsms.errors import PlanError, existing
from dsms.expressions.row_errors import RowErrors

PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "int64": (int, np.integer),
    "timestamp": (int, np.integer),
    "float64": (float, int, np.floating, np.integer),
    "bool": (bool, np.bool_),
    "string": (str,),
}
EMPTY_VALUES = {"string": ""}  # the value stored under a null or a bad row; 0 for the other types


@dataclass(frozen=True)
class UserFunction:
    """A user function: called with one array for each argument, or with the values of one row at a time."""

    function: Callable[..., Any]
    returns: str  # its type
    per_row: bool = False

    def __post_init__(self) -> None:
        if self.returns not in DTYPES:
            raise PlanError(
                f"a function returns {self.returns!r}: no such type{existing(self.returns, DTYPES)}", "returns"
            )

    def values(
        self, name: str, faults: RowErrors, nulls: Column | None, rows: int, arguments: list[Any]
    ) -> tuple[Column, Column | None]:
        """Return the function's values and nulls; a row with a null argument is null, without a call."""
        filled = np.arange(rows) if nulls is None else np.flatnonzero(~nulls)
        arrays = [np.broadcast_to(values, rows)[filled] for values in arguments]
        result = np.full(rows, EMPTY_VALUES.get(self.returns, 0), dtype=DTYPES[self.returns])
        call = self._call_by_row if self.per_row else self._call_with_columns
        inner = RowErrors()
        values, missing = call(name, inner, len(filled), arrays) if len(filled) else (result[:0], None)
        faults.move(inner, filled)
        result[filled] = values
        if missing is not None and missing.any():
            nulls = np.zeros(rows, dtype=bool) if nulls is None else nulls.copy()
            nulls[filled[missing]] = True
        return result, nulls

    def _call_with_columns(
        self, name: str, faults: RowErrors, rows: int, arrays: list[Column]
    ) -> tuple[Column, Column | None]:
        try:
            return self._check_column(self.function(*arrays), rows), None
        except Exception as error:  # a user function may raise anything
            if rows == 1:
                faults.add(np.True_, None, f"function {name!r}: {type(error).__name__}: {error}")
                return np.full(1, EMPTY_VALUES.get(self.returns, 0), dtype=DTYPES[self.returns]), None
        # Only the rows that fail by themselves are bad: try each alone.
        parts = []
        for row in range(rows):
            inner = RowErrors()
            parts.append(self._call_with_columns(name, inner, 1, [array[row : row + 1] for array in arrays])[0])
            faults.move(inner, np.array([row]))
        return np.concatenate(parts), None

    def _check_column(self, answer: Any, rows: int) -> Column:
        """Return the result as a column; raise if its shape or type is wrong."""
        values = np.asarray(answer)
        if values.shape != (rows,):
            raise TypeError(f"it returned an array of shape {values.shape}: expected {(rows,)}")
        dtype = DTYPES[self.returns]
        if values.dtype.kind not in "OUT" if dtype.hasobject else not np.can_cast(values.dtype, dtype, "same_kind"):
            raise TypeError(f"it returned {values.dtype}: expected {self.returns}")
        return values.astype(dtype, copy=False)

    def _call_by_row(
        self, name: str, faults: RowErrors, rows: int, arrays: list[Column]
    ) -> tuple[Column, Column | None]:
        answers: list[Any] = []
        bad: dict[str, list[int]] = {}
        argument_rows = zip(*(array.tolist() for array in arrays), strict=True) if arrays else [()] * rows
        for row, values in enumerate(argument_rows):
            try:
                answers.append(self._check_value(self.function(*values)))
            except Exception as error:  # a user function may raise anything
                answers.append(None)
                bad.setdefault(f"function {name!r}: {type(error).__name__}: {error}", []).append(row)
        for reason, positions in bad.items():
            faults.found.append((np.array(positions), reason))
        missing = np.array([answer is None for answer in answers])
        filled = [EMPTY_VALUES.get(self.returns, 0) if answer is None else answer for answer in answers]
        return np.array(filled, dtype=DTYPES[self.returns]), missing

    def _check_value(self, answer: Any) -> Any:
        """Return the result for one row; raise if it is neither null nor of the declared type."""
        if answer is not None and not isinstance(answer, PYTHON_TYPES[self.returns]):
            raise TypeError(f"it returned {answer!r}: expected {self.returns}")
        if isinstance(answer, int) and not -(2**63) <= answer < 2**63:
            raise OverflowError(f"it returned {answer}, which does not fit int64")
        return answer
