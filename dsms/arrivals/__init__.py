"""When tuples arrive: the arrival processes, one set for simulator and load."""

from dsms.arrivals.kinds import KINDS, arrivals_from
from dsms.arrivals.listed import Listed
from dsms.arrivals.process import Arrivals, Clumped, Floats, draw
from dsms.arrivals.replay import Replay, TraceFile

__all__ = ["KINDS", "Arrivals", "Clumped", "Floats", "Listed", "Replay", "TraceFile", "arrivals_from", "draw"]
