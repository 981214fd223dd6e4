"""A join by the book: what an expression holds at an instant, worked out anew from what the windows hold then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsms.algebra import Window
from dsms.batch import NULLS, Batch
from dsms.dataflow import Difference, Expression, Stream
from dsms.joins import Input, MultiJoin
from dsms.schema import DTYPES, Schema

END = 1000  # after everything

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """A row of an input: when, whether it comes, what it is."""

    ts: int
    row: tuple[Any, ...]
    sign: int = 1


@dataclass
class Source:
    """An input and all that ever comes by it, in order."""

    alias: str
    types: Mapping[str, str]
    window: Window | None
    attributes: Mapping[str, str]
    changes: Sequence[Change] = field(default_factory=list)
    stored: bool = False

    @property
    def input(self) -> Input:
        rows = batch_of(self, self.changes) if self.stored else None
        return Input(self.alias, Schema.of(self.types), self.window, self.attributes, rows)

    def contents(self, now: int) -> list[Row]:
        """What is in the window at an instant."""
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


def batch_of(source: Source, changes: Sequence[Change], **attributes: Any) -> Batch:
    """Changes as a batch."""
    columns: dict[str, Any] = {}
    for number, (name, kind) in enumerate(source.types.items()):
        values = [change.row[number] for change in changes]
        zero = "" if kind == "string" else 0
        columns[name] = np.array([zero if value is None else value for value in values], dtype=DTYPES[kind])
        if None in values:
            columns[name + NULLS] = np.array([value is None for value in values])
    ts = np.array([change.ts for change in changes], dtype=np.int64)
    sign = np.array([change.sign for change in changes], dtype=np.int64)
    return Batch(columns, len(changes), ts=ts, sign=sign, **attributes)


def holds(expression: Expression, sources: Mapping[str, Source], now: int) -> list[dict[str, Row]]:
    """The results at an instant, each by the rows it is made of."""
    if isinstance(expression, Stream):
        return [{expression.name: row} for row in sources[expression.name].contents(now)]
    left, right = holds(expression.left, sources, now), holds(expression.right, sources, now)

    def value(item: Mapping[str, Row], attribute: str) -> Any:
        for alias, row in item.items():
            if attribute in sources[alias].attributes:
                return row[sources[alias].attributes[attribute]]
        return 0

    def equal(one: Mapping[str, Row], other: Mapping[str, Row]) -> bool:
        pairs = [(value(one, attribute), value(other, attribute)) for attribute in expression.on]
        return all(a is not None and b is not None and (a == b or (a != a and b != b)) for a, b in pairs)

    if isinstance(expression, Difference):
        return [item for item in left if not any(equal(item, other) for other in right)]
    return [{**item, **other} for item in left for other in right if equal(item, other)]


def shown(value: Any) -> str:
    """A value as it is compared: nan like any other, -0.0 as 0.0."""
    return repr(value + 0.0 if isinstance(value, float) else value)


def expected(expression: Expression, sources: Mapping[str, Source], columns: Sequence[str], now: int) -> Counter[Any]:
    """The results at an instant as they are put out, and how often each."""
    parts = [name.partition(".") for name in columns]
    return Counter(
        tuple(shown(item[alias][name]) for alias, _, name in parts) for item in holds(expression, sources, now)
    )


def pushed(join: MultiJoin, sources: Sequence[Source], cuts: Sequence[tuple[int, int, bool]]) -> list[Batch]:
    """What a join puts out when its input comes in these pieces: which port, how many rows, whether time is told."""
    ports = [source for source in sources if not source.stored]
    done = [0] * len(ports)
    answers = []
    for port, count, told in cuts:
        source = ports[port % len(ports)]
        first = done[port % len(ports)]
        changes = source.changes[first : first + count]
        done[port % len(ports)] += len(changes)
        left = source.changes[first + len(changes) :]
        upto = (left[0].ts if left else END) if told else None
        answers.append(join.process(batch_of(source, changes, upto=upto), port % len(ports)))
    for number, source in enumerate(ports):
        last = batch_of(source, source.changes[done[number] :], upto=END, ended=True)
        answers.append(join.process(last, number))
    return answers


def told(answers: Sequence[Batch]) -> list[tuple[int, int, tuple[str, ...]]]:
    """All rows put out, as (ts, sign, values)."""
    found = []
    for answer in answers:
        rows = [tuple(map(shown, row.values())) for row in answer.records()]
        found += zip(answer.each("ts").tolist(), answer.each("sign").tolist(), rows, strict=True)
    return found


def contents(rows: Sequence[tuple[int, int, tuple[str, ...]]], now: int) -> Counter[Any]:
    """What rows put out up to an instant add up to."""
    counts: Counter[Any] = Counter()
    for ts, sign, row in rows:
        if ts <= now:
            counts[row] += sign
    assert all(count >= 0 for count in counts.values()), f"taken back what is not there at {now}: {counts}"
    return +counts
