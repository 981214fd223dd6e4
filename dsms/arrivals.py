"""When tuples arrive: the arrival processes, one set for simulator and load."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dsms.arrival_processes import Arrivals, Bursts, Constant, Listed, Pareto, Piecewise, Poisson
from dsms.arrival_table import ArrivalTable, Floats
from dsms.errors import PlanError, existing

__all__ = ["KINDS", "Arrivals", "arrivals_from"]


class Kind(NamedTuple):
    """How a table of this kind becomes a process, and the keys it may have."""

    build: Callable[[ArrivalTable, int], Arrivals]
    keys: str


def _listed(columns: dict[str, Floats], table: ArrivalTable) -> Arrivals:
    return Listed(columns.pop("at"), columns, table.number("until", math.inf))


def _bursts(table: ArrivalTable, seed: int) -> Arrivals:
    return Bursts(table.rate(), table.whole("group", 10, least=1), seed)


def _pareto(table: ArrivalTable, seed: int) -> Arrivals:
    flows, packets, shortest = (table.number(key, above=0) for key in ("flows", "packets", "shortest"))
    return Pareto(flows, packets, table.number("alpha", 1.5, above=1), shortest, seed)


def _piecewise(table: ArrivalTable, seed: int) -> Arrivals:
    shuffled = table.text("order", "cycle", among=("cycle", "random")) == "random"
    return Piecewise(table.rates("rates"), table.number("every", 5.0, above=0), shuffled, seed)


KINDS = {
    "list": Kind(lambda table, seed: _listed(table.listed(), table), "at cost size until"),
    "file": Kind(lambda table, seed: _listed(table.traced(), table), "path column until"),
    "push": Kind(lambda table, seed: Listed(np.empty(0), {}), ""),
    "constant": Kind(lambda table, seed: Constant(table.interval()), "rate every start count until"),
    "poisson": Kind(lambda table, seed: Poisson(table.rate(), seed), "rate seed start count until"),
    "bursts": Kind(_bursts, "rate group seed start count until"),
    "pareto": Kind(_pareto, "flows packets alpha shortest seed start count until"),
    "piecewise": Kind(_piecewise, "rates every order seed start count until"),
}


def arrivals_from(table: Mapping[str, object], *, seed: int, folder: Path = Path()) -> Arrivals:
    """The process that a plan's `{kind = …}` table describes; its own `seed`, if any, goes before the one given."""
    name = table.get("kind")
    if not isinstance(name, str) or name not in KINDS:
        said = f"{name!r} is no kind of arrivals" if "kind" in table else "missing; a kind of arrivals wanted"
        raise PlanError(f"{said}{existing(str(name), KINDS)}", "kind")
    kind, read = KINDS[name], ArrivalTable(table, folder)
    read.refuse_unknown(["kind", *kind.keys.split()])
    process = kind.build(read, read.whole("seed", seed))
    count = read.whole("count", sys.maxsize, least=1)
    start = read.number("start", 0.0)
    if start < 0:
        raise PlanError(f"{start!r} given; time begins at 0", "start")
    return process.limited(start, count, read.number("until", math.inf))
