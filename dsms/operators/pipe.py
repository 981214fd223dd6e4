"""Filters and projections in a row, as one operator: rows are copied once, however many conditions they pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dsms.batch import NULLS, VARIES, Batch
from dsms.batch import Column as Values
from dsms.errors import PlanError, RowError, existing
from dsms.expressions.evaluate import Evaluator, compiled
from dsms.expressions.faults import Faults
from dsms.expressions.functions import UserFunction
from dsms.expressions.tree import Call, Column, Expression, columns_of, only_compares, text_of
from dsms.operators.base import ROW_COST, Aside, Operator
from dsms.schema import DTYPES, Schema

BOOL = np.dtype(bool)
FEW = 0.2  # a part of the rows: of more, a condition is sooner worked out for all than for those looked up
ON_ERROR = ("fail", "dead-letter")


@dataclass(frozen=True)
class Keep:
    """Only the rows for which a condition holds; unknown is not true."""

    condition: Expression


@dataclass(frozen=True)
class Make:
    """New columns instead of those there are."""

    items: tuple[tuple[str, Expression], ...]


@dataclass
class _Rows:
    """Rows on their way through the steps: columns, and at which positions in them the rows are that are left."""

    columns: Mapping[str, Values]
    count: int  # rows left
    at: Values | None = None  # None: every row of the columns
    origin: Values | None = None  # which row of the batch each row of the columns was; None: the same
    mask: Values | None = None  # which of the rows left are to be left, where looking them up has been put off

    def narrow(self, mask: Values) -> None:
        """Leave only some of the rows that are left."""
        chosen = mask.nonzero()[0]
        if len(chosen) < self.count:
            self.at = chosen if self.at is None else self.at[chosen]
            self.count = len(chosen)

    def picked(self, names: tuple[str, ...]) -> Mapping[str, Values]:
        """Some columns for the rows that are left; more may be in it."""
        if self.at is None:
            return self.columns
        return {name: self.columns[name].take(self.at) for name in names if name in self.columns}

    def positions(self) -> Values | None:
        """Which rows of the batch are left; None: all."""
        if self.origin is None or self.at is None:
            return self.at if self.origin is None else self.origin
        return self.origin[self.at]


@dataclass(frozen=True)
class _Condition:
    evaluator: Evaluator
    expression: Expression
    cheap: bool  # whether it may as well be worked out for rows that are not left


@dataclass(frozen=True)
class _Renaming:
    names: tuple[tuple[str, str], ...]  # new, old; null masks included


@dataclass(frozen=True)
class _Making:
    items: tuple[tuple[str, Evaluator | str, Expression], ...]  # a column that is passed on by its name
    names: tuple[str, ...]  # of the columns that are read


@dataclass(frozen=True)
class _Choice:
    condition: Evaluator
    names: tuple[tuple[str, str], ...]  # of the columns then wanted: new, old; null masks included
    making: _Making | None  # what is made of them


def _paired(steps: Sequence[Keep | Make]) -> list[Keep | Make]:
    """Two comparisons in a row as one condition: sooner worked out for all rows together than one after the other."""
    found: list[Keep | Make] = []
    open_ = False  # whether the last found takes another
    for step in steps:
        plain = isinstance(step, Keep) and only_compares(step.condition)
        if open_ and plain and isinstance(step, Keep) and isinstance(before := found[-1], Keep):
            found[-1] = Keep(Call("and", (before.condition, step.condition)))
            open_ = False
        else:
            found.append(step)
            open_ = plain
    return found


@dataclass(eq=False)
class Pipe(Operator):
    """Conditions and new columns, step after step; has no state."""

    cost: float = ROW_COST
    schema: Schema = field(default_factory=lambda: Schema(()))
    steps: tuple[Keep | Make, ...] = ()
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    on_error: str = "fail"  # a row for which an expression has no value stops the run, or is put aside
    output: Schema = field(init=False)
    atomic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_error not in ON_ERROR:
            raise PlanError(f"on_error is {self.on_error!r}{existing(self.on_error, ON_ERROR)}", "on_error")
        self._compile()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_steps", "_choice")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._compile()  # closures do not go from one process to another

    def _compile(self) -> None:
        self.output = self.schema
        self._steps = [self._compiled(step) for step in _paired(self.steps)]
        asked = [step.condition for step in self.steps if isinstance(step, Keep)]
        made = [item for step in self.steps if isinstance(step, Make) for _, item in step.items]
        self._silent = all(map(only_compares, [*asked, *made]))  # nothing in it that numpy would warn of
        self._choice = self._one_choice()
        cheap = [isinstance(step, _Condition) and step.cheap for step in self._steps]
        self._another = [*cheap[1:], False][: len(cheap)]  # whether a cheap condition follows

    def _compiled(self, step: Keep | Make) -> _Condition | _Renaming | _Making:
        """A step over the columns the steps before put out, which become its own."""
        if isinstance(step, Keep):
            evaluator = compiled(step.condition, self.output, self.functions)
            if evaluator.type not in ("bool", "null"):
                raise PlanError(f"condition {text_of(step.condition)} is {evaluator.type}: bool is wanted")
            return _Condition(evaluator, step.condition, self._cheap(step.condition))
        items = tuple((name, compiled(part, self.output, self.functions), part) for name, part in step.items)
        for name, evaluator, _ in items:
            if evaluator.type not in DTYPES:
                raise PlanError(f"column {name!r} is null in every row: cast it to a type{existing('', DTYPES)}")
        self.output = Schema(tuple((name, evaluator.type) for name, evaluator, _ in items))
        plain = [(name, part.name) for name, part in step.items if isinstance(part, Column)]
        if len(plain) == len(items):
            return _Renaming(tuple((new + tail, old + tail) for new, old in plain for tail in ("", NULLS)))
        names = tuple(dict.fromkeys(name for _, evaluator, _ in items for name in evaluator.names))
        return _Making(tuple((n, p.name if isinstance(p, Column) else e, p) for n, e, p in items), names)

    def _one_choice(self) -> _Choice | None:
        """The one condition and the columns, if that is all there is to it and the condition cannot go wrong."""
        steps = self._steps
        if not steps or len(steps) > 2 or not isinstance(condition := steps[0], _Condition):
            return None
        if not only_compares(condition.expression):
            return None
        names = tuple((name + tail,) * 2 for name in self.output for tail in ("", NULLS))
        if len(steps) == 1:
            return _Choice(condition.evaluator, names, None)
        second = steps[1]
        if isinstance(second, _Renaming):
            return _Choice(condition.evaluator, second.names, None)
        if isinstance(second, _Making):
            return _Choice(condition.evaluator, tuple((name, name) for name in second.names), second)
        return None

    def _cheap(self, condition: Expression) -> bool:
        """Whether it is about numbers only, and nobody else's code."""
        return not self.functions and all(self.output[name] != "string" for name in columns_of(condition))

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if not batch.rows:
            return replace(batch, columns={})  # only time
        if self._choice is not None and (chosen := self._chosen(batch, self._choice)) is not None:
            return chosen
        rows = _Rows(batch.columns, batch.rows)
        if self._silent:
            self._take_through(batch, rows)
        else:
            with np.errstate(all="ignore"):  # what has no value is a fault, and infinite is a value
                self._take_through(batch, rows)
        return self._put_out(batch, rows)

    def _chosen(self, batch: Batch, choice: _Choice) -> Batch | None:
        """The same, written out for what most queries are; None where a column cannot be made for every row."""
        holds, unknown = choice.condition.quietly(batch.columns, batch.rows, Faults())
        left = (holds if unknown is None else holds & ~unknown).nonzero()[0]
        columns, every = batch.columns, len(left) == batch.rows
        if every and len(self._steps) == 1:
            return batch
        names = [(new, columns[old]) for new, old in choice.names if old in columns]
        picked = dict(names) if every else {new: values.take(left) for new, values in names}
        if choice.making is not None:
            made = self._made(picked, len(left), choice.making)
            if made is None:
                return None
            picked = made
        return replace(batch, columns=picked) if every else _picked(batch, picked, left)

    def _made(self, columns: Mapping[str, Values], count: int, step: _Making) -> dict[str, Values] | None:
        faults = Faults()
        made: dict[str, Values] = {}
        with np.errstate(all="ignore"):
            for name, source, _ in step.items:
                if isinstance(source, str):
                    made[name], unknown = columns[source], columns.get(source + NULLS)
                else:
                    made[name], unknown = source.quietly(columns, count, faults)
                if unknown is not None:
                    made[name + NULLS] = unknown
        return None if faults.found else made

    def _take_through(self, batch: Batch, rows: _Rows) -> None:
        for step, another in zip(self._steps, self._another, strict=True):
            if isinstance(step, _Condition):
                self._keep(batch, rows, step, another)
            elif isinstance(step, _Renaming):
                rows.columns = {new: rows.columns[old] for new, old in step.names if old in rows.columns}
            else:
                self._make(batch, rows, step)

    def _keep(self, batch: Batch, rows: _Rows, step: _Condition, another: bool) -> None:
        """Only the rows for which a condition holds; with another cheap one to come they need not be looked up yet."""
        faults = Faults()
        holds, unknown = step.evaluator.quietly(rows.picked(step.evaluator.names), rows.count, faults)
        if holds.dtype is not BOOL and holds.dtype != BOOL:
            holds = holds.astype(bool)  # a null that has no type
        if unknown is not None:
            holds = holds & ~unknown
        if rows.mask is not None:
            if faults.found:
                everywhere, faults = faults, Faults()
                faults.count(everywhere, rows.mask)
            holds = holds & rows.mask
        if faults.found:
            holds = holds & self._sound(batch, rows, faults, step.expression)
        rows.mask = holds if another and np.count_nonzero(holds) > FEW * rows.count else None
        if rows.mask is None:
            rows.narrow(holds)

    def _make(self, batch: Batch, rows: _Rows, step: _Making) -> None:
        columns = rows.picked(step.names)
        origin, count = rows.positions(), rows.count
        made: dict[str, Values] = {}
        sound = None
        for name, source, expression in step.items:
            if isinstance(source, str):
                made[name], unknown = columns[source], columns.get(source + NULLS)
            else:
                faults = Faults()
                made[name], unknown = source.quietly(columns, count, faults)
                if faults.found:
                    sound = self._sound(batch, rows, faults, expression, sound)
            if unknown is not None:
                made[name + NULLS] = unknown
        rows.columns, rows.at, rows.origin = made, None, origin
        if sound is not None:
            rows.narrow(sound)

    def _sound(
        self, batch: Batch, rows: _Rows, faults: Faults, expression: Expression, sound: Values | None = None
    ) -> Values:
        """Which of the rows left have no fault, of those that had none; those that have one now are put aside."""
        sound = np.ones(rows.count, dtype=bool) if sound is None else sound
        left = rows.positions()
        for positions, why in faults.by_reason(rows.count):
            bad = positions[sound[positions]]
            sound[bad] = False
            if len(bad):
                self._put_aside(batch.pick(bad if left is None else left[bad]), f"{why} in {text_of(expression)}")
        return sound

    def _put_aside(self, faulty: Batch, reason: str) -> None:
        if self.on_error == "fail":
            raise RowError(f"{reason}; the row is {faulty.pick(slice(0, 1)).records()[0]}")
        self.asides.append(Aside("error", faulty, reason))

    def _put_out(self, batch: Batch, rows: _Rows) -> Batch:
        columns, left = rows.columns, rows.positions()
        if left is None:
            return batch if columns is batch.columns else replace(batch, columns=columns)
        if rows.at is not None:
            columns = rows.picked(tuple(columns))
        return _picked(batch, columns, left)


def _picked(batch: Batch, columns: Mapping[str, Values], left: Values) -> Batch:
    """Rows of a batch at these positions, with these columns."""
    count = len(left)
    varied: dict[str, Any] = {name: getattr(batch, name) for name in VARIES}
    for name, values in varied.items():
        if isinstance(values, np.ndarray):
            varied[name] = values.take(left) if count else values[0].item()
    upto = batch.upto
    if upto is None:  # the last row may be gone, the time it brought is not
        upto = int(batch.each("ts")[-1])
    # `replace` would take three times as long.
    return Batch(columns, count, upto=upto, ended=batch.ended, **varied)
