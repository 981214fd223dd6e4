"""Plans queries: pushes conditions down, turns joins into dataflow expressions, and builds shared stations."""

from dsms.query.planner.builder import ExistingQueries, PlanBuilder
from dsms.query.planner.physical import PhysicalPlanner
from dsms.query.planner.pushdown import push_down_conditions

__all__ = ["ExistingQueries", "PhysicalPlanner", "PlanBuilder", "push_down_conditions"]
