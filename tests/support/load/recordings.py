"""Writes small random recordings for tests of reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

TABLES = ("arrivals", "outputs", "memory", "phases")


@dataclass(frozen=True)
class FakeRecording:
    """The tables of a recorded run, column by column."""

    since: float
    until: float
    queries: list[str]
    tables: dict[str, dict[str, np.ndarray]]
    complete: bool = True

    def write(self, folder: Path, parts: int = 3) -> Path:
        """Write a recording whose tables have this many parts."""
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
            for number, part in enumerate(places):
                if len(part):
                    table = pa.table({column: values[part] for column, values in columns.items()})
                    parquet.write_table(table, folder / name / f"part-{number:05}.parquet")
        return folder


def make_recording(
    seed: int,
    phases: list[tuple[float, str]],
    arrivals: int = 0,
    since: float = 5.0,
    until: float = 65.0,
    rows: int = 400,
) -> FakeRecording:
    """A run of three queries, the last without results; the seed `arrivals` determines its arrivals."""
    random, load = np.random.default_rng(seed), np.random.default_rng(1000 + arrivals)
    arrival_times = np.sort(load.uniform(since, until, rows))
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
    return FakeRecording(
        since,
        until,
        ["a", "b", "none"],
        {
            "arrivals": {
                "at": arrival_times,
                "stream": np.full(rows, "s"),
                "rows": load.integers(1, 5, rows),
                "lag": np.full(rows, 0.25),
            },
            "outputs": outputs,
            "memory": memory,
            **({"bound": bound} if len(phases) > 1 else {}),  # a recording in virtual time has none
            "phases": {
                "at": np.array([at for at, _ in phases]),
                "policy": np.array([policy for _, policy in phases]),
                "reason": np.full(len(phases), "asked for"),
            },
        },
    )
