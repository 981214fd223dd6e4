"""Runs consecutive filters and projections as one fused operator, which copies the surviving rows only once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, ROW_ATTRIBUTES, Batch
from dsms.data.batch import Column as Values
from dsms.data.dead_letter import DeadLetter
from dsms.data.schema import DTYPES, Schema
from dsms.errors import PlanError, RowError, existing
from dsms.expressions.evaluate import Evaluator, compile_evaluator
from dsms.expressions.functions import UserFunction
from dsms.expressions.row_errors import RowErrors
from dsms.expressions.tree import Call, Column, Expression, columns_of, is_comparison_only, text_of
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator

BOOL = np.dtype(bool)
SPARSE_SELECTION_RATIO = 0.2  # above this fraction of rows, evaluating all rows is faster than gathering some first
ON_ERROR = ("fail", "dead-letter")


@dataclass(frozen=True)
class FilterStep:
    """Keeps the rows for which a condition is true; unknown does not count as true."""

    condition: Expression


@dataclass(frozen=True)
class ProjectStep:
    """Replaces the columns by new ones."""

    items: tuple[tuple[str, Expression], ...]


@dataclass
class _Selection:
    """The rows that have passed the steps so far: columns, and the positions in them of the selected rows."""

    columns: Mapping[str, Values]
    count: int  # selected rows
    at: Values | None = None  # positions of the selected rows; None: every row of the columns
    origin: Values | None = None  # the batch row of each row of the columns; None: the same position
    mask: Values | None = None  # a further selection among the selected rows that is not yet gathered

    def narrow(self, mask: Values) -> None:
        """Keep only the selected rows for which the mask is true."""
        chosen = mask.nonzero()[0]
        if len(chosen) < self.count:
            self.at = chosen if self.at is None else self.at[chosen]
            self.count = len(chosen)

    def gather(self, names: tuple[str, ...]) -> Mapping[str, Values]:
        """Return the named columns of the selected rows; the mapping may have other columns too."""
        if self.at is None:
            return self.columns
        return {name: self.columns[name].take(self.at) for name in names if name in self.columns}

    def positions(self) -> Values | None:
        """Return the batch positions of the selected rows; None: all rows."""
        if self.origin is None or self.at is None:
            return self.at if self.origin is None else self.origin
        return self.origin[self.at]


@dataclass(frozen=True)
class _CompiledFilter:
    evaluator: Evaluator
    expression: Expression
    cheap: bool  # whether it may be evaluated for rows that are already filtered out


@dataclass(frozen=True)
class _CompiledRename:
    names: tuple[tuple[str, str], ...]  # new, old; null masks included


@dataclass(frozen=True)
class _CompiledProject:
    items: tuple[tuple[str, Evaluator | str, Expression], ...]  # a str names a column that is passed on
    names: tuple[str, ...]  # of the columns that it reads


@dataclass(frozen=True)
class _FilterThenProject:
    condition: Evaluator
    names: tuple[tuple[str, str], ...]  # columns that the projection needs: new, old; null masks included
    projection: _CompiledProject | None


def _merge_steps(steps: Sequence[FilterStep | ProjectStep]) -> list[FilterStep | ProjectStep]:
    """Merge two consecutive comparisons into one condition, which is faster to evaluate over all rows."""
    merged: list[FilterStep | ProjectStep] = []
    can_extend = False  # whether the last merged step takes another comparison
    for step in steps:
        plain = isinstance(step, FilterStep) and is_comparison_only(step.condition)
        if can_extend and plain and isinstance(step, FilterStep) and isinstance(before := merged[-1], FilterStep):
            merged[-1] = FilterStep(Call("and", (before.condition, step.condition)))
            can_extend = False
        else:
            merged.append(step)
            can_extend = plain
    return merged


@dataclass(eq=False)
class FusedOperator(Operator):
    """Applies filter and projection steps in order; it has no state."""

    cost: float = DEFAULT_ROW_COST_S
    schema: Schema = field(default_factory=lambda: Schema(()))
    steps: tuple[FilterStep | ProjectStep, ...] = ()
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    on_error: str = "fail"  # a row for which an expression fails ends the run, or is rejected
    output: Schema = field(init=False)
    atomic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_error not in ON_ERROR:
            raise PlanError(f"on_error is {self.on_error!r}{existing(self.on_error, ON_ERROR)}", "on_error")
        self._compile()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_steps", "_fast_path")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._compile()  # closures cannot be pickled

    def _compile(self) -> None:
        self.output = self.schema
        self._steps = [self._compile_step(step) for step in _merge_steps(self.steps)]
        conditions = [step.condition for step in self.steps if isinstance(step, FilterStep)]
        projected = [item for step in self.steps if isinstance(step, ProjectStep) for _, item in step.items]
        self._silent = all(map(is_comparison_only, [*conditions, *projected]))  # numpy has nothing to warn about
        self._fast_path = self._compile_fast_path()
        cheap = [isinstance(step, _CompiledFilter) and step.cheap for step in self._steps]
        self._cheap_follows = [*cheap[1:], False][: len(cheap)]

    def _compile_step(self, step: FilterStep | ProjectStep) -> _CompiledFilter | _CompiledRename | _CompiledProject:
        """Compile a step against `output`, the columns of the steps before it, and update `output`."""
        if isinstance(step, FilterStep):
            evaluator = compile_evaluator(step.condition, self.output, self.functions)
            if evaluator.type not in ("bool", "null"):
                raise PlanError(f"condition {text_of(step.condition)} is {evaluator.type}: it must be bool")
            return _CompiledFilter(evaluator, step.condition, self._is_cheap(step.condition))
        items = tuple((name, compile_evaluator(part, self.output, self.functions), part) for name, part in step.items)
        for name, evaluator, _ in items:
            if evaluator.type not in DTYPES:
                raise PlanError(f"column {name!r} is null in every row: cast it to a type{existing('', DTYPES)}")
        self.output = Schema(tuple((name, evaluator.type) for name, evaluator, _ in items))
        plain = [(name, part.name) for name, part in step.items if isinstance(part, Column)]
        if len(plain) == len(items):
            return _CompiledRename(tuple((new + tail, old + tail) for new, old in plain for tail in ("", NULLS_SUFFIX)))
        names = tuple(dict.fromkeys(name for _, evaluator, _ in items for name in evaluator.names))
        return _CompiledProject(tuple((n, p.name if isinstance(p, Column) else e, p) for n, e, p in items), names)

    def _compile_fast_path(self) -> _FilterThenProject | None:
        """Return the filter and projection if the steps are one of each at most, and the condition cannot fail."""
        steps = self._steps
        if not steps or len(steps) > 2 or not isinstance(condition := steps[0], _CompiledFilter):
            return None
        if not is_comparison_only(condition.expression):
            return None
        names = tuple((name + tail,) * 2 for name in self.output for tail in ("", NULLS_SUFFIX))
        if len(steps) == 1:
            return _FilterThenProject(condition.evaluator, names, None)
        second = steps[1]
        if isinstance(second, _CompiledRename):
            return _FilterThenProject(condition.evaluator, second.names, None)
        if isinstance(second, _CompiledProject):
            return _FilterThenProject(condition.evaluator, tuple((name, name) for name in second.names), second)
        return None

    def _is_cheap(self, condition: Expression) -> bool:
        """Whether a condition reads only numbers and calls no user function."""
        return not self.functions and all(self.output[name] != "string" for name in columns_of(condition))

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if not batch.rows:
            return replace(batch, columns={})  # only a watermark
        if self._fast_path is not None and (chosen := self._run_fast_path(batch, self._fast_path)) is not None:
            return chosen
        rows = _Selection(batch.columns, batch.rows)
        if self._silent:
            self._run_steps(batch, rows)
        else:
            with np.errstate(all="ignore"):  # evaluators report row errors, and infinity is a value
                self._run_steps(batch, rows)
        return self._to_batch(batch, rows)

    def _run_fast_path(self, batch: Batch, choice: _FilterThenProject) -> Batch | None:
        """Run one filter and one projection, as most queries need; None if an expression fails for some row."""
        holds, unknown = choice.condition.evaluate_unguarded(batch.columns, batch.rows, RowErrors())
        left = (holds if unknown is None else holds & ~unknown).nonzero()[0]
        columns, every = batch.columns, len(left) == batch.rows
        if every and len(self._steps) == 1:
            return batch
        names = [(new, columns[old]) for new, old in choice.names if old in columns]
        picked = dict(names) if every else {new: values.take(left) for new, values in names}
        if choice.projection is not None:
            projected = self._try_project(picked, len(left), choice.projection)
            if projected is None:
                return None
            picked = projected
        return replace(batch, columns=picked) if every else _pick_rows(batch, picked, left)

    def _try_project(
        self, columns: Mapping[str, Values], count: int, step: _CompiledProject
    ) -> dict[str, Values] | None:
        faults = RowErrors()
        projected: dict[str, Values] = {}
        with np.errstate(all="ignore"):
            for name, source, _ in step.items:
                if isinstance(source, str):
                    projected[name], unknown = columns[source], columns.get(source + NULLS_SUFFIX)
                else:
                    projected[name], unknown = source.evaluate_unguarded(columns, count, faults)
                if unknown is not None:
                    projected[name + NULLS_SUFFIX] = unknown
        return None if faults.found else projected

    def _run_steps(self, batch: Batch, rows: _Selection) -> None:
        for step, cheap_follows in zip(self._steps, self._cheap_follows, strict=True):
            if isinstance(step, _CompiledFilter):
                self._filter(batch, rows, step, cheap_follows)
            elif isinstance(step, _CompiledRename):
                rows.columns = {new: rows.columns[old] for new, old in step.names if old in rows.columns}
            else:
                self._project(batch, rows, step)

    def _filter(self, batch: Batch, rows: _Selection, step: _CompiledFilter, cheap_follows: bool) -> None:
        """Keep the rows for which a condition is true; if a cheap condition follows, gather them only after it."""
        faults = RowErrors()
        holds, unknown = step.evaluator.evaluate_unguarded(rows.gather(step.evaluator.names), rows.count, faults)
        if holds.dtype is not BOOL and holds.dtype != BOOL:
            holds = holds.astype(bool)  # an untyped null
        if unknown is not None:
            holds = holds & ~unknown
        if rows.mask is not None:
            if faults.found:
                everywhere, faults = faults, RowErrors()
                faults.count(everywhere, rows.mask)
            holds = holds & rows.mask
        if faults.found:
            holds = holds & self._reject_faulty(batch, rows, faults, step.expression)
        rows.mask = holds if cheap_follows and np.count_nonzero(holds) > SPARSE_SELECTION_RATIO * rows.count else None
        if rows.mask is None:
            rows.narrow(holds)

    def _project(self, batch: Batch, rows: _Selection, step: _CompiledProject) -> None:
        columns = rows.gather(step.names)
        origin, count = rows.positions(), rows.count
        projected: dict[str, Values] = {}
        valid = None
        for name, source, expression in step.items:
            if isinstance(source, str):
                projected[name], unknown = columns[source], columns.get(source + NULLS_SUFFIX)
            else:
                faults = RowErrors()
                projected[name], unknown = source.evaluate_unguarded(columns, count, faults)
                if faults.found:
                    valid = self._reject_faulty(batch, rows, faults, expression, valid)
            if unknown is not None:
                projected[name + NULLS_SUFFIX] = unknown
        rows.columns, rows.at, rows.origin = projected, None, origin
        if valid is not None:
            rows.narrow(valid)

    def _reject_faulty(
        self, batch: Batch, rows: _Selection, faults: RowErrors, expression: Expression, valid: Values | None = None
    ) -> Values:
        """Reject the rows with a fault, and return the mask of valid rows; a row is rejected for its first fault."""
        valid = np.ones(rows.count, dtype=bool) if valid is None else valid
        left = rows.positions()
        for positions, why in faults.by_reason(rows.count):
            bad = positions[valid[positions]]
            valid[bad] = False
            if len(bad):
                self._reject(batch.pick(bad if left is None else left[bad]), f"{why} in {text_of(expression)}")
        return valid

    def _reject(self, faulty: Batch, reason: str) -> None:
        if self.on_error == "fail":
            raise RowError(f"{reason}; the row is {faulty.pick(slice(0, 1)).records()[0]}")
        self.dead_letters.append(DeadLetter("error", faulty, reason))

    def _to_batch(self, batch: Batch, rows: _Selection) -> Batch:
        columns, left = rows.columns, rows.positions()
        if left is None:
            return batch if columns is batch.columns else replace(batch, columns=columns)
        if rows.at is not None:
            columns = rows.gather(tuple(columns))
        return _pick_rows(batch, columns, left)


def _pick_rows(batch: Batch, columns: Mapping[str, Values], left: Values) -> Batch:
    """Return the rows of a batch at some positions, with other columns."""
    count = len(left)
    varied: dict[str, Any] = {name: getattr(batch, name) for name in ROW_ATTRIBUTES}
    for name, values in varied.items():
        if isinstance(values, np.ndarray):
            varied[name] = values.take(left) if count else values[0].item()
    watermark = batch.watermark
    if watermark is None:  # the last row may be filtered out, but its timestamp still advances time
        watermark = int(batch.each("ts")[-1])
    # `replace` would take three times as long.
    return Batch(columns, count, watermark=watermark, ended=batch.ended, **varied)
