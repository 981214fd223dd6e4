"""Estimate: a station's cost, selectivity and input rates as a policy sees them, declared or measured."""

from __future__ import annotations

from dsms.plan.station import Station


class Estimate:
    """One station's figures; statistics update them while the plan runs."""

    __slots__ = ("cost", "inflows", "is_assumed", "marginal_cost", "selectivity")

    def __init__(self, cost: float, selectivity: float, marginal_cost: float, is_assumed: bool = False) -> None:
        self.cost = cost  # time per input tuple, including its share of the start-up cost
        self.marginal_cost = marginal_cost  # time for one more tuple in the same run
        self.selectivity = selectivity  # output tuples per input tuple
        self.is_assumed = is_assumed  # True until the figures are declared or measured
        self.inflows: tuple[float, ...] = ()  # tuples per unit of time into each input


def declared_estimate(station: Station) -> Estimate:
    """Return the figures that the plan declares, the start-up cost spread over the tuples of a run."""
    operator = station.operator
    cost = operator.cost + operator.startup / (operator.take or 1)
    return Estimate(cost, operator.selectivity, operator.cost, not operator.has_declared_cost)
