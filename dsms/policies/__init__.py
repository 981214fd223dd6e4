"""Every policy there is: adding one is its file, its test and a line here; third parties add theirs by entry point."""

from dsms.policies.base import Policy
from dsms.policies.fifo import Fifo
from dsms.policies.greedy import Greedy
from dsms.policies.mtiq import MostTuplesInQueue
from dsms.policies.round_robin import RoundRobin, RoundRobinByQuery

POLICIES: tuple[type[Policy], ...] = (
    Fifo,
    RoundRobin,
    RoundRobinByQuery,
    Greedy,
    MostTuplesInQueue,
)

__all__ = ["POLICIES", "Policy"]
