"""Lists the built-in policies. To add one, write its file and its test, and add a line here.

Other packages add policies by the entry point `dsms.policies`.
"""

from dsms.engine.policy import Policy
from dsms.policies.adaptive.adaptive import Adaptive
from dsms.policies.chain import Chain
from dsms.policies.component import Component
from dsms.policies.fifo import Fifo
from dsms.policies.freshness import Freshness
from dsms.policies.freshness_rate import FreshnessAndRate
from dsms.policies.greedy import Greedy
from dsms.policies.mss import Mss, MssMemory
from dsms.policies.mtiq import MostTuplesInQueue
from dsms.policies.partition_latency import PartitionForLatency
from dsms.policies.partition_memory import PartitionForMemory
from dsms.policies.qos_chain import QosChain
from dsms.policies.rate_based import RateBased
from dsms.policies.registry import BUILT_IN
from dsms.policies.round_robin import RoundRobin, RoundRobinByQuery
from dsms.policies.tuple_greedy import TupleGreedy

POLICIES: tuple[type[Policy], ...] = (
    Fifo,
    RoundRobin,
    RoundRobinByQuery,
    Greedy,
    MostTuplesInQueue,
    Chain,
    PartitionForLatency,
    PartitionForMemory,
    Component,
    RateBased,
    Freshness,
    FreshnessAndRate,
    Mss,
    MssMemory,
    TupleGreedy,
    QosChain,
    Adaptive,
)

BUILT_IN.update({policy.name: policy for policy in POLICIES})

__all__ = ["POLICIES", "Policy"]
