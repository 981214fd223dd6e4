"""Dataflow expressions after Getta and Vossough: how each item of a stream passes the joins of a query.

`expression` is a logical query, `operation` one step of an item, `join_orders` lists the orders of steps for a query,
and `cost` finds the best. The other files serve `dsms explain --dataflow` and the papers, no engine uses them:
`conflicts` and `scheduling_graph` decide which operations of concurrent items may run now; `simulated_execution`
simulates any interleaving of them against each `simulated_window`.
"""

from dsms.dataflow.conflicts import Matrix, conflict_matrix, conflicting_pairs, has_conflict, number_operations
from dsms.dataflow.cost import (
    Cost,
    Estimate,
    Mode,
    WindowTradeoff,
    best_order,
    best_plan,
    dataflow_time,
    operation_start_times,
    total_time,
    work_rate,
)
from dsms.dataflow.expression import (
    RESULT_WINDOW,
    DifferenceTerm,
    Expression,
    JoinTerm,
    StreamTerm,
    input_streams,
    intermediate_names,
    subexpressions,
)
from dsms.dataflow.join_orders import Plan, enumerate_orders, enumerate_plans, translate
from dsms.dataflow.operation import Dataflow, Operation
from dsms.dataflow.scheduling_graph import Edge, Node, SchedulingGraph, count_dashed_edges
from dsms.dataflow.simulated_execution import (
    DataflowExecution,
    DataflowRun,
    Order,
    StreamItem,
    is_equal_every,
    is_order_invariant,
    is_order_preserving,
    is_weakly_order_preserving,
)
from dsms.dataflow.simulated_window import Contents, Row

__all__ = [
    "RESULT_WINDOW",
    "Contents",
    "Cost",
    "Dataflow",
    "DataflowExecution",
    "DataflowRun",
    "DifferenceTerm",
    "Edge",
    "Estimate",
    "Expression",
    "JoinTerm",
    "Matrix",
    "Mode",
    "Node",
    "Operation",
    "Order",
    "Plan",
    "Row",
    "SchedulingGraph",
    "StreamItem",
    "StreamTerm",
    "WindowTradeoff",
    "best_order",
    "best_plan",
    "conflict_matrix",
    "conflicting_pairs",
    "count_dashed_edges",
    "dataflow_time",
    "enumerate_orders",
    "enumerate_plans",
    "has_conflict",
    "input_streams",
    "intermediate_names",
    "is_equal_every",
    "is_order_invariant",
    "is_order_preserving",
    "is_weakly_order_preserving",
    "number_operations",
    "operation_start_times",
    "subexpressions",
    "total_time",
    "translate",
    "work_rate",
]
