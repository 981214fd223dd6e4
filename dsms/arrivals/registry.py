"""Makes an arrival process from a plan's `{kind = …}` table."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dsms.arrivals.fixed import ConstantRate, ListedArrivals
from dsms.arrivals.on_off import OnOff
from dsms.arrivals.pareto_flows import ParetoFlows, mean_packets
from dsms.arrivals.poisson import Bursts, Poisson
from dsms.arrivals.process import Arrivals, BatchedArrivals, Floats
from dsms.arrivals.table import ArrivalTable
from dsms.arrivals.trace_replay import ArrivalTraceFile, ReplayedArrivals
from dsms.arrivals.varying_rate import FlashCrowd, PiecewiseRate, diurnal_arrivals, flash_crowd_arrivals
from dsms.errors import PlanError


class ArrivalKind(NamedTuple):
    """A kind of arrivals: its keys and the function that makes the process."""

    build: Callable[[ArrivalTable, int], Arrivals]
    keys: str


def _listed(columns: dict[str, Floats], table: ArrivalTable) -> Arrivals:
    return ListedArrivals(columns.pop("at"), columns, table.number("until", math.inf))


def _bursts(table: ArrivalTable, seed: int) -> Arrivals:
    return Bursts(table.rate(), table.whole("group", 10, least=1), seed)


def _pareto(table: ArrivalTable, seed: int) -> Arrivals:
    packets, shortest = (table.number(key, above=0) for key in ("packets", "shortest"))
    alpha = table.number("alpha", 1.5, above=1)
    if table.one_of("flows", "utilisation", needed=False) == "utilisation":
        flows = table.rate() / mean_packets(shortest * packets, alpha)
    else:
        flows = table.number("flows", above=0)
    return ParetoFlows(flows, packets, alpha, shortest, seed)


def _piecewise(table: ArrivalTable, seed: int) -> Arrivals:
    shuffled = table.text("order", "cycle", among=("cycle", "random")) == "random"
    rates = table.rates("rates")
    if "utilisation" in table.entries:  # then the rates are only relative
        rates = rates * (table.rate() / float(np.mean(rates)))
    return PiecewiseRate(rates, table.number("every", 5.0, above=0), shuffled, seed)


def _onoff(table: ArrivalTable, seed: int) -> Arrivals:
    on, off = (table.number(key, 1.0, above=0) for key in ("on", "off"))
    alpha = table.number("alpha", 1.5, above=1, below=2)
    return OnOff(table.rate(), table.whole("sources", 50, least=1), alpha, on, off, seed)


def _diurnal(table: ArrivalTable, seed: int) -> Arrivals:
    amplitude, period = table.share("amplitude", 0.5), table.number("period", above=0)
    return diurnal_arrivals(table.rate(), amplitude, period, table.number("phase", 0.0), seed)


def _flash(table: ArrivalTable, seed: int) -> Arrivals:
    crowd = FlashCrowd(table.number("rise", 0.0, least=0), table.number("decay", above=0))
    peak, at = table.number("peak", above=1), table.number("at", least=0)
    every = table.number("every", math.inf, above=crowd.rise)
    if "utilisation" in table.entries:  # of the mean rate, crowds included
        return flash_crowd_arrivals(
            table.rate() / flash_crowd_arrivals(1.0, peak, at, crowd, every, seed).rate, peak, at, crowd, every, seed
        )
    return flash_crowd_arrivals(table.rate(), peak, at, crowd, every, seed)


def _replay(table: ArrivalTable, seed: int) -> Arrivals:
    trace, loop = ArrivalTraceFile.at(table.text("path"), table.folder), table.flag("loop")
    at = trace.instants(table.text("column", "at"))
    speed = table.one_of("speedup", "rate", "utilisation", needed=False)
    if (loop or speed in ("rate", "utilisation")) and not at[-1]:
        raise PlanError(f"{trace.path!r} has a single instant: a rate and `loop` need two or more", "path")
    if speed == "speedup":
        at = at / table.number("speedup", above=0)
    elif speed is not None:
        at = at * (ReplayedArrivals(trace, at, loop).rate / table.rate())
    return ReplayedArrivals(trace, at, loop)


ARRIVAL_KINDS = {
    "list": ArrivalKind(lambda table, seed: _listed(table.listed(), table), "at cost size until"),
    "file": ArrivalKind(lambda table, seed: _listed(table.read_trace_columns(), table), "path column until"),
    "push": ArrivalKind(lambda table, seed: ListedArrivals(np.empty(0), {}), ""),
    "constant": ArrivalKind(
        lambda table, seed: ConstantRate(table.interval()), "rate utilisation every start count until clump"
    ),
    "poisson": ArrivalKind(
        lambda table, seed: Poisson(table.rate(), seed), "rate utilisation seed start count until clump"
    ),
    "bursts": ArrivalKind(_bursts, "rate utilisation group seed start count until clump"),
    "pareto": ArrivalKind(_pareto, "flows utilisation packets alpha shortest seed start count until clump"),
    "onoff": ArrivalKind(_onoff, "rate utilisation sources alpha on off seed start count until clump"),
    "piecewise": ArrivalKind(_piecewise, "rates utilisation every order seed start count until clump"),
    "diurnal": ArrivalKind(_diurnal, "rate utilisation amplitude period phase seed start count until clump"),
    "flash": ArrivalKind(_flash, "rate utilisation at peak rise decay every seed start count until clump"),
    "trace": ArrivalKind(_replay, "path column speedup rate utilisation loop start count until clump"),
}


def arrivals_from(
    table: Mapping[str, object], *, seed: int, folder: Path = Path(), work: float | None = None
) -> Arrivals:
    """Return the process that a plan's `{kind = …}` table describes; a `seed` in it overrides the run's.

    `work` is what one tuple takes of the CPU: a `utilisation` is turned into a rate by it.
    """
    read = ArrivalTable(table, folder, work)
    kind = ARRIVAL_KINDS[read.kind(ARRIVAL_KINDS)]
    read.refuse_unknown(["kind", *kind.keys.split()])
    process = kind.build(read, read.whole("seed", seed))
    count = read.whole("count", sys.maxsize, least=1)
    start = read.number("start", 0.0)
    if start < 0:
        raise PlanError(f"{start!r} given; time begins at 0", "start")
    process = process.limited(start, count, read.number("until", math.inf))
    return BatchedArrivals(process, read.number("clump", above=0)) if "clump" in table else process
