"""Simulates the demonstration's load: the same arrivals, with the costs and selectivities that the plan declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dsms.live.monitor.status import PhaseStatus
from dsms.query.plan_file import plan_from
from dsms.simulation import simulate

if TYPE_CHECKING:
    from actors.rpc.messages import PlanTable

STREAM_KEYS, OPERATOR_KEYS = ("arrivals",), ("name", "cost", "selectivity", "inputs")


def predict_phase(table: PlanTable, policy: str, length: float) -> PhaseStatus:
    """Predict the figures of a phase in which a policy gets so much time of the load."""
    run = simulate(plan_from(make_abstract(table)), policy, until=length)
    return PhaseStatus(
        policy=policy,
        since=0.0,
        until=run.elapsed,
        turns=run.turns,
        memory_mean=run.memory.tuples.mean,
        memory_max=run.memory.tuples.max,
        results=int(run.outputs),
        latency_mean=run.latency.mean,
        latency_p99=run.latency.p99,
        staleness=run.staleness.mean,
    )


def make_abstract(table: PlanTable) -> PlanTable:
    """Return the plan with abstract tuples in place of rows, and without the functions of its operators."""
    streams = {name: _select(stream, STREAM_KEYS) for name, stream in table["streams"].items()}
    queries = {
        name: {**query, "operators": [_select(operator, OPERATOR_KEYS) for operator in query["operators"]]}
        for name, query in table["queries"].items()
    }
    return {**table, "streams": streams, "queries": queries}


def _select(table: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    return {key: table[key] for key in keys if key in table}
