"""The kinds of arrivals a plan may have: from its table to the process."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dsms.arrivals.flows import Pareto, mean_packets
from dsms.arrivals.listed import Constant, Listed
from dsms.arrivals.onoff import OnOff
from dsms.arrivals.poisson import Bursts, Poisson
from dsms.arrivals.process import Arrivals, Clumped, Floats
from dsms.arrivals.replay import Replay, TraceFile
from dsms.arrivals.stretched import Crowd, Piecewise, diurnal, flash
from dsms.arrivals.table import ArrivalTable
from dsms.errors import PlanError


class Kind(NamedTuple):
    """How a table of this kind becomes a process, and the keys it may have."""

    build: Callable[[ArrivalTable, int], Arrivals]
    keys: str


def _listed(columns: dict[str, Floats], table: ArrivalTable) -> Arrivals:
    return Listed(columns.pop("at"), columns, table.number("until", math.inf))


def _bursts(table: ArrivalTable, seed: int) -> Arrivals:
    return Bursts(table.rate(), table.whole("group", 10, least=1), seed)


def _pareto(table: ArrivalTable, seed: int) -> Arrivals:
    packets, shortest = (table.number(key, above=0) for key in ("packets", "shortest"))
    alpha = table.number("alpha", 1.5, above=1)
    if table.one_of("flows", "utilisation", needed=False) == "utilisation":
        flows = table.rate() / mean_packets(shortest * packets, alpha)
    else:
        flows = table.number("flows", above=0)
    return Pareto(flows, packets, alpha, shortest, seed)


def _piecewise(table: ArrivalTable, seed: int) -> Arrivals:
    shuffled = table.text("order", "cycle", among=("cycle", "random")) == "random"
    rates = table.rates("rates")
    if "utilisation" in table.entries:  # then they say only how they compare
        rates = rates * (table.rate() / float(np.mean(rates)))
    return Piecewise(rates, table.number("every", 5.0, above=0), shuffled, seed)


def _onoff(table: ArrivalTable, seed: int) -> Arrivals:
    on, off = (table.number(key, 1.0, above=0) for key in ("on", "off"))
    alpha = table.number("alpha", 1.5, above=1, below=2)
    return OnOff(table.rate(), table.whole("sources", 50, least=1), alpha, on, off, seed)


def _diurnal(table: ArrivalTable, seed: int) -> Arrivals:
    amplitude, period = table.share("amplitude", 0.5), table.number("period", above=0)
    return diurnal(table.rate(), amplitude, period, table.number("phase", 0.0), seed)


def _flash(table: ArrivalTable, seed: int) -> Arrivals:
    crowd = Crowd(table.number("rise", 0.0, least=0), table.number("decay", above=0))
    peak, at = table.number("peak", above=1), table.number("at", least=0)
    every = table.number("every", math.inf, above=crowd.rise)
    if "utilisation" in table.entries:  # of all that comes, not of the rate without crowds
        return flash(table.rate() / flash(1.0, peak, at, crowd, every, seed).rate, peak, at, crowd, every, seed)
    return flash(table.rate(), peak, at, crowd, every, seed)


def _replay(table: ArrivalTable, seed: int) -> Arrivals:
    trace, loop = TraceFile.at(table.text("path"), table.folder), table.flag("loop")
    at = trace.instants(table.text("column", "at"))
    speed = table.one_of("speedup", "rate", "utilisation", needed=False)
    if (loop or speed in ("rate", "utilisation")) and not at[-1]:
        raise PlanError(f"{trace.path!r} has a single instant: no rate, and no length to begin again after", "path")
    if speed == "speedup":
        at = at / table.number("speedup", above=0)
    elif speed is not None:
        at = at * (Replay(trace, at, loop).rate / table.rate())
    return Replay(trace, at, loop)


KINDS = {
    "list": Kind(lambda table, seed: _listed(table.listed(), table), "at cost size until"),
    "file": Kind(lambda table, seed: _listed(table.traced(), table), "path column until"),
    "push": Kind(lambda table, seed: Listed(np.empty(0), {}), ""),
    "constant": Kind(lambda table, seed: Constant(table.interval()), "rate utilisation every start count until clump"),
    "poisson": Kind(lambda table, seed: Poisson(table.rate(), seed), "rate utilisation seed start count until clump"),
    "bursts": Kind(_bursts, "rate utilisation group seed start count until clump"),
    "pareto": Kind(_pareto, "flows utilisation packets alpha shortest seed start count until clump"),
    "onoff": Kind(_onoff, "rate utilisation sources alpha on off seed start count until clump"),
    "piecewise": Kind(_piecewise, "rates utilisation every order seed start count until clump"),
    "diurnal": Kind(_diurnal, "rate utilisation amplitude period phase seed start count until clump"),
    "flash": Kind(_flash, "rate utilisation at peak rise decay every seed start count until clump"),
    "trace": Kind(_replay, "path column speedup rate utilisation loop start count until clump"),
}


def arrivals_from(
    table: Mapping[str, object], *, seed: int, folder: Path = Path(), work: float | None = None
) -> Arrivals:
    """The process that a plan's `{kind = …}` table describes; its own `seed`, if any, goes before the one given.

    `work` is what one tuple takes of the CPU: a `utilisation` is turned into a rate by it.
    """
    read = ArrivalTable(table, folder, work)
    kind = KINDS[read.kind(KINDS)]
    read.refuse_unknown(["kind", *kind.keys.split()])
    process = kind.build(read, read.whole("seed", seed))
    count = read.whole("count", sys.maxsize, least=1)
    start = read.number("start", 0.0)
    if start < 0:
        raise PlanError(f"{start!r} given; time begins at 0", "start")
    process = process.limited(start, count, read.number("until", math.inf))
    return Clumped(process, read.number("clump", above=0)) if "clump" in table else process
