"""A table as a folder of Parquet part files: writes each part atomically, and reads the parts back in order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from dsms.errors import DsmsError, existing

PART_PATTERN = "part-*.parquet"


class DictionaryColumn(NamedTuple):
    """A dictionary-encoded column of strings: a code for each row, and the string of each code."""

    codes: NDArray[np.int64]
    names: Sequence[str]

    def each(self) -> NDArray[Any]:
        """Return the strings of all rows."""
        return np.array([*self.names, None], dtype=object)[self.codes]


Column = NDArray[Any] | DictionaryColumn | None  # None: a column of unknown numbers
Columns = Mapping[str, Column]


def write_part(folder: Path, number: int, columns: Columns) -> None:
    """Write the next part of a table; it gets its final name when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = max(len(c.codes if isinstance(c, DictionaryColumn) else c) for c in columns.values() if c is not None)
    table = pa.table({name: _to_arrow(column, rows) for name, column in columns.items()})
    name = f"part-{number:05}.parquet"
    temporary = folder / f".{name}"  # readers of the folder ignore names with a leading dot
    parquet.write_table(table, temporary, use_dictionary=_text_columns(columns), write_page_checksum=True)
    os.replace(temporary, folder / name)


def read_parts(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield some columns of each part of a table, in order: arrays, or `DictionaryColumn` for strings."""
    for path in sorted(folder.glob(PART_PATTERN)):
        yield _read(path, names)


def _read(path: Path, names: Sequence[str]) -> dict[str, Any]:
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            columns = file.schema_arrow.names
            for name in names:
                if name not in columns:
                    raise DsmsError(f"{path}: no column {name!r}{existing(name, columns)}")
            table = file.read(columns=list(names))
    except (pa.ArrowException, OSError) as error:
        raise DsmsError(f"{path} cannot be read as a part of a recording: {error}") from None
    return {name: _to_numpy(table.column(name).combine_chunks()) for name in names}


def _text_columns(columns: Columns) -> list[str]:
    return [name for name, column in columns.items() if isinstance(column, DictionaryColumn)]


def _to_arrow(column: Column, rows: int) -> pa.Array:
    if column is None:
        return pa.nulls(rows, pa.float64())
    if isinstance(column, DictionaryColumn):
        return pa.DictionaryArray.from_arrays(pa.array(column.codes, pa.int32()), pa.array(column.names, pa.string()))
    return pa.array(column)


def _to_numpy(column: pa.Array) -> NDArray[Any] | DictionaryColumn:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return DictionaryColumn(codes, column.dictionary.to_pylist())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)  # nulls of float64 are nan
    return values
