"""Queries over streams item by item, after Getta and Vossough: pure functions, no engine.

`expression` says what a query means, `operation` what is done with an item, `translate` gets from the one to the other
in every order, `cost` finds the best; `conflicts` and `graph` say which operations of which items may run now.
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
from dsms.dataflow.expression import RESULT, Difference, Expression, Join, Stream, inputs, intermediates
from dsms.dataflow.graph import Edge, Node, SchedulingGraph
from dsms.dataflow.operation import Dataflow, Operation
from dsms.dataflow.translate import Plan, orders, plans, translate

__all__ = [
    "RESULT",
    "Cost",
    "Dataflow",
    "Detour",
    "Difference",
    "Edge",
    "Estimate",
    "Expression",
    "Join",
    "Matrix",
    "Mode",
    "Node",
    "Operation",
    "Plan",
    "SchedulingGraph",
    "Stream",
    "best_order",
    "best_plan",
    "conflict",
    "conflict_matrix",
    "delays",
    "duration",
    "duration_of",
    "inputs",
    "intermediates",
    "numbered",
    "orders",
    "pairs",
    "plans",
    "translate",
    "work_rate",
]
