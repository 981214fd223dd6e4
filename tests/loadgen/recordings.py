"""Recorded runs made up for tests: small, random, and known to the last number."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

TABLES = ("arrivals", "outputs", "memory", "phases")


@dataclass(frozen=True)
class Made:
    """A run's tables in columns, as they are written."""

    since: float
    until: float
    queries: list[str]
    tables: dict[str, dict[str, np.ndarray]]
    complete: bool = True

    def write(self, folder: Path, parts: int = 3) -> Path:
        """As a recording, its tables in so many parts."""
        folder.mkdir(parents=True)
        about = {
            "version": 1, "runtime": "live", "clock": "paced", "budget": 1.0, "name": folder.name, "domain": "0",
            "plan": "made.toml", "began": None, "slice": 0.01, "settings": {}, "qos": None,
            "streams": [{"name": "s", "size": 1}], "stations": [], "since": self.since,
            "queries": [{"name": name, "weight": 1.0} for name in self.queries],
            "complete": self.complete, "until": self.until if self.complete else None,
        }  # fmt: skip
        (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")
        for name, columns in self.tables.items():
            (folder / name).mkdir()
            places = np.array_split(np.arange(len(columns["at"])), parts)
            for number, mine in enumerate(places):
                if len(mine):
                    table = pa.table({column: values[mine] for column, values in columns.items()})
                    parquet.write_table(table, folder / name / f"part-{number:05}.parquet")
        return folder


def made(
    seed: int,
    phases: list[tuple[float, str]],
    arrivals: int = 0,
    since: float = 5.0,
    until: float = 65.0,
    rows: int = 400,
) -> Made:
    """A run of three queries, of which the last has no results; the same arrivals for the same seed of theirs."""
    random, load = np.random.default_rng(seed), np.random.default_rng(1000 + arrivals)
    came = np.sort(load.uniform(since, until, rows))
    left = np.sort(random.uniform(since + 1, until, rows))
    arrived = np.maximum(since, left - random.exponential(1.5, rows))
    held_at = np.sort(np.concatenate(([since, until], np.repeat(random.uniform(since, until, rows), 2))))  # some twice
    outputs = {
        "at": left,
        "query": random.choice(["a", "b"], rows),
        "arrived": arrived,
        "rows": random.integers(1, 9, rows),
    }
    memory = {
        "at": held_at,
        "held": random.integers(0, 99, len(held_at)) * 1.0,
        "held_bytes": np.full(len(held_at), np.nan),
    }
    bound = {"at": held_at[::3], "tuples": random.uniform(0, 9, len(held_at[::3]))}
    return Made(
        since,
        until,
        ["a", "b", "none"],
        {
            "arrivals": {
                "at": came,
                "stream": np.full(rows, "s"),
                "rows": load.integers(1, 5, rows),
                "lag": np.full(rows, 0.25),
            },
            "outputs": outputs,
            "memory": memory,
            **({"bound": bound} if len(phases) > 1 else {}),  # in virtual time there is none
            "phases": {
                "at": np.array([at for at, _ in phases]),
                "policy": np.array([policy for _, policy in phases]),
                "reason": np.full(len(phases), "asked for"),
            },
        },
    )
