"""Compares a checkpoint's plan with a changed one: which stations keep their state, start empty, or are removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from actors.checkpoints.store import CheckpointStore
from actors.rpc.messages import PlanTable, deserialize, serialize
from dsms import io  # whose functions import pyarrow when they are used
from dsms.errors import DsmsError
from dsms.live.query_set import QuerySet
from dsms.plan.graph import Plan, Query, Station, is_append_only


@dataclass(frozen=True)
class PlanDiff:
    """The stations of two plans, by name."""

    kept_stations: list[str]
    new_stations: list[str]
    removed_stations: list[str]
    overwritten_files: tuple[str, ...] = ()  # existing files of new queries

    def __str__(self) -> str:
        parts = (
            ("keep their state", self.kept_stations),
            ("start empty", self.new_stations),
            ("are removed", self.removed_stations),
        )
        text = "; ".join(f"{', '.join(names) or 'none'} {what}" for what, names in parts)
        return f"{text}; what is in {', '.join(self.overwritten_files)} is lost" if self.overwritten_files else text


def diff_plans(before: Plan, after: Plan) -> PlanDiff:
    """Compare two plans.

    A stream with other columns is an error, as the log may hold its rows; so is a query that cannot continue its file.
    """
    streams = {stream.name: stream for stream in before.streams}
    for stream in after.streams:
        known = streams.get(stream.name)
        if known is not None and (known.schema, known.timestamp) != (stream.schema, stream.timestamp):
            raise DsmsError(f"stream {stream.name!r} has other columns than its stored rows; give it another name")
    _check_files(before, after)
    old_stations = {station.name: station for station in before.stations}
    kept_stations = [
        s.name for s in after.stations if s.name in old_stations and _is_same_station(old_stations[s.name], s)
    ]
    names = [station.name for station in after.stations]
    return PlanDiff(
        kept_stations,
        [n for n in names if n not in kept_stations],
        [name for name in old_stations if name not in names],
    )


def _check_files(before: Plan, after: Plan) -> None:
    """Raise an error for a query that would continue in another file, or in one with other columns."""
    known = {query.name: query for query in before.queries if isinstance(query.sink, Mapping)}
    for query in after.queries:
        old = known.get(query.name)
        if old is None or not isinstance(query.sink, Mapping):
            continue
        if old.sink != query.sink:
            raise DsmsError(
                f"query {query.name!r} has its results in {_file(old)}, not in {_file(query)}: a query's file "
                "cannot change; give the query another name too"
            )
        if "csv" in query.sink and _columns(old) != _columns(query):
            raise DsmsError(
                f"query {query.name!r} has other columns than its file {_file(query)}: {_columns(query)}, not "
                f"{_columns(old)}; give the query another name, and another file"
            )


def _file(query: Query) -> str:
    return ", ".join(map(repr, query.sink.values()))


def _columns(query: Query) -> list[str] | None:
    """The columns of a query's file; None: unknown until its first rows."""
    return None if query.node is None else list(io.sink_schema(query.node.schema, is_append_only(query)))


def diff_with_checkpoint(durable: str, table: PlanTable, folder: str, file: str) -> PlanDiff | None:
    """Compare a plan with the checkpoint in a folder; None if it is the plan of the checkpoint."""
    saved, _ = CheckpointStore(Path(folder) / durable).latest()
    if strip_live_table(saved.table) == strip_live_table(table):
        return None
    after = QuerySet(table, Path(folder), file).plan
    return replace(
        diff_plans(saved.query_set.plan, after),
        overwritten_files=_find_overwritten_files(saved.query_set.plan, after, Path(folder)),
    )


def _find_overwritten_files(before: Plan, after: Plan, folder: Path) -> tuple[str, ...]:
    """Existing, non-empty files that new queries would overwrite, perhaps of a removed query."""
    known = {query.name for query in before.queries}
    new = [query.sink for query in after.queries if query.name not in known and isinstance(query.sink, Mapping)]
    files = [folder / str(file) for sink in new for file in sink.values()]
    return tuple(str(file) for file in files if file.is_file() and file.stat().st_size)


def strip_live_table(table: Mapping[str, object]) -> dict[str, object]:
    """A plan without its [live] table: deployment settings may change."""
    return {key: value for key, value in table.items() if key != "live"}


def _is_same_station(one: Station, other: Station) -> bool:
    inputs = [[producer.name for producer in station.inputs] for station in (one, other)]
    return inputs[0] == inputs[1] and _canonical_bytes(one.operator) == _canonical_bytes(other.operator)


def _canonical_bytes(value: object) -> bytes:
    """Bytes that are equal for equal values: pickling twice removes differences of object identity."""
    return serialize(deserialize(serialize(deserialize(serialize(value)))))
