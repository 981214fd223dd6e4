"""A saved deployment that goes on with another plan: which stations keep their state, which begin empty, which go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from actors.archive import Archive
from actors.messages import pickled, unpickled
from dsms.errors import DsmsError
from dsms.files.sink import written
from dsms.live.roster import Roster
from dsms.outlets import appends
from dsms.plan import Plan, Query, Station


@dataclass(frozen=True)
class Succession:
    """What becomes of the stations of two plans; by name."""

    keeping: list[str]
    beginning: list[str]
    going: list[str]
    emptied: tuple[str, ...] = ()  # files of queries that begin, with something in them

    def __str__(self) -> str:
        parts = (("keep their state", self.keeping), ("start empty", self.beginning), ("go", self.going))
        told = "; ".join(f"{', '.join(names) or 'none'} {what}" for what, names in parts)
        return f"{told}; what is in {', '.join(self.emptied)} is lost" if self.emptied else told


def succession(before: Plan, after: Plan) -> Succession:
    """What there is of one plan in another.

    A stream with other columns is refused, for rows of it may be stored; so is what a query's file cannot go on with.
    """
    streams = {stream.name: stream for stream in before.streams}
    for stream in after.streams:
        known = streams.get(stream.name)
        if known is not None and (known.schema, known.timestamp) != (stream.schema, stream.timestamp):
            raise DsmsError(f"stream {stream.name!r} has other columns than what is stored of it; give it another name")
    _check_files(before, after)
    there = {station.name: station for station in before.stations}
    keeping = [s.name for s in after.stations if s.name in there and _alike(there[s.name], s)]
    names = [station.name for station in after.stations]
    return Succession(keeping, [n for n in names if n not in keeping], [name for name in there if name not in names])


def _check_files(before: Plan, after: Plan) -> None:
    """Refuse queries that would go on in another file than they began, or in one whose header says other columns."""
    known = {query.name: query for query in before.queries if isinstance(query.sink, Mapping)}
    for query in after.queries:
        old = known.get(query.name)
        if old is None or not isinstance(query.sink, Mapping):
            continue
        if old.sink != query.sink:
            raise DsmsError(
                f"query {query.name!r} has its results in {_file(old)} and {_file(query)} is wanted: a query's file "
                "cannot change; give the query another name too"
            )
        if "csv" in query.sink and _columns(old) != _columns(query):
            raise DsmsError(
                f"query {query.name!r} has other columns than its file {_file(query)}, {_columns(query)} instead of "
                f"{_columns(old)}; give the query another name, and another file"
            )


def _file(query: Query) -> str:
    return ", ".join(map(repr, query.sink.values()))


def _columns(query: Query) -> list[str] | None:
    """What a query's file has; None: that is known by its first rows only."""
    return None if query.node is None else list(written(query.node.schema, appends(query)))


def changes(durable: str, table: Mapping[str, Any], folder: str, file: str) -> Succession | None:
    """What becomes of what is saved in a folder with this plan; None: it is the one that it was begun with."""
    saved, _ = Archive(Path(folder) / durable).latest()
    if plain(saved.table) == plain(table):
        return None
    after = Roster(table, Path(folder), file).plan
    return replace(succession(saved.roster.plan, after), emptied=_emptied(saved.roster.plan, after, Path(folder)))


def _emptied(before: Plan, after: Plan, folder: Path) -> tuple[str, ...]:
    """Files that are begun anew though there is something in them, perhaps of a query that was removed."""
    known = {query.name for query in before.queries}
    new = [query.sink for query in after.queries if query.name not in known and isinstance(query.sink, Mapping)]
    files = [folder / str(file) for sink in new for file in sink.values()]
    return tuple(str(file) for file in files if file.is_file() and file.stat().st_size)


def plain(table: Any) -> dict[str, Any]:
    """A plan without how it is deployed: that may change."""
    return {key: value for key, value in table.items() if key != "live"}


def _alike(one: Station, other: Station) -> bool:
    inputs = [[producer.name for producer in station.inputs] for station in (one, other)]
    return inputs[0] == inputs[1] and _form(one.operator) == _form(other.operator)


def _form(value: Any) -> bytes:
    """What two that are equal have in common, wherever they were made: pickled twice, what is chance is lost."""
    return pickled(unpickled(pickled(unpickled(pickled(value)))))
