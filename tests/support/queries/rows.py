"""Random rows for streams and stored relations: with nulls, duplicates, equal timestamps, few keys, late rows."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.schema import DTYPES

TYPES = {"ts": "timestamp", "k": "int64", "v": "int64", "f": "float64", "b": "bool", "s": "string", "u": "timestamp"}
STORED = {"k": "int64", "label": "string", "rate": "float64"}
SQL_TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "bool": "BOOLEAN", "timestamp": "BIGINT", "string": "VARCHAR"}
EMPTY = {"int64": 0, "float64": 0.0, "bool": False, "timestamp": 0, "string": ""}
WORDS = ("", "a", "b", "ab", "abc", "B a", "x_y", "50%", "é", " pad ")


@dataclass(frozen=True)
class Rows:
    """The columns of a stream in arrival order, or of a stored relation; None is null."""

    types: dict[str, str]
    columns: dict[str, list[Any]]
    late: int = 0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def batch(self, start: int = 0, stop: int | None = None) -> Batch:
        """Return some of the rows as a batch."""
        made: dict[str, Any] = {}
        for name, kind in self.types.items():
            values = self.columns[name][start:stop]
            made[name] = np.array([EMPTY[kind] if v is None else v for v in values], dtype=DTYPES[kind])
            if None in values:
                made[name + NULLS_SUFFIX] = np.array([v is None for v in values])
        return Batch.of(made)

    def table(self, name: str) -> list[str]:
        """Return the SQL that creates a table of the same rows; _n is their order of arrival."""
        columns = ", ".join(f"{column} {SQL_TYPES[kind]}" for column, kind in self.types.items())
        made = [f"CREATE OR REPLACE TEMP TABLE {name} ({columns}, _n BIGINT)"]
        rows = zip(*self.columns.values(), range(len(self)), strict=True)
        if values := ", ".join("(" + ", ".join(map(_literal, row)) + ")" for row in rows):
            made.append(f"INSERT INTO {name} VALUES {values}")
        return made


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(value)


def _values(chance: random.Random, kind: str, count: int, nulls: float, keys: int) -> list[Any]:
    made: Any = {
        "int64": lambda: [min(chance.randrange(keys), chance.randrange(keys)) for _ in range(count)],  # skewed
        "float64": lambda: [chance.randrange(1 - keys, keys) / 4 for _ in range(count)],  # sums of these are exact
        "bool": lambda: [chance.random() < 0.5 for _ in range(count)],
        "timestamp": lambda: [chance.randrange(3 * keys) for _ in range(count)],
        "string": lambda: [WORDS[chance.randrange(keys + 1)] for _ in range(count)],
    }[kind]()
    return [None if chance.random() < nulls else value for value in made]


@st.composite
def stream_rows(draw: st.DrawFn, since: int = 0, span: int = 60, most: int = 60) -> Rows:
    """Draw a stream's rows within a time span: hypothesis draws the shape, a seeded generator the values."""
    count = draw(st.sampled_from([most, most // 2, most // 3] * 4 + [5, 1, 0]))
    chance = random.Random(draw(st.integers(0, 2**32)))
    instants = draw(st.sampled_from([span + 1, span + 1, 6, 2, 1]))  # few instants: many rows with equal timestamps
    met = [chance.randrange(span + 1) for _ in range(instants - 1)] + [span]  # all streams end at the same time
    late = draw(st.sampled_from([0, 0, 0, 4, 15]))
    ts = sorted(since + chance.choice(met) for _ in range(count))
    nulls, keys = draw(st.sampled_from([0.0, 0.0, 0.1, 0.5])), draw(st.sampled_from([3, 3, 2, 8, 1]))
    columns = {name: _values(chance, kind, count, nulls, keys) for name, kind in TYPES.items()}
    columns["v"] = [None if value is None else value * 2 - 2 for value in columns["v"]]
    columns["ts"] = sorted(ts, key=lambda at: at + chance.randrange(late + 1))  # never more than `late` behind another
    return Rows(TYPES, columns, late)


@st.composite
def stored_rows(draw: st.DrawFn) -> Rows:
    """Draw a stored relation's rows."""
    count, nulls = draw(st.sampled_from([8, 6, 4, 8, 6, 4, 0])), draw(st.sampled_from([0.0, 0.3]))
    chance = random.Random(draw(st.integers(0, 2**32)))
    return Rows(STORED, {name: _values(chance, kind, count, nulls, 3) for name, kind in STORED.items()})
