"""The wire: what is sent comes as it was, however it is cut; what is not right is refused with the reason."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Batch, DsmsError
from dsms.batch import NULLS
from dsms.schema import DTYPES, Schema
from dsms.wire import (
    LIMIT,
    Ack,
    Advance,
    Bye,
    Credit,
    Data,
    Decoder,
    End,
    Error,
    Hello,
    Message,
    Result,
    Schemas,
    Subscribe,
    Unsubscribe,
    WireError,
    encoded,
)

EXACT = settings(derandomize=True, database=None, deadline=None, max_examples=150)
MIXED = Schema.of({"n": "int64", "x": "float64", "ok": "bool", "at": "timestamp", "who": "string"})
PAIR = Schema.of({"n": "int64", "who": "string"})
ROWS = Batch.of(
    {
        "n": [1, 2, 3],
        "x": [0.5, -1.0, np.inf],
        "ok": [True, False, True],
        "at": [7, 8, 9],
        "who": np.array(["ann", "", "çé🜁"], dtype=object),
        "who?": [False, True, False],
    },
    arrived=[0.25, 0.5, 0.75],
)
DATA = Data("s", 5, ROWS, MIXED)
RESULT = Result("q", 6, replace(ROWS, arrived=0.0, ts=np.array([1, 2, 3]), sign=np.array([1, -1, 1])), MIXED)
PLAIN: list[Message] = [
    Hello("sensor-1", "secret"),
    Schemas({"s": MIXED, "empty": Schema(())}, {"q": PAIR}),
    Ack("sensor-1", 2**63 - 1),
    Error("no such stream"),
    Error("no such stream", 0),
    Error("no such query", query="q"),
    Credit(16, 1 << 20),
    Subscribe("q"),
    Subscribe("q", 7),
    Unsubscribe("q"),
    Advance("s", -(2**63)),
    End("s"),
    Bye(),
]


def sent(*messages: Message) -> bytes:
    return b"".join(part for message in messages for part in encoded(message))


def decoder(**options: Any) -> Decoder:
    return Decoder({"s": MIXED, "pair": PAIR, "bare": Schema(())}, {"q": MIXED}, **options)


def raw(header: object, *buffers: bytes, fill: bytes = b"\0") -> bytes:
    """A frame of a header, packed or to be packed, and buffers, with nothing checked."""
    head = header if isinstance(header, bytes) else msgpack.packb(header)
    body = b"".join(part + fill * (-len(part) % 8) for part in (head, *buffers))
    return struct.pack("<II", len(body), len(head)) + body


def told(found: Iterable[Message | WireError]) -> list[Any]:
    """What came in a form that can be compared: columns as bytes, no nulls the same as none marked."""
    return [_told(each) for each in found]


def _told(found: Message | WireError) -> Any:
    if isinstance(found, WireError):
        return found.reason, found.lost, found.sequence
    if not isinstance(found, Data | Result):
        return found
    batch, columns = found.batch, {}
    for name, kind in found.schema.fields:
        values = batch.columns[name]
        assert (values.dtype, values.shape) == (DTYPES[kind], (batch.rows,))
        nulls = batch.columns.get(name + NULLS, np.zeros(batch.rows, bool))
        assert (nulls.dtype, nulls.shape) == (np.dtype(bool), (batch.rows,))
        columns[name] = values.tolist() if kind == "string" else values.tobytes(), nulls.tolist()
    each = ("ts", "sign") if isinstance(found, Result) else ("arrived",)
    attributes = [batch.each(name).tolist() for name in each]
    return type(found), found.schema, found.sequence, batch.rows, attributes, columns


def refused(data: bytes) -> WireError:
    """The one error that this frame gives; the frame after it is understood unless the framing is lost."""
    error, *after = decoder().feed(data + sent(Bye()))
    assert isinstance(error, WireError)
    assert after == ([] if error.lost else [Bye()])
    return error


names = st.text(min_size=1, max_size=8).filter(lambda name: "?" not in name and "." not in name)
int64s = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1, 0]))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": int64s,
    "timestamp": int64s,
    "float64": st.floats(),
    "bool": st.booleans(),
    "string": st.one_of(st.text(max_size=12), st.text("abc", max_size=3)),
}


@st.composite
def batches(draw: st.DrawFn) -> tuple[Schema, Batch]:
    """Any rows of any schema."""
    schema = Schema.of(draw(st.dictionaries(names, st.sampled_from(sorted(DTYPES)), max_size=5)))
    rows = draw(st.integers(0, 20))
    columns = {}
    for name, kind in schema.fields:
        values = draw(st.lists(VALUES[kind], min_size=rows, max_size=rows))
        columns[name] = np.array(values, dtype=DTYPES[kind])
        if draw(st.booleans()):
            columns[name + NULLS] = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), dtype=bool)
    return schema, Batch(columns, rows)


@EXACT
@given(batches(), st.data())
def test_any_rows_of_any_schema_come_as_they_were_sent(given: tuple[Schema, Batch], draws: st.DataObject) -> None:
    schema, batch = given

    def each(of: st.SearchStrategy[Any], dtype: str) -> np.ndarray[Any, Any]:
        return np.array(draws.draw(st.lists(of, min_size=batch.rows, max_size=batch.rows)), dtype)

    arrived = each(st.floats(allow_nan=False, allow_infinity=False), "f8") if draws.draw(st.booleans()) else 0.0
    sign = each(st.sampled_from([1, -1]), "i8") if draws.draw(st.booleans()) else draws.draw(st.sampled_from([1, -1]))
    data = Data("s", 1, replace(batch, arrived=arrived), schema)
    result = Result("q", 2, replace(batch, ts=each(int64s, "i8"), sign=sign), schema)
    assert told(Decoder({"s": schema}, {"q": schema}).feed(sent(data, result))) == told([data, result])


def test_every_other_message_comes_as_it_was_sent() -> None:
    assert decoder().feed(sent(*PLAIN)) == PLAIN


@EXACT
@given(st.lists(st.integers(0, 60), max_size=80))
def test_any_cutting_of_the_bytes_gives_the_same_messages(lengths: list[int]) -> None:
    stream = sent(DATA, PLAIN[0]) + raw({"type": "huh"}) + raw(b"\xc1") + sent(RESULT, *PLAIN, DATA)
    whole, cut, at = told(decoder().feed(stream)), decoder(), 0
    found: list[Message | WireError] = []
    for length in lengths:
        found += cut.feed(stream[at : at + length])
        at += length
    assert told(found + cut.feed(stream[at:])) == whole
    assert cut.held == 0


def test_byte_by_byte_is_the_same_up_to_where_the_framing_is_lost() -> None:
    stream = sent(DATA, RESULT) + b"GET / HTTP/1.1\r\n" + sent(*PLAIN)
    single = decoder()
    found = [each for byte in stream for each in single.feed(bytes([byte]))]
    assert told(found) == told(decoder().feed(stream))
    assert [type(each) for each in found] == [Data, Result, WireError]
    assert single.lost


def test_a_small_frame_has_these_bytes() -> None:
    columns = {"n": [1, -2], "n?": [False, True], "who": np.array(["é", "b"], dtype=object)}
    assert sent(Data("s", 3, Batch.of(columns), PAIR)).hex(" ", 8) == GOLDEN


GOLDEN = (
    "8800000054000000 "  # 136 bytes follow, 84 of them the header
    "86a474797065a464 617461a673747265 616da173a8736571 75656e636503a472 6f777302aa617474 7269627574657390 "
    "a7636f6c756d6e73 9293a16ea5696e74 363492100193a377 686fa6737472696e 67920c0300000000 "
    "0100000000000000 feffffffffffffff 0200000000000000 "  # n, and that its second is null
    "0000000002000000 0300000000000000 c3a9620000000000"  # who: offsets and text
)


def test_columns_of_numbers_are_not_copied_on_either_side() -> None:
    column = np.arange(1000)
    parts = encoded(Data("s", 1, Batch.of({"n": column}), Schema.of({"n": "int64"})))
    assert any(np.shares_memory(column, np.frombuffer(part, np.uint8)) for part in parts)
    frame = b"".join(parts)
    (data,) = Decoder({"s": Schema.of({"n": "int64"})}).feed(frame)
    assert isinstance(data, Data)
    came = data.batch.columns["n"]
    assert np.shares_memory(came, np.frombuffer(frame, np.uint8))
    assert (came.flags.aligned, came.flags.writeable) == (True, False)


@pytest.mark.parametrize("cut", range(0, 24))
def test_columns_are_aligned_however_the_bytes_were_cut(cut: int) -> None:
    stream, cutting = sent(DATA, DATA, DATA), decoder()
    for data in cutting.feed(stream[:cut]) + cutting.feed(stream[cut:]):
        assert isinstance(data, Data)
        assert all(column.flags.aligned for column in data.batch.columns.values())


def test_a_buffer_that_the_caller_uses_again_does_not_change_what_came() -> None:
    buffer = bytearray(sent(DATA))
    found = decoder().feed(buffer)
    buffer[:] = bytes(len(buffer))
    assert told(found) == told([DATA])


def test_columns_with_strides_and_numpy_s_own_texts_and_times_are_sent_too() -> None:
    columns = {
        "n": np.arange(6, dtype=np.int32)[::2],
        "x": np.array([1, 2, 3]),
        "ok": np.array([True, False] * 3)[::2],
        "at": np.array([7, 8, 9], "datetime64[us]"),
        "who": np.array(["a", "b", "c"]),
    }
    (data,) = decoder().feed(sent(Data("s", 1, Batch(columns, 3), MIXED)))
    assert isinstance(data, Data)
    assert data.batch.records()[2] == {"n": 4, "x": 3.0, "ok": True, "at": 9, "who": "c"}


@pytest.mark.parametrize("texts", [["ab", "", "c"], ["é", "", "b🜁"]])
def test_many_texts_come_as_they_were_sent(texts: list[str]) -> None:
    schema, column = Schema.of({"w": "string"}), np.array(texts * 20_000, dtype=object)
    (data,) = Decoder({"s": schema}).feed(sent(Data("s", 1, Batch.of({"w": column}), schema)))
    assert isinstance(data, Data)
    assert data.batch.columns["w"].tolist() == column.tolist()


def header(**changes: Any) -> dict[str, Any]:
    """The header of a good frame of two rows for `pair`, changed."""
    columns = [["n", "int64", [16]], ["who", "string", [12, 3]]]
    good = {"type": "data", "stream": "pair", "sequence": 9, "rows": 2, "attributes": [], "columns": columns}
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


NUMBERS, OFFSETS, TEXT = struct.pack("<qq", 1, 2), struct.pack("<iii", 0, 1, 3), b"abc"
GOOD = (NUMBERS, OFFSETS, TEXT)
N, WHO = ["n", "int64", [16]], ["who", "string", [12, 3]]
STAMPED, TS = {"type": "result", "stream": ..., "query": "q"}, ["ts", "timestamp", [16]]


def pair(*columns: Any) -> dict[str, Any]:
    return header(columns=list(columns))


def test_the_frame_that_the_bad_ones_are_made_from_is_good() -> None:
    (data,) = decoder().feed(raw(header(), *GOOD))
    assert isinstance(data, Data)
    assert data.batch.records() == [{"n": 1, "who": "a"}, {"n": 2, "who": "bc"}]


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (raw(b"\xc1"), "not msgpack"),
        (raw(b"\x82\xa4type\xa3bye"), "not msgpack .*incomplete"),
        (raw(b"\x82\xa4type\xa3bye\xa4type\xa3bye"), "a key of a map comes twice"),
        (raw(b"\x81\xa4type\xa3bye\xc0"), "not msgpack .*extra data"),
        (raw(b"\x81\xa4type\xa3b\xffe"), "not msgpack .*utf-8"),
        (raw(b"\x81\x01\x02"), "not msgpack .*int is not allowed for map key"),
        (raw(b"\x81\xc4\x01a\x02"), "a key of a map is no string"),
        (raw(b"\x91" * 5000 + b"\xc0"), "not msgpack .*"),
        (raw(msgpack.packb(msgpack.ExtType(1, b"code"))), "not msgpack .*max_ext_len"),
        (raw(list(range(5000))), "not msgpack .*max_array_len"),
        (raw({str(key): 0 for key in range(5000)}), "not msgpack .*max_map_len"),
        (raw([1, 2]), "the header is a list of 2; a map is wanted"),
        (raw({}), "the type of the frame is None; a string is wanted"),
        (raw({"type": "date"}), r"no type of frame 'date' \(did you mean 'data'\?\); there are \['ack'"),
        (raw({"type": "x" * 9999}), "no type of frame 'x{60}'…; there are"),
        (raw({"type": "ack", "producer": "p"}), r"ack frame: lacks \['sequence'\]"),
        (raw({"type": "bye", "cruel": 1}), "bye frame: has 'cruel', which is not known"),
        (raw({"type": "bye"}, b"more"), "8 bytes follow the last buffer"),
        (raw({"type": "bye"}, fill=b"\1"), "the header: filled up with .*; zeros are wanted"),
        (raw({"type": "end", "stream": 5}), "end: stream is 5; a string is wanted"),
        (raw({"type": "credit", "frames": -1, "bytes": 0}), "credit: frames is -1; a whole number from 0"),
        (raw({"type": "credit", "frames": True, "bytes": 0}), "credit: frames is True"),
        (raw({"type": "advance", "stream": "s", "upto": 2**63}), "advance: upto is 9223372036854775808"),
        (raw({"type": "error", "reason": "r", "sequence": 0.5, "query": None}), "error: sequence is 0.5"),
        (raw({"type": "schema", "streams": [], "queries": {}}), "streams is a list of 0; a map"),
        (raw({"type": "schema", "streams": {"s": {}}, "queries": {}}), "schema of 's' is a dict of 0; a list"),
        (raw({"type": "schema", "streams": {"s": [["a", "int32"]]}, "queries": {}}), "'int32' is no type; there are"),
        (raw({"type": "schema", "streams": {"s": [["a?", "bool"]]}, "queries": {}}), "column 1: a list of 2; a name"),
        (raw({"type": "schema", "streams": {"s": [["a", "bool"]] * 2}, "queries": {}}), "column 2: .*new"),
        (raw(header(stream="pear"), *GOOD), r"data: no stream 'pear' \(did you mean 'pair'\?\); there are"),
        (raw(header(sequence=-1), *GOOD), "data: sequence is -1"),
        (raw(header(rows=-2), *GOOD), "data of 'pair': rows is -2"),
        (raw(header(rows=2**21), *GOOD), "2097152 rows, 2097152 strings; at most 1048576"),
        (raw(header(stream="bare", rows=2**40, columns=[])), "1099511627776 rows, 0 strings; at most"),
        (raw(header(rows=3), *GOOD), "column 'n': a buffer of 16 bytes; 24 are wanted for 3 rows of int64"),
        (raw(header(rows=...), *GOOD), r"data frame: lacks \['rows'\]"),
        (raw(pair(N), NUMBERS), "no column 'who'; string is wanted"),
        (raw(pair(N, WHO, ["m", "bool", [2]]), *GOOD, b"\0\1"), "no column 'm' is declared; there are"),
        (raw(pair(N, WHO, N), *GOOD, NUMBERS), "columns twice or out of order"),
        (raw(pair(WHO, N), OFFSETS, TEXT, NUMBERS), r"out of order; \['n', 'who'\] are wanted"),
        (raw(pair(["n", "float64", [16]], WHO), *GOOD), "column 'n' is 'float64'; int64 is wanted"),
        (raw(pair(["n", "object", [16]], WHO), *GOOD), "column 'n' is 'object'; int64 is wanted"),
        (raw(pair(["n", "int64", [-16]], WHO), *GOOD), "bytes of a buffer is -16"),
        (raw(pair(["n", "int64", 16], WHO), *GOOD), "columns: a list of 3; a name, a type and the bytes"),
        (raw(pair(["n", "int64", []], WHO), *GOOD), "0 buffers; 1 are wanted for int64"),
        (raw(pair(N, ["who", "string", [12, 3, 1, 1]]), *GOOD, b"\0", b"\0"), "4 buffers; 3 are wanted"),
        (raw(pair(["n", "int64", [16, 2]], WHO), NUMBERS, b"\0\0"), "a buffer of 2 bytes; 1 are wanted"),
        (raw(pair(["n", "int64", [16, 1]], WHO), NUMBERS, b"\4", OFFSETS, TEXT), "nulls are said of rows after"),
        (raw(header(), NUMBERS, OFFSETS), "column 'who': 3 bytes are announced, 0 are left"),
        (raw(pair(N, ["who", "string", [12, 2**40]]), *GOOD), "1099511627776 bytes are announced, 8 are left"),
        (raw(header(), *GOOD, b"more"), "8 bytes follow the last buffer; none are wanted"),
        (raw(header(), NUMBERS, struct.pack("<iii", 1, 1, 3), TEXT), "offsets run from 1 to 3; 0 to 3"),
        (raw(header(), NUMBERS, struct.pack("<iii", 0, 1, 4), TEXT), "offsets run from 0 to 4; 0 to 3"),
        (raw(header(), NUMBERS, struct.pack("<iii", 0, 9, 3), TEXT), "offsets go back"),
        (raw(header(), NUMBERS, struct.pack("<iii", 0, -1, 3), TEXT), "offsets go back"),
        (raw(header(), NUMBERS, OFFSETS, b"a\xff\xfe"), "a value is not UTF-8: invalid start byte"),
        (raw(header(), NUMBERS, OFFSETS, "éa".encode()), "a value is not UTF-8: unexpected end of data"),
        (raw(header(attributes=[["arrived", "int64", [16]]]), NUMBERS, *GOOD), r"attributes .*; one of \(\[\], \[\("),
        (raw(header(attributes=[["arrived", "float64", [16, 1]]]), NUMBERS, b"\1", *GOOD), "'arrived' has nulls"),
        (raw(header(attributes=[["arrived", "float64", [16]]]), b"\xff" * 16, *GOOD), "arrival is not finite"),
        (raw(header(**STAMPED), *GOOD), "result of 'q': attributes '\\[\\]'; one of"),
        (raw(header(**STAMPED, attributes=[TS, ["sign", "int8", [2]]]), NUMBERS, b"\0\1"), "a sign is neither 1 nor"),
    ],
)  # fmt: skip
def test_a_wrong_frame_is_refused_with_the_reason_and_the_next_one_is_read(frame: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=f"(?i){reason}") as caught:
        raise refused(frame)
    assert not caught.value.lost
    assert len(caught.value.reason) < 500


def test_a_bool_is_one_of_two_bytes() -> None:
    schema = Schema.of({"ok": "bool"})
    frame = raw(header(columns=[["ok", "bool", [2]]], stream="b"), b"\1\2")
    (error,) = Decoder({"b": schema}).feed(frame)
    assert str(error) == "data of 'b': column 'ok': a bool is the byte 2; 0 or 1 is wanted"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack("<II", LIMIT + 8, 8), "a frame of 67108872 bytes is announced; at most 67108864 are taken"),
        (struct.pack("<II", 2**32 - 1, 8), "a frame of 4294967295 bytes is announced"),
        (struct.pack("<II", 12, 8), "a multiple of 8"),
        (struct.pack("<II", 16, 17), "16 bytes with 17 of header"),
        (struct.pack("<II", 16, 0), "16 bytes with 0 of header"),
        (struct.pack("<II", 0, 0), "0 bytes with 0 of header"),
        (struct.pack("<II", 2**20, 2**19), "with 524288 of header"),
        (b"GET / HTTP/1.1\r\n", "a frame of 542393671 bytes is announced"),
        (raw({"type": "hello", "version": 2, "who": "me"}), "hello: version is 2; this side speaks 1"),
        (raw({"type": "hello", "version": True}), "hello: version is True"),
    ],
)
def test_where_the_framing_is_lost_nothing_more_is_read(data: bytes, reason: str) -> None:
    error = refused(data)
    assert error.lost
    assert reason in error.reason


def test_an_error_says_which_data_frame_it_is_about() -> None:
    assert [refused(raw(header(rows=rows, sequence=9), *GOOD)).sequence for rows in (3, "x")] == [9, 9]
    assert [refused(raw(header(sequence=s), *GOOD)).sequence for s in (-1, True, 2**63, "x")] == [None] * 4


def test_a_side_that_learns_reads_rows_by_the_schemas_it_is_told() -> None:
    stream = sent(Schemas({"s": MIXED}, {"q": MIXED}), DATA, RESULT)
    assert told(Decoder(learns=True).feed(stream))[1:] == told([DATA, RESULT])
    assert [type(found) for found in Decoder().feed(stream)] == [Schemas, WireError, WireError]


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(Hello("p", "secret"))
    assert "secret" not in str(refused(raw({"type": "hello", "version": 1, "producer": 5, "token": "secret"})))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Data("s", -1, ROWS, MIXED), "data of 's': sequence is -1"),
        (Data("s", 1, ROWS, PAIR), "no column 'at' is declared"),
        (Data("s", 1, Batch.of({"n": [1]}), PAIR), "no column 'who'"),
        (Data("s", 1, Batch.of({"n": [0.5]}), Schema.of({"n": "int64"})), "column 'n' is float64: int64 is wanted"),
        (Data("s", 1, Batch({"n": np.arange(3)}, 2), Schema.of({"n": "int64"})), r"the shape \(3,\); one .* 2 rows"),
        (Data("s", 1, Batch.of({"n": [1], "n?": [1]}), Schema.of({"n": "int64"})), "is int64: bool is wanted"),
        (Data("s", 1, Batch.of({"w": np.array([None])}), Schema.of({"w": "string"})), "'w' has a value that is no"),
        (Data("s", 1, Batch.of({"w": ["\ud800"]}), Schema.of({"w": "string"})), "'w' has a value that UTF-8 cannot"),
        (Data("s", 1, replace(ROWS, sign=-1), MIXED), "rows with the sign -1"),
        (Data("s", 1, Batch(rows=2**20 + 1), Schema(())), "1048577 rows"),
        (Data("s", 1, Batch(rows=2**19 + 1), Schema.of(dict.fromkeys("ab", "string"))), "524289 rows, 1048578 strings"),
        (Ack("p", -5), "ack: sequence is -5"),
        (End("\udcff"), "end frame: text that UTF-8 cannot"),
        (Hello("p", "t", version=9), "hello: version is 9"),
        (Error("x" * 300_000), "error frame: a header of 300041 bytes; at most 262144"),
        (Schemas({str(n): PAIR for n in range(5000)}), "schema: 5000 streams"),
    ],
)
def test_what_the_other_side_would_refuse_is_not_sent(message: Message, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        encoded(message)


def test_a_frame_beyond_the_limit_is_neither_sent_nor_taken() -> None:
    length = len(sent(DATA)) - 8
    assert told(decoder(limit=length).feed(b"".join(encoded(DATA, limit=length)))) == told([DATA])
    with pytest.raises(WireError, match=f"data frame: {length} bytes; at most {length - 8} go: cut the batch"):
        encoded(DATA, limit=length - 8)
    (error,) = decoder(limit=length - 8).feed(sent(DATA)[:8])
    assert isinstance(error, WireError)
    assert error.lost
    with pytest.raises(DsmsError, match="a limit of 0 bytes"):
        Decoder(limit=0)


def mutated(frame: bytes, dice: random.Random) -> bytes:
    """The frame with a few bytes flipped, put in, taken out or doubled."""
    data = bytearray(frame)
    for _ in range(dice.choice((1, 1, 2, 5))):
        at = dice.randrange(dice.choice((8, 200, len(data)))) % max(len(data), 1)
        match dice.randrange(5):
            case 0:
                data[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                data[at : at + 1] = bytes([(data[at] if data else 0) ^ 1 << dice.randrange(8)])
            case 2:
                data[at:at] = dice.randbytes(dice.randrange(1, 9))
            case 3:
                del data[at : at + dice.randrange(1, 9)]
            case 4:
                data[at:at] = data[at : at + dice.randrange(1, 40)]
    body = len(data) - 8
    if body >= 8 and dice.random() < 0.6:  # what is wrong lies within the frame then, not in where it ends
        data += bytes(-body % 8)
        data[:4] = struct.pack("<I", len(data) - 8)
    return bytes(data)


def mutations(count: int, seed: int) -> Iterable[bytes]:
    dice, frames = random.Random(seed), [sent(message) for message in (DATA, RESULT, DATA, RESULT, *PLAIN)]
    return (mutated(dice.choice(frames), dice) for _ in range(count))


def test_thousands_of_damaged_frames_are_refused_or_mean_something_else_that_is_valid() -> None:
    refusals = valid = lost = 0
    for data in mutations(20_000, seed=1):
        for found in decoder(limit=4096).feed(data):
            if isinstance(found, WireError):
                refusals, lost = refusals + 1, lost + found.lost
            else:
                valid += 1
                assert told(decoder().feed(sent(found))) == told([found])
    assert min(refusals - lost, lost, valid) > 1000  # each way out is taken often


def peak(data: bytes, **options: Any) -> int:
    """The most memory that is taken while these bytes are read."""
    tracemalloc.start()
    try:
        decoder(**options).feed(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_damaged_frames_take_no_memory_beyond_their_size() -> None:
    assert max(peak(data, limit=4096) for data in mutations(1000, seed=2)) < 256 * 1024


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<II", 2**32 - 8, 64),
        struct.pack("<II", LIMIT, 64),  # announced, and then nothing comes
        raw((b"\xdc\x0f\xff" * 1000) + b"\xc0"),  # lists in lists, each said to be long
        raw((b"\xdd\x00\x03\xff\xff" * 1000) + b"\xc0"),
        raw(b"\xdc\x0f\xff" + (b"\xdc\x0f\xff" + b"\x80" * 4095) * 60),  # many maps of nothing
        raw(b"\xdb\xff\xff\xff\xffa"),
        raw(header(rows=2**20), *GOOD),
        raw(header(stream="bare", rows=2**62, columns=[])),
    ],
)  # fmt: skip
def test_what_is_announced_but_not_sent_takes_no_memory(data: bytes) -> None:
    assert peak(data) < LIMIT / 2


def test_the_rate_is_reported(record_property: Callable[[str, object], None]) -> None:
    schema = Schema.of(dict.fromkeys("abcd", "int64"))
    data = Data("s", 1, Batch.of({name: np.arange(10_000) for name in "abcd"}), schema)
    frame, reader = sent(data), Decoder({"s": schema})
    for name, work in (("pack", lambda: encoded(data)), ("unpack", lambda: reader.feed(frame))):
        start = time.perf_counter()
        for _ in range(200):
            work()
        rate = f"{(time.perf_counter() - start) / 200 * 1e6:.0f} us for 4 columns of 10,000 int64"
        record_property(name, rate)
        print(name, rate)  # seen with -s
    assert told(reader.feed(frame)) == told([data])
