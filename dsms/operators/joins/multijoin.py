"""The multiway join operator: keeps the results of joins and differences over any number of windows up to date."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.dead_letter import DeadLetter
from dsms.dataflow import (
    Estimate,
    Expression,
    Mode,
    Operation,
    Plan,
    StreamTerm,
    enumerate_orders,
    intermediate_names,
    subexpressions,
)
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator
from dsms.operators.instant_barrier import MIN_TIMESTAMP, CompletePieces, CompleteRows, InstantBarrier
from dsms.operators.joins.adaptive_plan import CostEstimator, PlanChooser
from dsms.operators.joins.eager import EagerBarrier, check_eager
from dsms.operators.joins.inputs import JoinInput, create_input_states, is_join_only, output_streams
from dsms.operators.joins.output import Emit, concat_items, empty_columns, gather_columns, merge_items
from dsms.operators.joins.probe_chain import JoinItems, WindowProber
from dsms.operators.joins.state.event_order import first_order_at, signs_of, timestamps_of
from dsms.operators.joins.state.intermediate_results import IntermediateState
from dsms.operators.joins.state.key_codes import Ints
from dsms.operators.joins.state.relation_input import RetractableState
from dsms.operators.joins.state.window_state import FifoWindowState

MIN_REPLAN_STREAMS = 3  # with fewer streams there is only one plan
MAX_SEPARATE_PIECES = 2  # more pieces are joined before they are recorded: one copy is cheaper than many calls
REPLAN_INTERVAL_CALLS = 32  # between two decisions on the plan


@dataclass(eq=False)
class MultiJoin(Operator):
    """Keeps the results of an expression over windows up to date, item by item as Getta and Vossough describe.

    It has one port for each input that is not stored. It first records all rows whose instants are complete. Then it
    passes each row through its stream's operations, which see every window as of that row's position in the order.
    """

    cost: float = DEFAULT_ROW_COST_S
    inputs: tuple[JoinInput, ...] = ()
    expression: Expression = field(default_factory=lambda: StreamTerm("none", ("*",)))
    columns: tuple[str, ...] = ()  # of the results, as alias.column
    emit: Emit = "both"  # inserted results, deleted results, or both
    keep: tuple[str, ...] | None = None  # the intermediate results that get a window; None: the planner decides
    mode: Mode = "block"  # the cost model that ranks the orders of operations
    eager_rows: float = 0  # rows processed before their instant is complete; 0: results stay in order; inf: no waiting
    plan: Plan = field(default=(), init=False)
    changes: list[str] = field(default_factory=list, init=False)  # of the plan so far, with the savings
    _results: dict[str, IntermediateState] = field(default_factory=dict, init=False, repr=False)
    is_time_driven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._begin()

    def fresh(self, settings: Settings) -> MultiJoin:
        fresh = copy.copy(self)
        fresh.dead_letters = []
        fresh._begin()
        return fresh

    @property
    def held(self) -> int:
        """The number of rows it holds: in windows, in intermediate results, and waiting."""
        inputs = sum(len(side.rows) for side in self._windows.inputs.values())
        waiting = len(self._pending) + (len(self._eager_barrier) if self._eager_barrier is not None else 0)
        return waiting + inputs + sum(len(side.rows) for side in self._results.values())

    @property
    def ports(self) -> list[str]:
        """The alias of each port's input."""
        return [part.alias for part in self.inputs if part.rows is None]

    def first(self) -> Plan:
        """Return the initial plan: the operations in the order of the query."""
        return self._plan_chooser.first()

    def estimate(self) -> Estimate:
        """Return the cost of its operations as measured so far."""
        return self._cost_estimator.estimate()

    def deadline(self) -> int | None:
        if not self._needs_deletions:
            return None
        due = [side.deadline() for side in self._ports if isinstance(side, FifoWindowState)]
        return min((ts for ts in due if ts is not None), default=None)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if self._eager_barrier is not None:
            return self._process_eagerly(self._eager_barrier, batch, port)
        complete = self._pending.pieces(batch, port)
        if not self._needs_deletions and not any(complete.pieces):
            return self._empty(batch, complete)
        before = first_order_at(complete.watermark)
        for number, pieces in enumerate(complete.pieces):
            if pieces:
                self._record(number, pieces)
        inserted = {side.layout.alias: JoinItems.of(side.layout.alias, side.insertions()) for side in self._ports}
        deleted = self._expired_items(before, _latest_arrival(batch)) if self._needs_deletions else {}
        if self._results:  # in one pass: insertions and deletions read each other's intermediate results
            return self._finish(
                self._run_dataflows(
                    {s: concat_items([inserted[s], deleted[s]]) for s in inserted} if deleted else inserted
                ),
                batch,
                complete,
            )
        if self.emit == "deletions" and self._pure:
            inserted = {}
        return self._finish(self._run_dataflows(inserted) + self._run_dataflows(deleted), batch, complete)

    @property
    def is_synchronised(self) -> bool:
        """Whether the output so far equals that of a join that is not eager."""
        return self._eager_barrier is None or self._eager_barrier.is_synchronised

    def _process_eagerly(self, barrier: EagerBarrier, batch: Batch, port: int) -> Batch:
        """Process the ports one after the other, each row against all rows before it; deletions stay in order."""
        eager = barrier.add(batch, port)
        results: list[JoinItems] = []
        for number, rows in eager.rows:
            self._record(number, [rows])
            side = self._ports[number]
            items = JoinItems.of(side.layout.alias, side.insertions())
            until = side.lifetimes(items.positions[side.layout.alias])[1]
            results += self._run_dataflows({side.layout.alias: replace(items, until=until)})
        if self._needs_deletions:
            results += self._run_dataflows(
                self._expired_items(first_order_at(eager.complete.watermark), _latest_arrival(batch))
            )
        return self._finish(results, batch, eager.complete)

    def _finish(self, results: Sequence[JoinItems], batch: Batch, complete: CompleteRows | CompletePieces) -> Batch:
        output = self._output(results, batch, complete)
        self._before = first_order_at(complete.watermark)
        self._release(self._before)
        self._replan(complete.watermark)
        return output

    def _begin(self) -> None:
        check_eager(self.eager_rows, self.inputs, self.expression, self.keep)
        inputs = create_input_states(self.inputs, self.expression, self.columns)
        self._windows = WindowProber(inputs)
        self._ports = [side for side in inputs.values() if isinstance(side, FifoWindowState | RetractableState)]
        self._pending = InstantBarrier(len(self._ports))
        self._eager_barrier = EagerBarrier(len(self._ports), self.eager_rows) if self.eager_rows else None
        self._pure = is_join_only(self.expression)
        self._needs_deletions = self.emit != "insertions" or not self._pure
        self._empty_columns = empty_columns(inputs, self.columns)
        self._cost_estimator = CostEstimator(self.expression, inputs)
        self._plan_chooser = PlanChooser(self.expression, () if self.eager_rows else self.keep, self.mode)
        self._calls = 0
        self._before = first_order_at(MIN_TIMESTAMP)
        self._results = {}
        self.changes = []
        self.migrate(self._plan_chooser.first())

    def migrate(self, plan: Plan) -> None:
        """Switch to another plan: fill its new intermediate windows, and drop the windows it does not use."""
        self.plan = plan
        for window in self._results:
            del self._windows.sides[window]
        for side in self._windows.inputs.values():
            side.forget()
        self._results = self._create_intermediate_windows(plan, self._before)

    def _replan(self, watermark: int) -> None:
        """Every `REPLAN_INTERVAL_CALLS` calls, switch to a better plan if there is one."""
        self._calls += 1
        if len(self.expression.streams) < MIN_REPLAN_STREAMS or self._calls % REPLAN_INTERVAL_CALLS:
            return
        rates = self._cost_estimator.rates(watermark)
        if any(rates.values()):
            better = self._plan_chooser.better(self.plan, self._cost_estimator.estimate(), rates)
            if better:
                self.changes.append(better[1])
                self.migrate(better[0])
            self._cost_estimator.decay()

    def _create_intermediate_windows(self, plan: Plan, before: int) -> dict[str, IntermediateState]:
        """Create and fill the windows of the results that a plan stores, innermost first."""
        operations = [operation for flow in plan for operation in flow.operations]
        windows: dict[str, IntermediateState] = {}
        for part in subexpressions(self.expression):
            window = f"w_{part.name}"
            if any(operation.kind == "record" and operation.window == window for operation in operations):
                used = {operation.on for operation in operations if operation.window == window and operation.on}
                used |= {operation.on for operation in operations if operation.own == window}
                of = {alias: self._windows.inputs[alias] for alias in output_streams(part)}
                windows[window] = self._windows.sides[window] = IntermediateState(of, is_join_only(part), sorted(used))
                self._fill(part, windows, before)
        return windows

    def _fill(self, part: Expression, results: Mapping[str, IntermediateState], before: int) -> None:
        """Fill a new intermediate window with the results of the windows below it, just before `before`."""
        stored = [name for name in intermediate_names(part) if f"w_{name}" in results]
        alias = output_streams(part)[0]
        items = JoinItems.of(alias, self._windows.inputs[alias].live_events(before))
        for operation in next(enumerate_orders(part, alias, stored)).operations[1:]:
            if operation.kind != "record" and len(items):
                items = self._windows.after(operation, items)
        if len(items):
            results[f"w_{part.name}"].record(items.orders, np.ones(len(items), dtype=np.int64), items.positions)

    def _record(self, port: int, pieces: list[Batch]) -> None:
        side = self._ports[port]
        if isinstance(side, FifoWindowState):
            for rows in pieces if len(pieces) <= MAX_SEPARATE_PIECES else [Batch.joined(pieces)]:
                side.record(rows)
        elif (missing := side.record(Batch.joined(pieces))) is not None:
            reason = f"{len(missing)} rows of {side.layout.alias!r} retracted that the input does not hold"
            self.dead_letters.append(DeadLetter("error", missing, reason))

    def _run_dataflows(self, current: dict[str, JoinItems]) -> list[JoinItems]:
        """Pass the inserted and deleted items of each stream through its operations, and return the results."""
        for alias, items in current.items():
            self._cost_estimator.count(alias, len(items))
        steps = {flow.stream: iter(flow.operations[1:]) for flow in self.plan if flow.stream in current}
        stops = {flow.stream: {op.window for op in flow.operations if op.kind == "record"} for flow in self.plan}
        for window in [*self._results, "w_out"]:
            arrived: list[JoinItems] = []
            for stream, operations in steps.items():
                if window not in stops[stream]:
                    continue
                for operation in operations:
                    if operation.kind == "record":
                        break
                    if len(current[stream]):
                        current[stream] = self._run_operation(operation, current[stream])
                arrived.append(current[stream])
            filled = [items for items in arrived if len(items)]
            if window == "w_out":
                return filled
            if filled:
                self._store(self._results[window], filled)
        return []

    def _run_operation(self, operation: Operation, items: JoinItems) -> JoinItems:
        start = self.meter()
        result = self._windows.after(operation, items)
        end = self.meter()
        seconds = None if start is None or end is None else end - start
        self._cost_estimator.record_cost(operation, len(items), len(result), seconds)
        return result

    def _expired_items(self, before: int, latest: float) -> dict[str, JoinItems]:
        """Return the rows that leave before `before`, by stream."""
        return {
            side.layout.alias: JoinItems.of(
                side.layout.alias,
                side.deletions(before, latest) if isinstance(side, FifoWindowState) else side.deletions(),
            )
            for side in self._ports
        }

    def _store(self, side: IntermediateState, parts: Sequence[JoinItems]) -> None:
        items = concat_items(parts)
        sign = np.concatenate([part.signs for part in parts])
        order = np.argsort(items.orders, kind="stable")
        side.record(items.orders[order], sign[order], {alias: rows[order] for alias, rows in items.positions.items()})

    def _output(self, results: Sequence[JoinItems], batch: Batch, complete: CompleteRows | CompletePieces) -> Batch:
        empty = self._empty(batch, complete)
        if not results:
            return empty
        can_replan = len(self.expression.streams) >= MIN_REPLAN_STREAMS
        orders, items = merge_items(results, not self._pure, steady=can_replan)
        if self.emit != "both" and (not self._pure or self.emit == "deletions"):
            chosen = np.flatnonzero(signs_of(orders) == (1 if self.emit == "insertions" else -1))
            orders, items = orders[chosen], items.pick(chosen)
        if not len(items):
            return empty
        columns = gather_columns(self._windows.inputs, self.columns, items)
        sign: int | Ints = 1 if self.emit == "insertions" else -1
        if self.emit == "both":
            each = signs_of(orders)
            sign = each if np.any(each != each[0]) else int(each[0])
        ts, arrived = timestamps_of(orders), items.arrived
        return replace(empty, columns=columns, rows=len(items), ts=ts, arrived=arrived, sign=sign)

    def _empty(self, batch: Batch, complete: CompleteRows | CompletePieces) -> Batch:
        seq = int(np.max(batch.seq)) if np.size(batch.seq) else 0
        return Batch(self._empty_columns, 0, seq=seq, watermark=complete.watermark, ended=complete.ended)

    def _release(self, before: int) -> None:
        """Free the rows that no operation can read any more."""
        needs_compaction = {
            side.layout.alias for side in self._ports if isinstance(side, RetractableState) and side.needs_compaction
        }
        for result in self._results.values():
            if needs_compaction.intersection(result.inputs):
                result.compact(before)
            else:
                result.release(before)
        for side in self._ports:
            if isinstance(side, FifoWindowState):
                side.release(before)
            elif (kept := side.release()) is not None:
                for result in self._results.values():
                    if side.layout.alias in result.inputs:
                        result.moved(side.layout.alias, kept)


def _latest_arrival(batch: Batch) -> float:
    """Return the arrival time of a batch, or of its last row."""
    return float(np.max(batch.arrived)) if np.size(batch.arrived) else 0.0
