"""Tables in parts: Parquet files of a few columns each, whole or not there, read back one after the other."""

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

PATTERN = "part-*.parquet"


class Texts(NamedTuple):
    """A column of texts of which few are different: a number each, and what the numbers stand for."""

    codes: NDArray[np.int64]
    names: Sequence[str]

    def each(self) -> NDArray[Any]:
        """The texts themselves."""
        return np.array([*self.names, None], dtype=object)[self.codes]


Column = NDArray[Any] | Texts | None  # None: a column of numbers that nobody knows
Columns = Mapping[str, Column]


def write_part(folder: Path, number: int, columns: Columns) -> None:
    """The next part of a table; under its own name once it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = max(len(c.codes if isinstance(c, Texts) else c) for c in columns.values() if c is not None)
    table = pa.table({name: _arrow(column, rows) for name, column in columns.items()})
    name = f"part-{number:05}.parquet"
    aside = folder / f".{name}"  # a dot in front: whoever reads the folder passes over it
    parquet.write_table(table, aside, use_dictionary=_texts(columns), write_page_checksum=True)
    os.replace(aside, folder / name)


def read_parts(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """These columns of a table, a part at a time, in order: arrays, or Texts where they are texts."""
    for path in sorted(folder.glob(PATTERN)):
        yield _read(path, names)


def _read(path: Path, names: Sequence[str]) -> dict[str, Any]:
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            there = file.schema_arrow.names
            for name in names:
                if name not in there:
                    raise DsmsError(f"{path}: no column {name!r}{existing(name, there)}")
            table = file.read(columns=list(names))
    except (pa.ArrowException, OSError) as error:
        raise DsmsError(f"{path} cannot be read as a part of a recording: {error}") from None
    return {name: _numpy(table.column(name).combine_chunks()) for name in names}


def _texts(columns: Columns) -> list[str]:
    return [name for name, column in columns.items() if isinstance(column, Texts)]


def _arrow(column: Column, rows: int) -> pa.Array:
    if column is None:
        return pa.nulls(rows, pa.float64())
    if isinstance(column, Texts):
        return pa.DictionaryArray.from_arrays(pa.array(column.codes, pa.int32()), pa.array(column.names, pa.string()))
    return pa.array(column)


def _numpy(column: pa.Array) -> NDArray[Any] | Texts:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return Texts(codes, column.dictionary.to_pylist())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)  # nulls of float64 are nan
    return values
