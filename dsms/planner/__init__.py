"""From what queries mean to stations: conditions go down, joins become dataflow expressions, equal parts are shared."""

from dsms.planner.builder import Builder, Standing
from dsms.planner.physical import Physical
from dsms.planner.pushdown import pushed

__all__ = ["Builder", "Physical", "Standing", "pushed"]
