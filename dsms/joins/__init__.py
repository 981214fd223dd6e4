"""Joins and differences of windows, carried out as dataflow expressions over whole columns.

`sides` are what an operation may look into, `index` finds the rows with a key in one, `chain` takes items through
their operations, `multijoin` is the operator around it; `adapt` finds better orders while it runs.
"""

from dsms.joins.ahead import why_in_order
from dsms.joins.inputs import Input
from dsms.joins.multijoin import MultiJoin

__all__ = ["Input", "MultiJoin", "why_in_order"]
