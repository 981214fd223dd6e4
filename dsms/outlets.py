"""Where the results of a plan's queries go: files, standard output, or whoever asked for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dsms.batch import NULLS, Batch
from dsms.errors import PlanError
from dsms.files import Sink, sink_from
from dsms.plan import Plan, Query, Station, Stream
from dsms.schema import Schema, conformed, type_like

STDOUT = "stdout"
FORMS = ("csv", "jsonl", "parquet")
Take = Callable[[Batch], object]


class Outlets:
    """The sinks of all queries; a run that comes to its end leaves whole files, one that fails leaves parts."""

    def __init__(self, plan: Plan, given: Mapping[str, Take]) -> None:
        self._plan, self._given = plan, given
        self._queries = {query.name: query for query in plan.queries}
        self._sinks: dict[str, Sink] = {}
        self._schemas: dict[str, Schema] = {}  # of queries whose columns were not known before
        own = [query for query in plan.queries if query.name not in given]
        self._together = sum(_to_stdout(query) for query in own) > 1  # then each row says whose it is
        self._check(own)
        for query in own:
            if query.node is not None:
                self._open(query, query.node.schema, query.node.appends)

    def __enter__(self) -> Outlets:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sink in self._sinks.values():
            if error is None:
                sink.close()
            else:
                sink.abandon()

    def write(self, name: str, batch: Batch) -> None:
        """Results of a query."""
        if name in self._given:
            self._given[name](batch)
            return
        query = self._queries[name]
        if query.node is None:
            batch = self._known(query, batch)
        if self._together and _to_stdout(query):
            label = _label(list(batch.columns))
            batch = replace(batch, columns={label: np.full(len(batch), name, dtype=object), **batch.columns})
        self._sinks[name].write(batch)

    def _known(self, query: Query, batch: Batch) -> Batch:
        """Rows of operators of the user's: the first batch says what columns there are."""
        if query.name not in self._sinks:
            schema = schema_like(batch)
            self._open(query, schema, appends(query))
            self._schemas[query.name] = schema
        return conformed(batch, self._schemas[query.name], query.name)

    def _open(self, query: Query, schema: Schema, appends: bool) -> None:
        if self._together and _to_stdout(query):
            schema = Schema(((_label(list(schema)), "string"), *schema.fields))
        target = STDOUT if query.sink is None else query.sink
        try:
            self._sinks[query.name] = sink_from(target, schema, appends, self._plan.folder)
        except PlanError as error:
            raise error.within(f"queries.{query.name}.sink", self._plan.name) from None

    def _check(self, queries: list[Query]) -> None:
        """No file is written by two, nor over one that is read."""
        taken: dict[Path, str] = {}
        for query in queries:
            for path in _files(query.sink, self._plan):
                readers = [stream.name for stream in self._plan.streams if _reads(stream, path, self._plan)]
                who = f"stream {readers[0]!r} reads" if readers else taken.get(path)
                if who is not None:
                    where = f"queries.{query.name}.sink"
                    raise PlanError(f"{str(path)!r} is what {who}: a file of its own is wanted", where, self._plan.name)
                taken[path] = f"query {query.name!r} writes"


def schema_like(batch: Batch) -> Schema:
    """The columns that rows have, where nothing else says so."""
    names = [name for name in batch.columns if not name.endswith(NULLS)]
    return Schema.of({name: type_like(batch.columns[name].dtype) for name in names})


def _to_stdout(query: Query) -> bool:
    return query.sink in (None, STDOUT)


def _files(table: Any, plan: Plan) -> list[Path]:
    """The files that a source or sink names."""
    named = [table.get(form) for form in FORMS] if isinstance(table, Mapping) else []
    return [(plan.folder / name).resolve() for name in named if isinstance(name, str) and name != "-"]


def _reads(stream: Stream, path: Path, plan: Plan) -> bool:
    """Whether a file is, or would be, among those that a stream reads."""
    return any(path == read or read in path.parents or path.match(str(read)) for read in _files(stream.source, plan))


def _label(columns: Sequence[str]) -> str:
    """What the column is called that says whose a row is."""
    return "query" if "query" not in columns else "_query"


def appends(query: Query) -> bool:
    """Whether nothing above a query takes rows back."""
    ahead: list[object] = list(query.stations)
    while ahead:
        station = ahead.pop()
        if isinstance(station, Station):
            if station.query.node is not None and not station.query.node.appends:
                return False
            ahead += station.inputs
    return True
