"""The msgpack map at the head of every frame: what kind of message it is, and its small values, each checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgpack

from dsms.batch import NULLS
from dsms.errors import existing
from dsms.schema import DTYPES, Schema
from dsms.wire.messages import (
    SHOWN,
    VERSION,
    Ack,
    Advance,
    Bye,
    Credit,
    End,
    Error,
    Hello,
    Plain,
    Schemas,
    Subscribe,
    Unsubscribe,
    WireError,
    shown,
)

Header = dict[str, Any]
Check = Callable[[object, str], Any]

HIGHEST = 2**63 - 1
MOST_ITEMS = 4096  # of one list or map: msgpack makes room for as many as are announced
MOST_BYTES = 256 * 1024  # of a header: the largest is a plan's schemas


def text(value: object, what: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise WireError(f"{what} is {shown(value)}; a string is wanted")
    return value


def instant(value: object, what: str, least: int = -HIGHEST - 1) -> int:
    """A whole number of 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= HIGHEST:
        raise WireError(f"{what} is {shown(value)}; a whole number from {least} to {HIGHEST} is wanted")
    return value


def count(value: object, what: str) -> int:
    """A whole number, not negative."""
    return instant(value, what, 0)


def items(value: object, what: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise WireError(f"{what} is {shown(value)}; a list is wanted")
    return value


def _perhaps_count(value: object, what: str) -> int | None:
    return None if value is None else count(value, what)


def _perhaps_text(value: object, what: str) -> str | None:
    return None if value is None else text(value, what)


def _secret(value: object, what: str) -> str:
    """A string that no reason repeats, not even if it is none."""
    if not isinstance(value, str):
        raise WireError(f"{what} is a {type(value).__name__}; a string is wanted")
    return value


def _version(value: object, what: str) -> int:
    if value != VERSION or isinstance(value, bool):
        raise WireError(f"{what} is {shown(value)}; this side speaks {VERSION}", lost=True)
    return VERSION


PLAIN: dict[str, tuple[type[Plain], dict[str, Check]]] = {
    "hello": (Hello, {"version": _version, "producer": text, "token": _secret}),
    "ack": (Ack, {"producer": text, "sequence": count}),
    "error": (Error, {"reason": text, "sequence": _perhaps_count, "query": _perhaps_text}),
    "credit": (Credit, {"frames": count, "bytes": count}),
    "subscribe": (Subscribe, {"query": text, "after": _perhaps_count}),
    "unsubscribe": (Unsubscribe, {"query": text}),
    "advance": (Advance, {"stream": text, "upto": instant}),
    "end": (End, {"stream": text}),
    "bye": (Bye, {}),
}
NAMES = {made: name for name, (made, _) in PLAIN.items()}


def written(header: Header) -> bytes:
    """The header as bytes."""
    try:
        data: bytes = msgpack.packb(header)
    except UnicodeEncodeError as error:
        raise WireError(f"{header['type']} frame: text that UTF-8 cannot hold: {error.reason}") from None
    if len(data) > MOST_BYTES:
        raise WireError(f"{header['type']} frame: a header of {len(data)} bytes; at most {MOST_BYTES} go")
    return data


def read(data: memoryview) -> Header:
    """The header that these bytes are; no value is checked yet but the type's."""
    try:
        header = msgpack.unpackb(
            data,
            max_array_len=MOST_ITEMS,
            max_map_len=MOST_ITEMS,
            max_ext_len=0,
            object_pairs_hook=_once,
        )
    except (ValueError, TypeError) as error:
        raise WireError(f"the header is not msgpack that is understood here: {_why(error)}") from None
    if not isinstance(header, dict):
        raise WireError(f"the header is {shown(header)}; a map is wanted")
    text(header.get("type"), "the type of the frame")
    return header


def only(header: Header, keys: Iterable[str]) -> None:
    """The header has just these keys beside its type."""
    wanted = {"type", *keys}
    if header.keys() != wanted:
        missing, strange = sorted(wanted - header.keys()), sorted(header.keys() - wanted)
        given = f"lacks {missing}" if missing else f"has {shown(strange[0])}, which is not known"
        raise WireError(f"{header['type']} frame: {given}; {sorted(wanted)} are wanted")


def plain(message: Plain) -> Header:
    """The header of a message that is nothing else."""
    name = NAMES[type(message)]
    checks = PLAIN[name][1]
    return {"type": name, **{key: check(getattr(message, key), f"{name}: {key}") for key, check in checks.items()}}


def read_plain(header: Header) -> Plain:
    """The message that such a header is."""
    name = header["type"]
    made, checks = PLAIN[name]
    if name == "hello":  # another version may well have other keys
        _version(header.get("version"), "hello: version")
    only(header, checks)
    return made(**{key: check(header[key], f"{name}: {key}") for key, check in checks.items()})


def schemas(message: Schemas) -> Header:
    """The header that tells columns and types."""
    told = {"streams": message.streams, "queries": message.queries}
    return {"type": "schema", **{key: _told(each, key) for key, each in told.items()}}


def read_schemas(header: Header) -> Schemas:
    """The columns and types that such a header tells."""
    only(header, ("streams", "queries"))
    return Schemas(_heard(header["streams"], "streams"), _heard(header["queries"], "queries"))


def _told(named: Mapping[str, Schema], what: str) -> dict[str, list[list[str]]]:
    told = {name: [list(field) for field in schema.fields] for name, schema in named.items()}
    for some in (told, *told.values()):
        if len(some) > MOST_ITEMS:
            raise WireError(f"schema: {len(some)} {what} or columns of one; at most {MOST_ITEMS} go into one frame")
    return told


def _heard(value: object, what: str) -> dict[str, Schema]:
    if not isinstance(value, dict):
        raise WireError(f"schema: {what} is {shown(value)}; a map from names to columns is wanted")
    return {name: _schema(items(columns, f"schema of {shown(name)}"), name) for name, columns in value.items()}


def _schema(columns: list[Any], name: str) -> Schema:
    types: dict[str, str] = {}
    for each in columns:
        match each:
            case [str(column), str(kind)] if column and NULLS not in column and column not in types:
                if kind not in DTYPES:
                    raise WireError(f"schema of {shown(name)}: {shown(kind)} is no type{existing('', DTYPES)}")
                types[column] = kind
            case _:
                place = f"schema of {shown(name)}, column {len(types) + 1}"
                raise WireError(
                    f"{place}: {shown(each)}; a name, not empty, without {NULLS}, new, and a type are wanted"
                )
    return Schema(tuple(types.items()))


def _once(pairs: list[tuple[str, Any]]) -> Header:
    """A map whose keys are strings and come once each; msgpack itself would keep the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key of a map comes twice")
    if not all(isinstance(key, str) for key in found):
        raise ValueError("a key of a map is no string")
    return found


def _why(error: Exception) -> str:
    """Its text, or its kind where msgpack says no more; never what was sent at length."""
    return str(error)[: 2 * SHOWN] or type(error).__name__
