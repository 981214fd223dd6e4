"""Joins and differences of any number of windows: each input's rows go through a dataflow expression of their own."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dsms.batch import Batch
from dsms.dataflow import Estimate, Expression, Mode, Operation, Plan, Stream, intermediates, orders, parts
from dsms.joins.adapt import Adviser, Scales
from dsms.joins.ahead import Ahead, check_ahead
from dsms.joins.chain import Items, Windows
from dsms.joins.events import horizon, instants, signs
from dsms.joins.inputs import Input, pure, shown, sides_of
from dsms.joins.keys import Ints
from dsms.joins.output import Emit, gathered, joined, merged, nothing
from dsms.joins.relation import RelationSide
from dsms.joins.results import ResultSide
from dsms.joins.sides import FifoSide
from dsms.operators.base import ROW_COST, Aside, Operator
from dsms.operators.pending import BEGINNING, Complete, Pending, Pieces
from dsms.settings import Settings

CHANGING = 3  # streams from which on there is more than one plan
FEW = 2  # pieces recorded one by one, as to join them is to copy them once more; of many each would take its time
BLOCKS = 32  # calls with rows, between two decisions on the plan


@dataclass(eq=False)
class MultiJoin(Operator):
    """Keeps the results of an expression over windows up to date, item by item as Getta and Vossough describe.

    One port for each input that is not stored, in order. All rows whose instants are complete are recorded first; then
    each goes through its operations, which see every window as it was at that row's own moment.
    """

    cost: float = ROW_COST
    inputs: tuple[Input, ...] = ()
    expression: Expression = field(default_factory=lambda: Stream("none", ("*",)))
    columns: tuple[str, ...] = ()  # of the results, as alias.column
    emit: Emit = "both"  # results that come, that go, or both
    keep: tuple[str, ...] | None = None  # the results inside the expression that get a window; None: as it turns out
    mode: Mode = "block"  # by which T the order of operations is chosen
    ahead: float = 0  # rows worked on before their instant is complete: 0 keeps results in order, inf waits for nobody
    plan: Plan = field(default=(), init=False)
    changes: list[str] = field(default_factory=list, init=False)  # of the plan, and what each saves
    _results: dict[str, ResultSide] = field(default_factory=dict, init=False, repr=False)
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._begin()

    def fresh(self, settings: Settings) -> MultiJoin:
        fresh = copy.copy(self)
        fresh.asides = []
        fresh._begin()
        return fresh

    @property
    def held(self) -> int:
        """Rows in windows and in wait."""
        inputs = sum(len(side.rows) for side in self._windows.inputs.values())
        waiting = len(self._pending) + (len(self._ahead) if self._ahead is not None else 0)
        return waiting + inputs + sum(len(side.rows) for side in self._results.values())

    @property
    def ports(self) -> list[str]:
        """By port, what its input is called."""
        return [part.alias for part in self.inputs if part.rows is None]

    def first(self) -> Plan:
        """The plan it began with: the operations in the order in which the query has them."""
        return self._adviser.first()

    def estimate(self) -> Estimate:
        """What its operations cost, as far as it has seen."""
        return self._scales.estimate()

    def deadline(self) -> int | None:
        if not self._going:
            return None
        due = [side.deadline() for side in self._ports if isinstance(side, FifoSide)]
        return min((ts for ts in due if ts is not None), default=None)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if self._ahead is not None:
            return self._early(self._ahead, batch, port)
        complete = self._pending.pieces(batch, port)
        if not self._going and not any(complete.pieces):
            return self._empty(batch, complete)
        before = horizon(complete.upto)
        for number, pieces in enumerate(complete.pieces):
            if pieces:
                self._record(number, pieces)
        come = {side.layout.alias: Items.of(side.layout.alias, side.births()) for side in self._ports}
        gone = self._gone(before, _latest(batch)) if self._going else {}
        if self._results:  # both at once: what comes is stored where what goes looks, and the other way round
            return self._done(
                self._through({s: joined([come[s], gone[s]]) for s in come} if gone else come), batch, complete
            )
        if self.emit == "deaths" and self._pure:
            come = {}
        return self._done(self._through(come) + self._through(gone), batch, complete)

    @property
    def synchronised(self) -> bool:
        """Whether all that is out so far is what would be out had nothing been worked on ahead of time."""
        return self._ahead is None or self._ahead.synchronised

    def _early(self, ahead: Ahead, batch: Batch, port: int) -> Batch:
        """Rows one port after the other, each meeting all that came in before it; what goes does so in order."""
        turn = ahead.add(batch, port)
        through: list[Items] = []
        for number, rows in turn.rows:
            self._record(number, [rows])
            side = self._ports[number]
            items = Items.of(side.layout.alias, side.births())
            until = side.lives(items.positions[side.layout.alias])[1]
            through += self._through({side.layout.alias: replace(items, until=until)})
        if self._going:
            through += self._through(self._gone(horizon(turn.complete.upto), _latest(batch)))
        return self._done(through, batch, turn.complete)

    def _done(self, through: Sequence[Items], batch: Batch, complete: Complete | Pieces) -> Batch:
        output = self._output(through, batch, complete)
        self._before = horizon(complete.upto)
        self._release(self._before)
        self._reconsider(complete.upto)
        return output

    def _begin(self) -> None:
        check_ahead(self.ahead, self.inputs, self.expression, self.keep)
        inputs = sides_of(self.inputs, self.expression, self.columns)
        self._windows = Windows(inputs)
        self._ports = [side for side in inputs.values() if isinstance(side, FifoSide | RelationSide)]
        self._pending = Pending(len(self._ports))
        self._ahead = Ahead(len(self._ports), self.ahead) if self.ahead else None
        self._pure = pure(self.expression)
        self._going = self.emit != "births" or not self._pure  # whether it matters what goes
        self._nothing = nothing(inputs, self.columns)
        self._scales = Scales(self.expression, inputs)
        self._adviser = Adviser(self.expression, () if self.ahead else self.keep, self.mode)
        self._blocks = 0
        self._before = horizon(BEGINNING)
        self._results = {}
        self.changes = []
        self.follow(self._adviser.first())

    def follow(self, plan: Plan) -> None:
        """Go by another plan from now on: new windows between are filled, those no longer used forgotten."""
        self.plan = plan
        for window in self._results:
            del self._windows.sides[window]
        for side in self._windows.inputs.values():
            side.forget()
        self._results = self._windows_between(plan, self._before)

    def _reconsider(self, upto: int) -> None:
        """Now and then, whether another plan is better."""
        self._blocks += 1
        if len(self.expression.streams) < CHANGING or self._blocks % BLOCKS:
            return
        rates = self._scales.rates(upto)
        if any(rates.values()):
            found = self._adviser.better(self.plan, self._scales.estimate(), rates)
            if found:
                self.changes.append(found[1])
                self.follow(found[0])
            self._scales.fade()

    def _windows_between(self, plan: Plan, before: int) -> dict[str, ResultSide]:
        """Windows for the results that a plan stores, the innermost first, as of a moment."""
        operations = [operation for flow in plan for operation in flow.operations]
        found: dict[str, ResultSide] = {}
        for part in parts(self.expression):
            window = f"w_{part.name}"
            if any(operation.kind == "record" and operation.window == window for operation in operations):
                used = {operation.on for operation in operations if operation.window == window and operation.on}
                used |= {operation.on for operation in operations if operation.own == window}
                of = {alias: self._windows.inputs[alias] for alias in shown(part)}
                found[window] = self._windows.sides[window] = ResultSide(of, pure(part), sorted(used))
                self._fill(part, found, before)
        return found

    def _fill(self, part: Expression, results: Mapping[str, ResultSide], before: int) -> None:
        """Put into a new window what the windows below it hold before a moment."""
        stored = [name for name in intermediates(part) if f"w_{name}" in results]
        alias = shown(part)[0]
        items = Items.of(alias, self._windows.inputs[alias].living(before))
        for operation in next(orders(part, alias, stored)).operations[1:]:
            if operation.kind != "record" and len(items):
                items = self._windows.after(operation, items)
        if len(items):
            results[f"w_{part.name}"].record(items.orders, np.ones(len(items), dtype=np.int64), items.positions)

    def _record(self, port: int, pieces: list[Batch]) -> None:
        side = self._ports[port]
        if isinstance(side, FifoSide):
            for rows in pieces if len(pieces) <= FEW else [Batch.joined(pieces)]:
                side.record(rows)
        elif (lost := side.record(Batch.joined(pieces))) is not None:
            reason = f"{len(lost)} rows of {side.layout.alias!r} taken back that are not there"
            self.asides.append(Aside("error", lost, reason))

    def _through(self, going: dict[str, Items]) -> list[Items]:
        """What the operations make of items that come and go, by stream."""
        for alias, items in going.items():
            self._scales.count(alias, len(items))
        steps = {flow.stream: iter(flow.operations[1:]) for flow in self.plan if flow.stream in going}
        stops = {flow.stream: {op.window for op in flow.operations if op.kind == "record"} for flow in self.plan}
        for window in [*self._results, "w_out"]:
            arrived: list[Items] = []
            for stream, operations in steps.items():
                if window not in stops[stream]:
                    continue
                for operation in operations:
                    if operation.kind == "record":
                        break
                    if len(going[stream]):
                        going[stream] = self._weighed(operation, going[stream])
                arrived.append(going[stream])
            some = [items for items in arrived if len(items)]
            if window == "w_out":
                return some
            if some:
                self._store(self._results[window], some)
        return []

    def _weighed(self, operation: Operation, items: Items) -> Items:
        begun = self.meter()
        result = self._windows.after(operation, items)
        done = self.meter()
        seconds = None if begun is None or done is None else done - begun
        self._scales.weigh(operation, len(items), len(result), seconds)
        return result

    def _gone(self, before: int, latest: float) -> dict[str, Items]:
        """Rows that go before a moment, by stream."""
        return {
            side.layout.alias: Items.of(
                side.layout.alias, side.deaths(before, latest) if isinstance(side, FifoSide) else side.deaths()
            )
            for side in self._ports
        }

    def _store(self, side: ResultSide, parts: Sequence[Items]) -> None:
        items = joined(parts)
        sign = np.concatenate([part.signs for part in parts])
        order = np.argsort(items.orders, kind="stable")
        side.record(items.orders[order], sign[order], {alias: rows[order] for alias, rows in items.positions.items()})

    def _output(self, through: Sequence[Items], batch: Batch, complete: Complete | Pieces) -> Batch:
        empty = self._empty(batch, complete)
        if not through:
            return empty
        turned, items = merged(through, not self._pure, steady=len(self.expression.streams) >= CHANGING)
        if self.emit != "both" and (not self._pure or self.emit == "deaths"):
            wanted = np.flatnonzero(signs(turned) == (1 if self.emit == "births" else -1))
            turned, items = turned[wanted], items.pick(wanted)
        if not len(items):
            return empty
        columns = gathered(self._windows.inputs, self.columns, items)
        sign: int | Ints = 1 if self.emit == "births" else -1
        if self.emit == "both":
            each = signs(turned)
            sign = each if np.any(each != each[0]) else int(each[0])
        ts, arrived = instants(turned), items.arrived
        return replace(empty, columns=columns, rows=len(items), ts=ts, arrived=arrived, sign=sign)

    def _empty(self, batch: Batch, complete: Complete | Pieces) -> Batch:
        seq = int(np.max(batch.seq)) if np.size(batch.seq) else 0
        return Batch(self._nothing, 0, seq=seq, upto=complete.upto, ended=complete.ended)

    def _release(self, before: int) -> None:
        """Let go what nobody can see any more."""
        crowded = {side.layout.alias for side in self._ports if isinstance(side, RelationSide) and side.crowded}
        for result in self._results.values():
            if crowded.intersection(result.inputs):
                result.compact(before)
            else:
                result.release(before)
        for side in self._ports:
            if isinstance(side, FifoSide):
                side.release(before)
            elif (kept := side.release()) is not None:
                for result in self._results.values():
                    if side.layout.alias in result.inputs:
                        result.moved(side.layout.alias, kept)


def _latest(batch: Batch) -> float:
    """When a batch arrived, or the last of its rows."""
    return float(np.max(batch.arrived)) if np.size(batch.arrived) else 0.0
