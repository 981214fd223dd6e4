"""A load as a plan describes it: which rows of which streams are due when; any stretch of it can be made anywhere."""

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
from dsms.batch import Batch
from dsms.demand import utilisation
from dsms.errors import DsmsError, PlanError, existing
from dsms.fates import name_hash
from dsms.plan import Plan, Stream
from dsms.planfile import plan_from, read_table
from dsms.schema import Schema
from loadgen.values import Values

ROWS = 65_536  # made at a time


class Rows(NamedTuple):
    """Consecutive rows of a stream: the number of the first, when each is due (from 0), and their columns."""

    stream: str
    first: int
    due: np.ndarray[Any, np.dtype[np.float64]]
    batch: Batch


@dataclass(frozen=True)
class Recipe:
    """All that a load is made of, small enough to be sent to wherever a part of it is made."""

    plan: bytes  # the pickled table of a plan file
    folder: str
    file: str
    streams: tuple[str, ...] = ()  # none: all that have arrivals
    rate: float | None = None  # rows a second, of all streams together; None: as the plan says
    utilisation: float | None = None  # or so much of the CPU budget
    duration: float | None = None  # seconds in which it is to be pushed
    speedup: float = 1.0  # seconds of the load in a second
    since: float = 0.0  # what timestamps in the rows count from, in seconds
    seed: int | None = None

    @classmethod
    def of(cls, path: str | Path, **wanted: Any) -> Recipe:
        """The recipe for a plan file."""
        path = Path(path)
        return cls(pickle.dumps(read_table(path)), str(path.resolve().parent), str(path), **wanted)

    def options(self) -> dict[str, Any]:
        """The same as options of the Spark format `dsms_load`."""
        names = ("rate", "utilisation", "duration", "speedup", "since", "seed")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {"plan": str(Path(self.file).resolve()), "stream": ",".join(self.streams), **given}

    def table(self) -> Mapping[str, Any]:
        """What stands in the plan file."""
        found: Mapping[str, Any] = pickle.loads(self.plan)
        return found


class Source(NamedTuple):
    """One stream of a load."""

    name: str
    schema: Schema
    arrivals: Arrivals
    values: Values


class Load:
    """Rows by stretches of time: the same bits whoever asks for them, in whatever stretches."""

    def __init__(self, recipe: Recipe) -> None:
        plan = plan_from(recipe.table(), folder=Path(recipe.folder), file=recipe.file)
        seed = plan.settings.seed if recipe.seed is None else recipe.seed
        chosen = _chosen(plan, recipe.streams)
        processes = {s.name: s.arrivals((seed + name_hash(s.name)) % 2**63) for s in chosen if s.arrivals is not None}
        factor = _factor(plan, processes, recipe)
        self.sources = [
            Source(s.name, s.schema, processes[s.name].scaled(factor), Values.read(s, seed, Path(recipe.folder)))
            for s in chosen
            if s.schema is not None
        ]
        self.speedup, self._since = recipe.speedup, recipe.since
        ends = [source.arrivals.end for source in self.sources]
        self.end = min(max(ends), math.inf if recipe.duration is None else recipe.duration * recipe.speedup)

    @property
    def rate(self) -> float:
        """Rows a second of all streams together, in the mean, as they are pushed."""
        return sum(source.arrivals.rate for source in self.sources) * self.speedup

    def rows(self, start: float, stop: float) -> Iterator[Rows]:
        """What is due in [start, stop), a stream after the other, some thousand rows at a time."""
        stop = min(stop, self.end)
        for source in self.sources if start < stop else ():
            parts = max(1, math.ceil((stop - start) * source.arrivals.rate / ROWS))
            for begin, end in itertools.pairwise(edges(start, stop, parts)):
                first, due = source.arrivals.numbered(begin, end)
                for at in range(0, len(due), ROWS):  # a burst may have more than its share
                    piece = due[at : at + ROWS]
                    columns = source.values.rows(first + at, piece + self._since)
                    yield Rows(source.name, first + at, piece, Batch.of(columns))

    def due(self, start: float, stop: float) -> int:
        """How many rows are due in [start, stop)."""
        return sum(len(source.arrivals.between(start, min(stop, self.end))) for source in self.sources)


def edges(start: float, stop: float, parts: int) -> list[float]:
    """Where the parts of a stretch of time begin and end: each begins exactly where the one before ends."""
    return [start + (stop - start) * place / parts for place in range(parts)] + [stop]


@lru_cache(maxsize=8)
def load_of(recipe: Recipe) -> Load:
    """The load of a recipe; a process that makes many parts of one keeps what it has found out."""
    return Load(recipe)


def _chosen(plan: Plan, names: Sequence[str]) -> list[Stream]:
    """The streams to generate; those that cannot be are refused."""
    there = {stream.name: stream for stream in plan.streams}
    for name in names:
        if name not in there:
            raise DsmsError(f"no stream {name!r} in {plan.name or 'the plan'}{existing(name, there)}")
    named = dict.fromkeys(names) or [stream.name for stream in plan.streams if stream.arrivals is not None]
    chosen = [there[name] for name in named]
    if not chosen:
        raise PlanError("no stream has `arrivals`, so there is nothing to generate", "streams", plan.name)
    for stream in chosen:
        if stream.arrivals is None:
            raise PlanError("has no `arrivals`: when its rows come is not said", f"streams.{stream.name}", plan.name)
        if stream.schema is None:
            raise PlanError("has no `schema`: rows are generated by it", f"streams.{stream.name}", plan.name)
    return chosen


def _factor(plan: Plan, processes: Mapping[str, Arrivals], recipe: Recipe) -> float:
    """How many times as fast rows come as the plan says."""
    if recipe.rate is not None and recipe.utilisation is not None:
        raise DsmsError("both a rate and a utilisation are given; one of them is wanted")
    rates = {name: process.rate for name, process in processes.items() if process.end > 0}  # some may have no rows
    if not rates:
        raise DsmsError(f"nothing arrives by {', '.join(processes)}, so there is nothing to push")
    if recipe.rate is not None:
        return recipe.rate / sum(rates.values()) / recipe.speedup
    if recipe.utilisation is not None:
        return recipe.utilisation / utilisation(plan, rates, plan.live.budget) / recipe.speedup
    return 1.0
