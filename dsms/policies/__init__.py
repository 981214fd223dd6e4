"""Lists the built-in policies. To add one, write its file and its test, and add a line here and to dsms/README.md.

Other packages add policies by the entry point `dsms.policies`.
"""

BUILT_IN_POLICIES = {  # by name: the module and the class in it; a policy is imported when it is first used
    "fifo": "dsms.policies.fifo:Fifo",
    "rr": "dsms.policies.round_robin:RoundRobin",
    "rr-query": "dsms.policies.round_robin:RoundRobinByQuery",
    "greedy": "dsms.policies.greedy:Greedy",
    "mtiq": "dsms.policies.mtiq:MostTuplesInQueue",
    "chain": "dsms.policies.chain:Chain",
    "partition-latency": "dsms.policies.partition_latency:PartitionForLatency",
    "partition-memory": "dsms.policies.partition_memory:PartitionForMemory",
    "component": "dsms.policies.component:Component",
    "rb-mcq": "dsms.policies.rate_based:RateBased",
    "fas-mcq": "dsms.policies.freshness:Freshness",
    "fas-gamma": "dsms.policies.freshness_rate:FreshnessAndRate",
    "mss": "dsms.policies.mss:Mss",
    "mss-memory": "dsms.policies.mss:MssMemory",
    "tuple-greedy": "dsms.policies.tuple_greedy:TupleGreedy",
    "qos-chain": "dsms.policies.qos_chain:QosChain",
    "adaptive": "dsms.policies.adaptive.adaptive:Adaptive",
}
