"""What arrives: synthetic flows, a packet trace that the user has, or what stands in for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dsms.arrivals.process import Floats
from dsms.papers.experiment import Point, Scale
from dsms.papers.trace_file import digest, packets

SYNTHETIC, BURSTY, STAND_IN, TRACE = "synthetic", "bursty", "stand-in", "trace"
REAL = {TRACE: "trace", STAND_IN: "stand-in"}  # where the paper has real data

ALPHA = 1.5
FLOW, LARGE_FLOW = 0.2, 1.5  # of the CPU is what one flow alone would take; in another reading of what is lost
SHORTEST = 15  # packets that the shortest flow sends
SOURCES, SPELL = 10, 100  # on/off sources, and for how many tuples' work they are on, and off, on average

SAID = (
    f"Arrivals: flows begin as a Poisson process and send evenly for a Pareto time (alpha {ALPHA}; a flow alone takes "
    f"{FLOW:.0%} of the CPU, the shortest sends {SHORTEST} packets; the paper's values are lost). The paper's real "
    f"data are an hour of DEC-PKT: the packets of the files given with --trace, so many to a tuple that the load is "
    f"the same; without a file {SOURCES} on/off sources with Pareto times (alpha {ALPHA}) stand in for it."
)


def kinds(scale: Scale) -> list[dict[str, Any]]:
    """The parameters of both data sets."""
    if not scale.traces:
        return [{"data": SYNTHETIC}, {"data": STAND_IN}]
    paths = list(scale.traces)
    return [{"data": SYNTHETIC}, {"data": TRACE, "paths": paths, "contents": [digest(path) for path in paths]}]


def arrivals(point: Point, place: int, streams: int, work: float, load: float, horizon: float) -> dict[str, Any]:
    """The arrivals of one of several streams: it takes this share of the CPU by this work for each tuple."""
    until = {"utilisation": load, "seed": 100 * point["seed"] + place, "until": horizon}
    if point["data"] in (SYNTHETIC, BURSTY):
        packets = (FLOW if point["data"] == SYNTHETIC else LARGE_FLOW) / work
        return {"kind": "pareto", "packets": packets, "shortest": SHORTEST / packets, "alpha": ALPHA, **until}
    if point["data"] == STAND_IN:
        spell = SPELL * work
        return {"kind": "onoff", "sources": SOURCES, "alpha": ALPHA, "on": spell, "off": spell, **until}
    if point["data"] == "uniform":
        return {"kind": "constant", "utilisation": point["load"] / streams, "until": horizon}
    paths = point["paths"]
    return {"kind": "list", "at": _units(paths[place % len(paths)], place / streams, work / load, horizon).tolist()}


def _units(path: str, begin: float, every: float, horizon: float) -> Floats:
    """A trace as tuples of several packets, one `every` so long on average up to the horizon; from `begin` on, round.

    Streams that read the same file begin at different places of it.
    """
    found = instants(path)
    span = float(found[-1]) * len(found) / (len(found) - 1)
    turned = np.sort((found - begin * span) % span)
    number = max(1, min(len(found), math.floor(horizon / every)))
    last = np.arange(1, number + 1) * len(found) // number - 1  # of each tuple's packets
    units: Floats = turned[last] * (number * every / span)
    return units


def instants(path: str) -> Floats:
    """The packets of a trace, from 0 on."""
    found = packets(path)
    since: Floats = found - found[0]
    return since
