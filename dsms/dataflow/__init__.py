"""Queries over streams item by item, after Getta and Vossough: pure functions, no engine.

`expression` says what a query means, `operation` what is done with an item, `translate` gets from the one to the other
in every order, `cost` finds the best; `conflicts` and `graph` say which operations of which items may run now, and
`execution` runs them in any interleaving against each `window`.
"""

from dsms.dataflow.conflicts import Matrix, conflict, conflict_matrix, numbered, pairs
from dsms.dataflow.cost import (
    Cost,
    Detour,
    Estimate,
    Mode,
    best_order,
    best_plan,
    delays,
    duration,
    duration_of,
    work_rate,
)
from dsms.dataflow.execution import (
    Execution,
    Item,
    Order,
    Run,
    agrees_every,
    is_order_invariant,
    is_order_preserving,
    is_weakly_order_preserving,
)
from dsms.dataflow.expression import RESULT, Difference, Expression, Join, Stream, inputs, intermediates, parts
from dsms.dataflow.graph import Edge, Node, SchedulingGraph, edges
from dsms.dataflow.operation import Dataflow, Operation
from dsms.dataflow.translate import Plan, orders, plans, translate
from dsms.dataflow.window import Contents, Row

__all__ = [
    "RESULT",
    "Contents",
    "Cost",
    "Dataflow",
    "Detour",
    "Difference",
    "Edge",
    "Estimate",
    "Execution",
    "Expression",
    "Item",
    "Join",
    "Matrix",
    "Mode",
    "Node",
    "Operation",
    "Order",
    "Plan",
    "Row",
    "Run",
    "SchedulingGraph",
    "Stream",
    "agrees_every",
    "best_order",
    "best_plan",
    "conflict",
    "conflict_matrix",
    "delays",
    "duration",
    "duration_of",
    "edges",
    "inputs",
    "intermediates",
    "is_order_invariant",
    "is_order_preserving",
    "is_weakly_order_preserving",
    "numbered",
    "orders",
    "pairs",
    "parts",
    "plans",
    "translate",
    "work_rate",
]
