"""A naive model of joins: computes the results at an instant from the contents of the windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsms.algebra import Window
from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.schema import DTYPES, Schema
from dsms.dataflow import DifferenceTerm, Expression, StreamTerm
from dsms.operators.joins import JoinInput, MultiJoin

END = 1000  # after everything

Row = Mapping[str, Any]


@dataclass(frozen=True)
class InputChange:
    """A change of an input: the timestamp, the row, and its sign: inserted or deleted."""

    ts: int
    row: tuple[Any, ...]
    sign: int = 1


@dataclass
class ModelInput:
    """An input and all its changes, in order."""

    alias: str
    types: Mapping[str, str]
    window: Window | None
    attributes: Mapping[str, str]
    changes: Sequence[InputChange] = field(default_factory=list)
    stored: bool = False

    @property
    def input(self) -> JoinInput:
        rows = make_batch(self, self.changes) if self.stored else None
        return JoinInput(self.alias, Schema.of(self.types), self.window, self.attributes, rows)

    def contents(self, now: int) -> list[Row]:
        """Return the contents of the window at an instant."""
        come = [change for change in self.changes if change.ts <= now]
        if self.window is None and not self.stored:
            counts: Counter[tuple[Any, ...]] = Counter()
            for change in come:
                counts[change.row] += change.sign
            return [dict(zip(self.types, row, strict=True)) for row in counts.elements()]
        if self.stored:
            come = list(self.changes)
        elif self.window and self.window.kind == "range":
            come = [change for change in come if now <= change.ts + self.window.length]
        elif self.window and self.window.kind == "rows":
            come = come[len(come) - min(self.window.length, len(come)) :]
        return [dict(zip(self.types, change.row, strict=True)) for change in come]


def make_batch(source: ModelInput, changes: Sequence[InputChange], **attributes: Any) -> Batch:
    """Make a batch of changes."""
    columns: dict[str, Any] = {}
    for number, (name, kind) in enumerate(source.types.items()):
        values = [change.row[number] for change in changes]
        zero = "" if kind == "string" else 0
        columns[name] = np.array([zero if value is None else value for value in values], dtype=DTYPES[kind])
        if None in values:
            columns[name + NULLS_SUFFIX] = np.array([value is None for value in values])
    ts = np.array([change.ts for change in changes], dtype=np.int64)
    sign = np.array([change.sign for change in changes], dtype=np.int64)
    return Batch(columns, len(changes), ts=ts, sign=sign, **attributes)


def compute_results(expression: Expression, sources: Mapping[str, ModelInput], now: int) -> list[dict[str, Row]]:
    """Return the results at an instant, each as its input rows by alias."""
    if isinstance(expression, StreamTerm):
        return [{expression.name: row} for row in sources[expression.name].contents(now)]
    left, right = compute_results(expression.left, sources, now), compute_results(expression.right, sources, now)

    def value(item: Mapping[str, Row], attribute: str) -> Any:
        for alias, row in item.items():
            if attribute in sources[alias].attributes:
                return row[sources[alias].attributes[attribute]]
        return 0

    def equal(one: Mapping[str, Row], other: Mapping[str, Row]) -> bool:
        pairs = [(value(one, attribute), value(other, attribute)) for attribute in expression.on]
        return all(a is not None and b is not None and (a == b or (a != a and b != b)) for a, b in pairs)

    if isinstance(expression, DifferenceTerm):
        return [item for item in left if not any(equal(item, other) for other in right)]
    return [{**item, **other} for item in left for other in right if equal(item, other)]


def normalise(value: Any) -> str:
    """Normalise a value for comparison: nan equals itself, -0.0 is 0.0."""
    return repr(value + 0.0 if isinstance(value, float) else value)


def expect_results(
    expression: Expression, sources: Mapping[str, ModelInput], columns: Sequence[str], now: int
) -> Counter[Any]:
    """Return the expected output rows at an instant, with counts."""
    parts = [name.partition(".") for name in columns]
    return Counter(
        tuple(normalise(item[alias][name]) for alias, _, name in parts)
        for item in compute_results(expression, sources, now)
    )


def push_all(join: MultiJoin, sources: Sequence[ModelInput], cuts: Sequence[tuple[int, int, bool]]) -> list[Batch]:
    """Push all inputs in pieces of (port, rows, whether a watermark follows), and return the outputs."""
    ports = [source for source in sources if not source.stored]
    done = [0] * len(ports)
    answers = []
    for port, count, has_watermark in cuts:
        source = ports[port % len(ports)]
        first = done[port % len(ports)]
        changes = source.changes[first : first + count]
        done[port % len(ports)] += len(changes)
        left = source.changes[first + len(changes) :]
        watermark = (left[0].ts if left else END) if has_watermark else None
        answers.append(join.process(make_batch(source, changes, watermark=watermark), port % len(ports)))
    for number, source in enumerate(ports):
        last = make_batch(source, source.changes[done[number] :], watermark=END, ended=True)
        answers.append(join.process(last, number))
    return answers


def list_rows(answers: Sequence[Batch]) -> list[tuple[int, int, tuple[str, ...]]]:
    """List all output rows as (ts, sign, values)."""
    found = []
    for answer in answers:
        rows = [tuple(map(normalise, row.values())) for row in answer.records()]
        found += zip(answer.each("ts").tolist(), answer.each("sign").tolist(), rows, strict=True)
    return found


def contents(rows: Sequence[tuple[int, int, tuple[str, ...]]], now: int) -> Counter[Any]:
    """Return the net contents of output rows up to an instant."""
    counts: Counter[Any] = Counter()
    for ts, sign, row in rows:
        if ts <= now:
            counts[row] += sign
    assert all(count >= 0 for count in counts.values()), f"taken back what is not there at {now}: {counts}"
    return +counts
