"""A saved deployment that goes on with another plan: which stations keep their state, which begin empty, which go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.archive import Archive
from actors.messages import pickled, unpickled
from dsms.errors import DsmsError
from dsms.live.roster import Roster
from dsms.plan import Plan, Station


@dataclass(frozen=True)
class Succession:
    """What becomes of the stations of two plans; by name."""

    keeping: list[str]
    beginning: list[str]
    going: list[str]

    def __str__(self) -> str:
        parts = (("keep their state", self.keeping), ("start empty", self.beginning), ("go", self.going))
        return "; ".join(f"{', '.join(names) or 'none'} {what}" for what, names in parts)


def succession(before: Plan, after: Plan) -> Succession:
    """What there is of one plan in another; a stream with other columns is refused, for rows of it may be stored."""
    streams = {stream.name: stream for stream in before.streams}
    for stream in after.streams:
        known = streams.get(stream.name)
        if known is not None and (known.schema, known.timestamp) != (stream.schema, stream.timestamp):
            raise DsmsError(f"stream {stream.name!r} has other columns than what is stored of it; give it another name")
    there = {station.name: station for station in before.stations}
    keeping = [s.name for s in after.stations if s.name in there and _alike(there[s.name], s)]
    names = [station.name for station in after.stations]
    return Succession(keeping, [n for n in names if n not in keeping], [name for name in there if name not in names])


def changes(durable: str, table: Mapping[str, Any], folder: str, file: str) -> Succession | None:
    """What becomes of what is saved in a folder with this plan; None: it is the one that it was begun with."""
    saved, _ = Archive(Path(folder) / durable).latest()
    if plain(saved.table) == plain(table):
        return None
    return succession(saved.roster.plan, Roster(table, Path(folder), file).plan)


def plain(table: Any) -> dict[str, Any]:
    """A plan without how it is deployed: that may change."""
    return {key: value for key, value in table.items() if key != "live"}


def _alike(one: Station, other: Station) -> bool:
    inputs = [[producer.name for producer in station.inputs] for station in (one, other)]
    return inputs[0] == inputs[1] and _form(one.operator) == _form(other.operator)


def _form(value: Any) -> bytes:
    """What two that are equal have in common, wherever they were made: pickled twice, what is chance is lost."""
    return pickled(unpickled(pickled(unpickled(pickled(value)))))
