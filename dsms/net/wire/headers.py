"""Encodes, decodes and checks frame headers: a msgpack map with the message's type and its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgpack

from dsms.data.batch import NULLS_SUFFIX
from dsms.data.schema import DTYPES, Schema
from dsms.errors import existing
from dsms.net.wire.messages import (
    PROTOCOL_VERSION,
    QUOTED_CHARACTERS,
    Ack,
    Advance,
    Bye,
    End,
    Error,
    HeaderOnlyMessage,
    Hello,
    Schemas,
    Subscribe,
    Unsubscribe,
    WireError,
    quote,
)

Header = dict[str, Any]
Check = Callable[[object, str], Any]

INT64_MAX = 2**63 - 1
ITEM_LIMIT = 4096  # of one list or map: msgpack allocates as many as the sender announces
HEADER_LIMIT_BYTES = 256 * 1024  # the largest header holds the schemas of a plan


def check_text(value: object, what: str) -> str:
    """Return the value if it is a string."""
    if not isinstance(value, str):
        raise WireError(f"{what} is {quote(value)}; expected a string")
    return value


def check_int64(value: object, what: str, least: int = -INT64_MAX - 1) -> int:
    """Return the value if it is an integer of 64 bits, at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= INT64_MAX:
        raise WireError(f"{what} is {quote(value)}; expected an integer from {least} to {INT64_MAX}")
    return value


def check_count(value: object, what: str) -> int:
    """Return the value if it is an integer of at least 0."""
    return check_int64(value, what, 0)


def check_list(value: object, what: str) -> list[Any]:
    """Return the value if it is a list."""
    if not isinstance(value, list):
        raise WireError(f"{what} is {quote(value)}; expected a list")
    return value


def _check_optional_count(value: object, what: str) -> int | None:
    return None if value is None else check_count(value, what)


def _check_optional_text(value: object, what: str) -> str | None:
    return None if value is None else check_text(value, what)


def _check_secret(value: object, what: str) -> str:
    """Return the value if it is a string; the error does not repeat it, even if it is not one."""
    if not isinstance(value, str):
        raise WireError(f"{what} is a {type(value).__name__}; expected a string")
    return value


def _check_version(value: object, what: str) -> int:
    if value != PROTOCOL_VERSION or isinstance(value, bool):
        raise WireError(f"{what} is {quote(value)}; this side supports protocol version {PROTOCOL_VERSION}", lost=True)
    return PROTOCOL_VERSION


HEADER_ONLY_MESSAGES: dict[str, tuple[type[HeaderOnlyMessage], dict[str, Check]]] = {
    "hello": (Hello, {"version": _check_version, "producer": check_text, "token": _check_secret}),
    "ack": (Ack, {"producer": check_text, "sequence": check_count}),
    "error": (Error, {"reason": check_text, "sequence": _check_optional_count, "query": _check_optional_text}),
    "subscribe": (Subscribe, {"query": check_text, "after": _check_optional_count}),
    "unsubscribe": (Unsubscribe, {"query": check_text}),
    "advance": (Advance, {"stream": check_text, "upto": check_int64}),
    "end": (End, {"stream": check_text}),
    "bye": (Bye, {}),
}
MESSAGE_NAMES = {kind: name for name, (kind, _) in HEADER_ONLY_MESSAGES.items()}


def encode_header(header: Header) -> bytes:
    """Return the header as msgpack bytes."""
    try:
        data: bytes = msgpack.packb(header)
    except UnicodeEncodeError as error:
        raise WireError(f"{header['type']} frame: text that UTF-8 cannot encode: {error.reason}") from None
    if len(data) > HEADER_LIMIT_BYTES:
        raise WireError(f"{header['type']} frame: a header of {len(data)} bytes; the limit is {HEADER_LIMIT_BYTES}")
    return data


