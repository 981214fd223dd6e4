"""Writes the results of a run's queries to files, to standard output, or to functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dsms.data.batch import Batch
from dsms.data.schema import Schema, conform, infer_schema
from dsms.errors import PlanError
from dsms.io import STDOUT, FileSink, open_sink
from dsms.plan.graph import Plan, Query, Stream, is_append_only

SINK_FORMATS = ("csv", "jsonl", "parquet")
Take = Callable[[Batch], object]


class RunSinks:
    """The sinks of all queries; a run that ends normally leaves complete files, a failed run partial ones."""

    def __init__(self, plan: Plan, given: Mapping[str, Take]) -> None:
        self._plan, self._given = plan, given
        self._queries = {query.name: query for query in plan.queries}
        self._sinks: dict[str, FileSink] = {}
        self._schemas: dict[str, Schema] = {}  # of queries whose columns are known only from their first batch
        own = [query for query in plan.queries if query.name not in given]
        self._together = sum(_is_stdout_sink(query) for query in own) > 1  # then each row names its query
        self._check(own)
        for query in own:
            if query.node is not None:
                self._open(query, query.node.schema, query.node.is_append_only)

    def __enter__(self) -> RunSinks:
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
        """Write results of a query."""
        if name in self._given:
            self._given[name](batch)
            return
        query = self._queries[name]
        if query.node is None:
            batch = self._known(query, batch)
        if self._together and _is_stdout_sink(query):
            label = _column_label(list(batch.columns))
            batch = replace(batch, columns={label: np.full(len(batch), name, dtype=object), **batch.columns})
        self._sinks[name].write(batch)

    def _known(self, query: Query, batch: Batch) -> Batch:
        """Rows of user functions: the first batch determines the columns."""
        if query.name not in self._sinks:
            schema = infer_schema(batch)
            self._open(query, schema, is_append_only(query))
            self._schemas[query.name] = schema
        return conform(batch, self._schemas[query.name], query.name)

    def _open(self, query: Query, schema: Schema, is_append_only: bool) -> None:
        if self._together and _is_stdout_sink(query):
            schema = Schema(((_column_label(list(schema)), "string"), *schema.fields))
        target = STDOUT if query.sink is None else query.sink
        try:
            self._sinks[query.name] = open_sink(target, schema, is_append_only, self._plan.folder)
        except PlanError as error:
            raise error.within(f"queries.{query.name}.sink", self._plan.name) from None

    def _check(self, queries: list[Query]) -> None:
        """Refuse a file that two queries write, or that a stream reads."""
        taken: dict[Path, str] = {}
        for query in queries:
            for path in _source_files(query.sink, self._plan):
                readers = [stream.name for stream in self._plan.streams if _is_source_file(stream, path, self._plan)]
                user = f"stream {readers[0]!r} reads" if readers else taken.get(path)
                if user is not None:
                    where = f"queries.{query.name}.sink"
                    raise PlanError(f"{user} {str(path)!r} already: give the sink another file", where, self._plan.name)
                taken[path] = f"query {query.name!r} writes"


def _is_stdout_sink(query: Query) -> bool:
    return query.sink in (None, STDOUT)


def _source_files(table: Any, plan: Plan) -> list[Path]:
    """The files of a source or sink."""
    named = [table.get(form) for form in SINK_FORMATS] if isinstance(table, Mapping) else []
    return [(plan.folder / name).resolve() for name in named if isinstance(name, str) and name != "-"]


def _is_source_file(stream: Stream, path: Path, plan: Plan) -> bool:
    """Whether a stream reads this file, or would read it once it exists."""
    return any(
        path == read or read in path.parents or path.match(str(read)) for read in _source_files(stream.source, plan)
    )


def _column_label(columns: Sequence[str]) -> str:
    """The name of the column that holds the query of a row."""
    return "query" if "query" not in columns else "_query"
