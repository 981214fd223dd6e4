"""A plan's load: generates the rows of any time range, the same in every process."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dsms.arrivals import Arrivals
from dsms.data.batch import Batch
from dsms.data.outcomes import hash_name
from dsms.data.schema import Schema
from dsms.errors import DsmsError, PlanError, existing
from dsms.plan.graph import Plan, Stream
from dsms.query.offered_load import utilisation
from dsms.query.plan_file import plan_from, read_table
from loadgen.spec.values import Values

ROWS_PER_BLOCK = 65_536  # at most, of a RowBlock


class RowBlock(NamedTuple):
    """Consecutive rows of a stream: the number of the first, when each is due (seconds from 0), and their columns."""

    stream: str
    first: int
    due: np.ndarray[Any, np.dtype[np.float64]]
    batch: Batch


@dataclass(frozen=True)
class LoadSpec:
    """The description of a load, small enough to send to every task that generates a part of it."""

    plan: bytes  # the pickled table of a plan file
    folder: str
    file: str
    streams: tuple[str, ...] = ()  # empty: all streams that have arrivals
    rate: float | None = None  # rows per second of all streams together; None: the plan's
    utilisation: float | None = None  # instead of a rate: the share of the CPU budget, by declared costs
    duration: float | None = None  # seconds of pushing
    speedup: float = 1.0  # seconds of the load per second of pushing
    since: float = 0.0  # the instant that timestamps in the rows count from, in seconds
    seed: int | None = None  # None: the plan's

    @classmethod
    def of(cls, path: str | Path, **settings: Any) -> LoadSpec:
        """The load of a plan file."""
        path = Path(path)
        return cls(pickle.dumps(read_table(path)), str(path.resolve().parent), str(path), **settings)

    def options(self) -> dict[str, Any]:
        """The spec as options of the Spark format `dsms_load`."""
        names = ("rate", "utilisation", "duration", "speedup", "since", "seed")
        settings = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {"plan": str(Path(self.file).resolve()), "stream": ",".join(self.streams), **settings}

    def table(self) -> Mapping[str, Any]:
        """The table of the plan file."""
        table: Mapping[str, Any] = pickle.loads(self.plan)
        return table


class LoadStream(NamedTuple):
    """One stream of a load."""

    name: str
    schema: Schema
    arrivals: Arrivals
    values: Values


class Load:
    """Generates the rows of time ranges; a row does not depend on the range it is generated with."""

    def __init__(self, spec: LoadSpec) -> None:
        plan = plan_from(spec.table(), folder=Path(spec.folder), file=spec.file)
        seed = plan.settings.seed if spec.seed is None else spec.seed
        chosen = _choose_streams(plan, spec.streams)
        processes = {s.name: s.arrivals((seed + hash_name(s.name)) % 2**63) for s in chosen if s.arrivals is not None}
        factor = _rate_factor(plan, processes, spec)
        self.sources = [
            LoadStream(s.name, s.schema, processes[s.name].scaled(factor), Values.read(s, seed, Path(spec.folder)))
            for s in chosen
            if s.schema is not None
        ]
        self.speedup, self._since = spec.speedup, spec.since
        ends = [source.arrivals.end for source in self.sources]
        self.end = min(max(ends), math.inf if spec.duration is None else spec.duration * spec.speedup)

    @property
    def rate(self) -> float:
        """The mean number of rows pushed per second, of all streams together."""
        return sum(source.arrivals.rate for source in self.sources) * self.speedup

    def rows(self, start: float, stop: float) -> Iterator[RowBlock]:
        """The rows due in [start, stop), stream by stream, in blocks."""
        stop = min(stop, self.end)
        for source in self.sources if start < stop else ():
            parts = max(1, math.ceil((stop - start) * source.arrivals.rate / ROWS_PER_BLOCK))
            for begin, end in itertools.pairwise(split_edges(start, stop, parts)):
                first, due = source.arrivals.numbered(begin, end)
                for at in range(0, len(due), ROWS_PER_BLOCK):  # a burst may have more rows than the mean rate says
                    piece = due[at : at + ROWS_PER_BLOCK]
                    columns = source.values.rows(first + at, piece + self._since)
                    yield RowBlock(source.name, first + at, piece, Batch.of(columns))

    def count_due(self, start: float, stop: float) -> int:
        """The number of rows due in [start, stop)."""
        return sum(len(source.arrivals.between(start, min(stop, self.end))) for source in self.sources)


def split_edges(start: float, stop: float, parts: int) -> list[float]:
    """The edges of equal parts of a time range; each part begins exactly where the one before ends."""
    return [start + (stop - start) * place / parts for place in range(parts)] + [stop]


@lru_cache(maxsize=8)
def make_load(spec: LoadSpec) -> Load:
    """Make the load of a spec; cached, since a process generates many parts of one load."""
    return Load(spec)


def _choose_streams(plan: Plan, names: Sequence[str]) -> list[Stream]:
    """The streams to generate; one without arrivals or schema is refused."""
    by_name = {stream.name: stream for stream in plan.streams}
    for name in names:
        if name not in by_name:
            raise DsmsError(f"no stream {name!r} in {plan.name or 'the plan'}{existing(name, by_name)}")
    selected = dict.fromkeys(names) or [stream.name for stream in plan.streams if stream.arrivals is not None]
    streams = [by_name[name] for name in selected]
    if not streams:
        raise PlanError("no stream has `arrivals`, so there is nothing to generate", "streams", plan.name)
    for stream in streams:
        if stream.arrivals is None:
            raise PlanError("no `arrivals`: they say when rows are due", f"streams.{stream.name}", plan.name)
        if stream.schema is None:
            raise PlanError("no `schema`: it says which columns rows have", f"streams.{stream.name}", plan.name)
    return streams


def _rate_factor(plan: Plan, processes: Mapping[str, Arrivals], spec: LoadSpec) -> float:
    """By how much the plan's arrivals are sped up to reach the rate or utilisation of the spec."""
    if spec.rate is not None and spec.utilisation is not None:
        raise DsmsError("both a rate and a utilisation are given; give only one of them")
    rates = {name: process.rate for name, process in processes.items() if process.end > 0}  # some may have no rows
    if not rates:
        raise DsmsError(f"the arrivals of {', '.join(processes)} are empty, so there is nothing to push")
    if spec.rate is not None:
        return spec.rate / sum(rates.values()) / spec.speedup
    if spec.utilisation is not None:
        return spec.utilisation / utilisation(plan, rates, plan.live.budget) / spec.speedup
    return 1.0
