"""Arrival processes: when tuples arrive, for the simulator and the load generator alike."""

from dsms.arrivals.fixed import ListedArrivals
from dsms.arrivals.process import Arrivals, BatchedArrivals, Floats, block_generator
from dsms.arrivals.registry import ARRIVAL_KINDS, arrivals_from
from dsms.arrivals.trace_replay import ArrivalTraceFile, ReplayedArrivals

__all__ = [
    "ARRIVAL_KINDS",
    "ArrivalTraceFile",
    "Arrivals",
    "BatchedArrivals",
    "Floats",
    "ListedArrivals",
    "ReplayedArrivals",
    "arrivals_from",
    "block_generator",
]
