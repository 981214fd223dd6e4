"""The multiway join: joins and differences of windows, run as dataflow expressions over whole columns.

`multijoin` is the operator. `state/` holds the rows of windows and finds them by key, `probe_chain` passes items
through the operations, `adaptive_plan` finds better orders of operations at run time.
"""

from dsms.operators.joins.eager import explain_order_requirement
from dsms.operators.joins.inputs import JoinInput
from dsms.operators.joins.multijoin import MultiJoin

__all__ = ["JoinInput", "MultiJoin", "explain_order_requirement"]