def decode_header(data: memoryview) -> Header:
    """Parse a header; checks only that it is a map with a type."""
    try:
        header = msgpack.unpackb(
            data,
            max_array_len=ITEM_LIMIT,
            max_map_len=ITEM_LIMIT,
            max_ext_len=0,
            object_pairs_hook=_make_map,
        )
    except (ValueError, TypeError) as error:
        raise WireError(f"the header is not valid msgpack: {_describe(error)}") from None
    if not isinstance(header, dict):
        raise WireError(f"the header is {quote(header)}; expected a map")
    check_text(header.get("type"), "the frame type")
    return header


def check_keys(header: Header, keys: Iterable[str]) -> None:
    """Refuse a header unless its keys are `type` and exactly these."""
    expected = {"type", *keys}
    if header.keys() != expected:
        missing, unknown = sorted(expected - header.keys()), sorted(header.keys() - expected)
        problem = f"missing keys {missing}" if missing else f"unknown key {quote(unknown[0])}"
        raise WireError(f"{header['type']} frame: {problem}; expected {sorted(expected)}")


def make_header(message: HeaderOnlyMessage) -> Header:
    """Make the header of a message that has no buffers."""
    name = MESSAGE_NAMES[type(message)]
    checks = HEADER_ONLY_MESSAGES[name][1]
    return {"type": name, **{key: check(getattr(message, key), f"{name}: {key}") for key, check in checks.items()}}


def parse_message(header: Header) -> HeaderOnlyMessage:
    """Make a message from the header of a frame without buffers."""
    name = header["type"]
    kind, checks = HEADER_ONLY_MESSAGES[name]
    if name == "hello":  # first: another version may have other keys
        _check_version(header.get("version"), "hello: version")
    check_keys(header, checks)
    return kind(**{key: check(header[key], f"{name}: {key}") for key, check in checks.items()})


def make_schemas_header(message: Schemas) -> Header:
    """Make the header of a schemas message."""
    schemas = {"streams": message.streams, "queries": message.queries}
    return {"type": "schema", **{key: _schemas_to_lists(each, key) for key, each in schemas.items()}}


def parse_schemas(header: Header) -> Schemas:
    """Make a schemas message from its header."""
    check_keys(header, ("streams", "queries"))
    return Schemas(_schemas_from_lists(header["streams"], "streams"), _schemas_from_lists(header["queries"], "queries"))


def _schemas_to_lists(named: Mapping[str, Schema], what: str) -> dict[str, list[list[str]]]:
    lists = {name: [list(field) for field in schema.fields] for name, schema in named.items()}
    for items in (lists, *lists.values()):
        if len(items) > ITEM_LIMIT:
            raise WireError(f"schema: {len(items)} {what}, or columns of one of them; the limit is {ITEM_LIMIT}")
    return lists


def _schemas_from_lists(value: object, what: str) -> dict[str, Schema]:
    if not isinstance(value, dict):
        raise WireError(f"schema: {what} is {quote(value)}; expected a map from names to columns")
    return {name: _schema(check_list(columns, f"schema of {quote(name)}"), name) for name, columns in value.items()}


def _schema(columns: list[Any], name: str) -> Schema:
    types: dict[str, str] = {}
    for each in columns:
        match each:
            case [str(column), str(kind)] if column and NULLS_SUFFIX not in column and column not in types:
                if kind not in DTYPES:
                    raise WireError(f"schema of {quote(name)}: no type {quote(kind)}{existing('', DTYPES)}")
                types[column] = kind
            case _:
                place = f"schema of {quote(name)}, column {len(types) + 1}"
                raise WireError(
                    f"{place}: {quote(each)}; expected a type and a unique name, not empty, without {NULLS_SUFFIX!r}"
                )
    return Schema(tuple(types.items()))


def _make_map(pairs: list[tuple[str, Any]]) -> Header:
    """Make a map from pairs, and refuse duplicate keys, of which msgpack would keep the last, and keys not strings."""
    header = dict(pairs)
    if len(header) != len(pairs):
        raise ValueError("duplicate key in a map")
    if not all(isinstance(key, str) for key in header):
        raise ValueError("a map key is not a string")
    return header


def _describe(error: Exception) -> str:
    """Return the error's text, cut to a line, or its class name if it has no text."""
    return str(error)[: 2 * QUOTED_CHARACTERS] or type(error).__name__
