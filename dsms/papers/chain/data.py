"""The arrivals of the Chain experiments: synthetic flows, a packet trace, or on/off sources instead of the trace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dsms.arrivals.process import Floats
from dsms.papers.experiment import Point, Scale
from dsms.papers.trace_file import digest_file, read_packets

SYNTHETIC, BURSTY, STAND_IN, TRACE = "synthetic", "bursty", "stand-in", "trace"
REAL = {TRACE: "trace", STAND_IN: "stand-in"}  # used where the paper has real data, with their labels

ALPHA = 1.5
FLOW, LARGE_FLOW = 0.2, 1.5  # the share of the CPU that one flow takes, and that in another reading of the paper
SHORTEST = 15  # packets of the shortest flow
SOURCES, SPELL = 10, 100  # number of on/off sources; their mean on and off time, in tuples' processing times

ARRIVALS_TEXT = (
    f"Arrivals: flows begin as a Poisson process and send evenly for a Pareto time (alpha {ALPHA}). A flow alone takes "
    f"{FLOW:.0%} of the CPU, the shortest sends {SHORTEST} packets (the paper's values are lost). The paper's real "
    f"data are an hour of DEC-PKT; here they are the packets of the files given with --trace, several to a tuple so "
    f"that the load is the same. Without a file, {SOURCES} on/off sources with Pareto times (alpha {ALPHA}) are the "
    f"stand-in."
)


def data_sets(scale: Scale) -> list[dict[str, Any]]:
    """The parameters that select the synthetic and the real data set."""
    if not scale.traces:
        return [{"data": SYNTHETIC}, {"data": STAND_IN}]
    paths = list(scale.traces)
    return [{"data": SYNTHETIC}, {"data": TRACE, "paths": paths, "contents": [digest_file(path) for path in paths]}]


def arrivals(point: Point, place: int, streams: int, work: float, load: float, horizon: float) -> dict[str, Any]:
    """The arrivals table of stream number `place`: at `work` per tuple it loads the CPU by `load`."""
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
    return {"kind": "list", "at": _replay(paths[place % len(paths)], place / streams, work / load, horizon).tolist()}


def _replay(path: str, begin: float, mean_gap: float, horizon: float) -> Floats:
    """The instants of a trace's tuples, several packets each, stretched to `mean_gap` on average up to the horizon.

    The trace is replayed as a ring from the share `begin` on, so that streams of one file start at different places.
    """
    packets = instants(path)
    span = float(packets[-1]) * len(packets) / (len(packets) - 1)
    rotated = np.sort((packets - begin * span) % span)
    number = max(1, min(len(packets), math.floor(horizon / mean_gap)))
    last = np.arange(1, number + 1) * len(packets) // number - 1  # the index of each tuple's last packet
    arrivals: Floats = rotated[last] * (number * mean_gap / span)
    return arrivals


def instants(path: str) -> Floats:
    """The timestamps of a trace's packets, counted from the first."""
    packets = read_packets(path)
    since_first: Floats = packets - packets[0]
    return since_first
