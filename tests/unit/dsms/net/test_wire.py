"""The wire protocol: messages survive encoding and any split of the bytes; bad frames are refused with a reason."""

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
from dsms.data.batch import NULLS_SUFFIX
from dsms.data.schema import DTYPES, Schema
from dsms.net.wire import (
    FRAME_LIMIT_BYTES,
    Ack,
    Advance,
    Bye,
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
    encode,
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
    Subscribe("q"),
    Subscribe("q", 7),
    Unsubscribe("q"),
    Advance("s", -(2**63)),
    End("s"),
    Bye(),
]


def encode_all(*messages: Message) -> bytes:
    return b"".join(part for message in messages for part in encode(message))


def make_decoder(**options: Any) -> Decoder:
    return Decoder({"s": MIXED, "pair": PAIR, "bare": Schema(())}, {"q": MIXED}, **options)


def raw(header: object, *buffers: bytes, fill: bytes = b"\0") -> bytes:
    """Make a frame from a header, packed or not, and buffers, without any check."""
    head = header if isinstance(header, bytes) else msgpack.packb(header)
    body = b"".join(part + fill * (-len(part) % 8) for part in (head, *buffers))
    return struct.pack("<II", len(body), len(head)) + body


def comparable(messages: Iterable[Message | WireError]) -> list[Any]:
    """Messages in a form that can be compared: columns as bytes, an absent null mask like an empty one."""
    return [_comparable_message(each) for each in messages]


def _comparable_message(message: Message | WireError) -> Any:
    if isinstance(message, WireError):
        return message.reason, message.lost, message.sequence
    if not isinstance(message, Data | Result):
        return message
    batch, columns = message.batch, {}
    for name, kind in message.schema.fields:
        values = batch.columns[name]
        assert (values.dtype, values.shape) == (DTYPES[kind], (batch.rows,))
        nulls = batch.columns.get(name + NULLS_SUFFIX, np.zeros(batch.rows, bool))
        assert (nulls.dtype, nulls.shape) == (np.dtype(bool), (batch.rows,))
        columns[name] = values.tolist() if kind == "string" else values.tobytes(), nulls.tolist()
    names = ("ts", "sign") if isinstance(message, Result) else ("arrived",)
    attributes = [batch.each(name).tolist() for name in names]
    return type(message), message.schema, message.sequence, batch.rows, attributes, columns


def refuse(data: bytes) -> WireError:
    """Return the one error of this frame; checks that the decoder reads the next frame unless the error is fatal."""
    error, *after = make_decoder().feed(data + encode_all(Bye()))
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
    """Draw any rows of any schema."""
    schema = Schema.of(draw(st.dictionaries(names, st.sampled_from(sorted(DTYPES)), max_size=5)))
    rows = draw(st.integers(0, 20))
    columns = {}
    for name, kind in schema.fields:
        values = draw(st.lists(VALUES[kind], min_size=rows, max_size=rows))
        columns[name] = np.array(values, dtype=DTYPES[kind])
        if draw(st.booleans()):
            columns[name + NULLS_SUFFIX] = np.array(
                draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), dtype=bool
            )
    return schema, Batch(columns, rows)


@EXACT
@given(batches(), st.data())
def test_any_rows_of_any_schema_survive_encoding(given: tuple[Schema, Batch], draws: st.DataObject) -> None:
    schema, batch = given

    def draw_array(values: st.SearchStrategy[Any], dtype: str) -> np.ndarray[Any, Any]:
        return np.array(draws.draw(st.lists(values, min_size=batch.rows, max_size=batch.rows)), dtype)

    arrived = draw_array(st.floats(allow_nan=False, allow_infinity=False), "f8") if draws.draw(st.booleans()) else 0.0
    sign = (
        draw_array(st.sampled_from([1, -1]), "i8")
        if draws.draw(st.booleans())
        else draws.draw(st.sampled_from([1, -1]))
    )
    data = Data("s", 1, replace(batch, arrived=arrived), schema)
    result = Result("q", 2, replace(batch, ts=draw_array(int64s, "i8"), sign=sign), schema)
    assert comparable(Decoder({"s": schema}, {"q": schema}).feed(encode_all(data, result))) == comparable(
        [data, result]
    )


def test_every_other_message_survives_encoding() -> None:
    assert make_decoder().feed(encode_all(*PLAIN)) == PLAIN


@EXACT
@given(st.lists(st.integers(0, 60), max_size=80))
def test_any_split_of_the_bytes_gives_the_same_messages(lengths: list[int]) -> None:
    stream = encode_all(DATA, PLAIN[0]) + raw({"type": "huh"}) + raw(b"\xc1") + encode_all(RESULT, *PLAIN, DATA)
    whole, cut, at = comparable(make_decoder().feed(stream)), make_decoder(), 0
    messages: list[Message | WireError] = []
    for length in lengths:
        messages += cut.feed(stream[at : at + length])
        at += length
    assert comparable(messages + cut.feed(stream[at:])) == whole
    assert cut.held == 0


def test_single_bytes_give_the_same_messages_up_to_a_fatal_error() -> None:
    stream = encode_all(DATA, RESULT) + b"GET / HTTP/1.1\r\n" + encode_all(*PLAIN)
    single = make_decoder()
    messages = [each for byte in stream for each in single.feed(bytes([byte]))]
    assert comparable(messages) == comparable(make_decoder().feed(stream))
    assert [type(each) for each in messages] == [Data, Result, WireError]
    assert single.lost


def test_a_small_frame_has_these_bytes() -> None:
    columns = {"n": [1, -2], "n?": [False, True], "who": np.array(["é", "b"], dtype=object)}
    assert encode_all(Data("s", 3, Batch.of(columns), PAIR)).hex(" ", 8) == GOLDEN


GOLDEN = (
    "8800000054000000 "  # 136 bytes follow, 84 of them the header
    "86a474797065a464 617461a673747265 616da173a8736571 75656e636503a472 6f777302aa617474 7269627574657390 "
    "a7636f6c756d6e73 9293a16ea5696e74 363492100193a377 686fa6737472696e 67920c0300000000 "
    "0100000000000000 feffffffffffffff 0200000000000000 "  # column n, and its null bits: the second is null
    "0000000002000000 0300000000000000 c3a9620000000000"  # column who: offsets and text
)


def test_neither_side_copies_columns_of_numbers() -> None:
    column = np.arange(1000)
    parts = encode(Data("s", 1, Batch.of({"n": column}), Schema.of({"n": "int64"})))
    assert any(np.shares_memory(column, np.frombuffer(part, np.uint8)) for part in parts)
    frame = b"".join(parts)
    (data,) = Decoder({"s": Schema.of({"n": "int64"})}).feed(frame)
    assert isinstance(data, Data)
    decoded = data.batch.columns["n"]
    assert np.shares_memory(decoded, np.frombuffer(frame, np.uint8))
    assert (decoded.flags.aligned, decoded.flags.writeable) == (True, False)


@pytest.mark.parametrize("cut", range(0, 24))
def test_columns_are_aligned_for_any_split_of_the_bytes(cut: int) -> None:
    stream, cutting = encode_all(DATA, DATA, DATA), make_decoder()
    for data in cutting.feed(stream[:cut]) + cutting.feed(stream[cut:]):
        assert isinstance(data, Data)
        assert all(column.flags.aligned for column in data.batch.columns.values())


def test_a_caller_may_reuse_its_buffer_without_changing_decoded_messages() -> None:
    buffer = bytearray(encode_all(DATA))
    messages = make_decoder().feed(buffer)
    buffer[:] = bytes(len(buffer))
    assert comparable(messages) == comparable([DATA])


def test_strided_columns_and_numpy_strings_and_times_are_encoded() -> None:
    columns = {
        "n": np.arange(6, dtype=np.int32)[::2],
        "x": np.array([1, 2, 3]),
        "ok": np.array([True, False] * 3)[::2],
        "at": np.array([7, 8, 9], "datetime64[us]"),
        "who": np.array(["a", "b", "c"]),
    }
    (data,) = make_decoder().feed(encode_all(Data("s", 1, Batch(columns, 3), MIXED)))
    assert isinstance(data, Data)
    assert data.batch.records()[2] == {"n": 4, "x": 3.0, "ok": True, "at": 9, "who": "c"}


@pytest.mark.parametrize("texts", [["ab", "", "c"], ["é", "", "b🜁"]])
def test_many_strings_survive_encoding(texts: list[str]) -> None:
    schema, column = Schema.of({"w": "string"}), np.array(texts * 20_000, dtype=object)
    (data,) = Decoder({"s": schema}).feed(encode_all(Data("s", 1, Batch.of({"w": column}), schema)))
    assert isinstance(data, Data)
    assert data.batch.columns["w"].tolist() == column.tolist()


def header(**changes: Any) -> dict[str, Any]:
    """The header of a valid frame of two rows for `pair`, with changes; `...` removes a key."""
    columns = [["n", "int64", [16]], ["who", "string", [12, 3]]]
    good = {"type": "data", "stream": "pair", "sequence": 9, "rows": 2, "attributes": [], "columns": columns}
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


NUMBERS, OFFSETS, TEXT = struct.pack("<qq", 1, 2), struct.pack("<iii", 0, 1, 3), b"abc"
GOOD = (NUMBERS, OFFSETS, TEXT)
N, WHO = ["n", "int64", [16]], ["who", "string", [12, 3]]
STAMPED, TS = {"type": "result", "stream": ..., "query": "q"}, ["ts", "timestamp", [16]]


def pair(*columns: Any) -> dict[str, Any]:
    return header(columns=list(columns))


def test_the_frame_that_the_bad_ones_derive_from_is_valid() -> None:
    (data,) = make_decoder().feed(raw(header(), *GOOD))
    assert isinstance(data, Data)
    assert data.batch.records() == [{"n": 1, "who": "a"}, {"n": 2, "who": "bc"}]


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (raw(b"\xc1"), "not valid msgpack"),
        (raw(b"\x82\xa4type\xa3bye"), "not valid msgpack: .*incomplete"),
        (raw(b"\x82\xa4type\xa3bye\xa4type\xa3bye"), "duplicate key in a map"),
        (raw(b"\x81\xa4type\xa3bye\xc0"), "not valid msgpack: .*extra data"),
        (raw(b"\x81\xa4type\xa3b\xffe"), "not valid msgpack: .*utf-8"),
        (raw(b"\x81\x01\x02"), "not valid msgpack: .*int is not allowed for map key"),
        (raw(b"\x81\xc4\x01a\x02"), "a map key is not a string"),
        (raw(b"\x91" * 5000 + b"\xc0"), "not valid msgpack: .*"),
        (raw(msgpack.packb(msgpack.ExtType(1, b"code"))), "not valid msgpack: .*max_ext_len"),
        (raw(list(range(5000))), "not valid msgpack: .*max_array_len"),
        (raw({str(key): 0 for key in range(5000)}), "not valid msgpack: .*max_map_len"),
        (raw([1, 2]), "the header is a list of 2; expected a map"),
        (raw({}), "the frame type is None; expected a string"),
        (raw({"type": "date"}), r"no frame type 'date' \(did you mean 'data'\?\); there are \['ack'"),
        (raw({"type": "x" * 9999}), "no frame type 'x{60}'…; there are"),
        (raw({"type": "ack", "producer": "p"}), r"ack frame: missing keys \['sequence'\]"),
        (raw({"type": "bye", "cruel": 1}), "bye frame: unknown key 'cruel'"),
        (raw({"type": "bye"}, b"more"), "8 bytes follow the last buffer"),
        (raw({"type": "bye"}, fill=b"\1"), "the header: padded with .*; padding must be zeros"),
        (raw({"type": "end", "stream": 5}), "end: stream is 5; expected a string"),
        (raw({"type": "ack", "producer": "p", "sequence": -1}), "ack: sequence is -1; expected an integer from 0"),
        (raw({"type": "ack", "producer": "p", "sequence": True}), "ack: sequence is True"),
        (raw({"type": "advance", "stream": "s", "upto": 2**63}), "advance: upto is 9223372036854775808"),
        (raw({"type": "error", "reason": "r", "sequence": 0.5, "query": None}), "error: sequence is 0.5"),
        (raw({"type": "schema", "streams": [], "queries": {}}), "streams is a list of 0; expected a map"),
        (raw({"type": "schema", "streams": {"s": {}}, "queries": {}}), "'s' is a dict of 0; expected a list"),
        (raw({"type": "schema", "streams": {"s": [["a", "int32"]]}, "queries": {}}), "no type 'int32'; there are"),
        (raw({"type": "schema", "streams": {"s": [["a?", "bool"]]}, "queries": {}}), "a list of 2; expected a type"),
        (raw({"type": "schema", "streams": {"s": [["a", "bool"]] * 2}, "queries": {}}), "column 2: .*unique"),
        (raw(header(stream="pear"), *GOOD), r"data: no stream 'pear' \(did you mean 'pair'\?\); there are"),
        (raw(header(sequence=-1), *GOOD), "data: sequence is -1"),
        (raw(header(rows=-2), *GOOD), "data of 'pair': rows is -2"),
        (raw(header(rows=2**21), *GOOD), "2097152 rows, 2097152 strings; the limit of a frame is 1048576"),
        (raw(header(stream="bare", rows=2**40, columns=[])), "1099511627776 rows, 0 strings; the limit"),
        (raw(header(rows=3), *GOOD), "column 'n': a buffer of 16 bytes; expected 24 for 3 rows of int64"),
        (raw(header(rows=...), *GOOD), r"data frame: missing keys \['rows'\]"),
        (raw(pair(N), NUMBERS), "no column 'who'; expected string"),
        (raw(pair(N, WHO, ["m", "bool", [2]]), *GOOD, b"\0\1"), "no column 'm' is declared; there are"),
        (raw(pair(N, WHO, N), *GOOD, NUMBERS), "columns duplicated or out of order"),
        (raw(pair(WHO, N), OFFSETS, TEXT, NUMBERS), r"out of order; expected \['n', 'who'\]"),
        (raw(pair(["n", "float64", [16]], WHO), *GOOD), "column 'n' is 'float64'; expected int64"),
        (raw(pair(["n", "object", [16]], WHO), *GOOD), "column 'n' is 'object'; expected int64"),
        (raw(pair(["n", "int64", [-16]], WHO), *GOOD), "bytes of a buffer is -16"),
        (raw(pair(["n", "int64", 16], WHO), *GOOD), "columns: a list of 3; expected a name, a type and the bytes"),
        (raw(pair(["n", "int64", []], WHO), *GOOD), "0 buffers; expected 1 for int64"),
        (raw(pair(N, ["who", "string", [12, 3, 1, 1]]), *GOOD, b"\0", b"\0"), "4 buffers; expected 3"),
        (raw(pair(["n", "int64", [16, 2]], WHO), NUMBERS, b"\0\0"), "a buffer of 2 bytes; expected 1 for"),
        (raw(pair(["n", "int64", [16, 1]], WHO), NUMBERS, b"\4", OFFSETS, TEXT), "null bits are set for rows after"),
        (raw(header(), NUMBERS, OFFSETS), "column 'who': 3 bytes announced; the frame has 0 left"),
        (raw(pair(N, ["who", "string", [12, 2**40]]), *GOOD), "announced; the frame has 8 left"),
        (raw(header(), *GOOD, b"more"), "8 bytes follow the last buffer; none are allowed"),
        (raw(header(), NUMBERS, struct.pack("<iii", 1, 1, 3), TEXT), "offsets run from 1 to 3; they must"),
        (raw(header(), NUMBERS, struct.pack("<iii", 0, 1, 4), TEXT), "offsets run from 0 to 4; they must"),
        (raw(header(), NUMBERS, struct.pack("<iii", 0, 9, 3), TEXT), "offsets decrease"),
        (raw(header(), NUMBERS, struct.pack("<iii", 0, -1, 3), TEXT), "offsets decrease"),
        (raw(header(), NUMBERS, OFFSETS, b"a\xff\xfe"), "a value is not UTF-8: invalid start byte"),
        (raw(header(), NUMBERS, OFFSETS, "éa".encode()), "a value is not UTF-8: unexpected end of data"),
        (raw(header(attributes=[["arrived", "int64", [16]]]), NUMBERS, *GOOD), r"attributes .*; expected one of \("),
        (raw(header(attributes=[["arrived", "float64", [16, 1]]]), NUMBERS, b"\1", *GOOD), "'arrived' has nulls"),
        (raw(header(attributes=[["arrived", "float64", [16]]]), b"\xff" * 16, *GOOD), "arrival time is not finite"),
        (raw(header(**STAMPED), *GOOD), "result of 'q': attributes '\\[\\]'; expected one of"),
        (raw(header(**STAMPED, attributes=[TS, ["sign", "int8", [2]]]), NUMBERS, b"\0\1"), "a sign is neither 1 nor"),
    ],
)  # fmt: skip
def test_a_bad_frame_is_refused_with_a_reason_and_the_next_one_is_read(frame: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=f"(?i){reason}") as caught:
        raise refuse(frame)
    assert not caught.value.lost
    assert len(caught.value.reason) < 500


def test_a_bool_is_one_of_two_bytes() -> None:
    schema = Schema.of({"ok": "bool"})
    frame = raw(header(columns=[["ok", "bool", [2]]], stream="b"), b"\1\2")
    (error,) = Decoder({"b": schema}).feed(frame)
    assert str(error) == "data of 'b': column 'ok': a bool is the byte 2; it must be 0 or 1"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            struct.pack("<II", FRAME_LIMIT_BYTES + 8, 8),
            "frame of 67108872 bytes announced; the limit is 67108864",
        ),
        (struct.pack("<II", 2**32 - 1, 8), "frame of 4294967295 bytes announced"),
        (struct.pack("<II", 12, 8), "a multiple of 8"),
        (struct.pack("<II", 16, 17), "16 bytes with a header of 17"),
        (struct.pack("<II", 16, 0), "16 bytes with a header of 0"),
        (struct.pack("<II", 0, 0), "0 bytes with a header of 0"),
        (struct.pack("<II", 2**20, 2**19), "with a header of 524288"),
        (b"GET / HTTP/1.1\r\n", "frame of 542393671 bytes announced"),
        (
            raw({"type": "hello", "version": 2, "who": "me"}),
            "version is 2; this side supports protocol version 1",
        ),
        (raw({"type": "hello", "version": True}), "hello: version is True"),
    ],
)
def test_after_a_fatal_error_nothing_more_is_read(data: bytes, reason: str) -> None:
    error = refuse(data)
    assert error.lost
    assert reason in error.reason


def test_an_error_has_the_sequence_of_its_data_frame() -> None:
    assert [refuse(raw(header(rows=rows, sequence=9), *GOOD)).sequence for rows in (3, "x")] == [9, 9]
    assert [refuse(raw(header(sequence=s), *GOOD)).sequence for s in (-1, True, 2**63, "x")] == [None] * 4


def test_a_learning_decoder_reads_rows_by_the_schemas_it_receives() -> None:
    stream = encode_all(Schemas({"s": MIXED}, {"q": MIXED}), DATA, RESULT)
    assert comparable(Decoder(learns=True).feed(stream))[1:] == comparable([DATA, RESULT])
    assert [type(message) for message in Decoder().feed(stream)] == [Schemas, WireError, WireError]


def test_neither_repr_nor_error_reveals_a_token() -> None:
    assert "secret" not in repr(Hello("p", "secret"))
    assert "secret" not in str(refuse(raw({"type": "hello", "version": 1, "producer": 5, "token": "secret"})))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Data("s", -1, ROWS, MIXED), "data of 's': sequence is -1"),
        (Data("s", 1, ROWS, PAIR), "no column 'at' is declared"),
        (Data("s", 1, Batch.of({"n": [1]}), PAIR), "no column 'who'"),
        (Data("s", 1, Batch.of({"n": [0.5]}), Schema.of({"n": "int64"})), "column 'n' is float64: "),
        (
            Data("s", 1, Batch({"n": np.arange(3)}, 2), Schema.of({"n": "int64"})),
            r"the shape \(3,\); .* each of 2 rows",
        ),
        (Data("s", 1, Batch.of({"n": [1], "n?": [1]}), Schema.of({"n": "int64"})), "is int64: "),
        (Data("s", 1, Batch.of({"w": np.array([None])}), Schema.of({"w": "string"})), "'w' has a value that is not"),
        (Data("s", 1, Batch.of({"w": ["\ud800"]}), Schema.of({"w": "string"})), "'w' has a value that UTF-8 cannot"),
        (Data("s", 1, replace(ROWS, sign=-1), MIXED), "rows with the sign -1"),
        (Data("s", 1, Batch(rows=2**20 + 1), Schema(())), "1048577 rows"),
        (Data("s", 1, Batch(rows=2**19 + 1), Schema.of(dict.fromkeys("ab", "string"))), "524289 rows, 1048578 strings"),
        (Ack("p", -5), "ack: sequence is -5"),
        (End("\udcff"), "end frame: text that UTF-8 cannot"),
        (Hello("p", "t", version=9), "hello: version is 9"),
        (Error("x" * 300_000), "error frame: a header of 300041 bytes; the limit is 262144"),
        (Schemas({str(n): PAIR for n in range(5000)}), "schema: 5000 streams"),
    ],
)
def test_a_message_that_the_other_side_would_refuse_is_not_encoded(message: Message, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        encode(message)


def test_a_frame_above_the_limit_is_neither_encoded_nor_decoded() -> None:
    length = len(encode_all(DATA)) - 8
    assert comparable(make_decoder(limit=length).feed(b"".join(encode(DATA, limit=length)))) == comparable([DATA])
    with pytest.raises(WireError, match=f"data frame: {length} bytes; the limit is {length - 8}: send smaller"):
        encode(DATA, limit=length - 8)
    (error,) = make_decoder(limit=length - 8).feed(encode_all(DATA)[:8])
    assert isinstance(error, WireError)
    assert error.lost
    with pytest.raises(DsmsError, match="a limit of 0 bytes"):
        Decoder(limit=0)


def mutate(frame: bytes, chance: random.Random) -> bytes:
    """Return the frame with a few bytes flipped, inserted, deleted or duplicated."""
    data = bytearray(frame)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(chance.choice((8, 200, len(data)))) % max(len(data), 1)
        match chance.randrange(5):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                data[at : at + 1] = bytes([(data[at] if data else 0) ^ 1 << chance.randrange(8)])
            case 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                del data[at : at + chance.randrange(1, 9)]
            case 4:
                data[at:at] = data[at : at + chance.randrange(1, 40)]
    body = len(data) - 8
    if body >= 8 and chance.random() < 0.6:  # then the length is right, and the damage is inside the frame
        data += bytes(-body % 8)
        data[:4] = struct.pack("<I", len(data) - 8)
    return bytes(data)


def mutations(count: int, seed: int) -> Iterable[bytes]:
    chance, frames = random.Random(seed), [encode_all(message) for message in (DATA, RESULT, DATA, RESULT, *PLAIN)]
    return (mutate(chance.choice(frames), chance) for _ in range(count))


def test_thousands_of_damaged_frames_are_refused_or_decode_to_another_valid_message() -> None:
    refusals = valid = lost = 0
    for data in mutations(20_000, seed=1):
        for message in make_decoder(limit=4096).feed(data):
            if isinstance(message, WireError):
                refusals, lost = refusals + 1, lost + message.lost
            else:
                valid += 1
                assert comparable(make_decoder().feed(encode_all(message))) == comparable([message])
    assert min(refusals - lost, lost, valid) > 1000  # each outcome is common


def peak_bytes(data: bytes, **options: Any) -> int:
    """The peak of memory while a decoder reads these bytes."""
    tracemalloc.start()
    try:
        make_decoder(**options).feed(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_damaged_frames_use_no_memory_beyond_their_size() -> None:
    assert max(peak_bytes(data, limit=4096) for data in mutations(1000, seed=2)) < 256 * 1024


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<II", 2**32 - 8, 64),
        struct.pack("<II", FRAME_LIMIT_BYTES, 64),  # announced, and never sent
        raw((b"\xdc\x0f\xff" * 1000) + b"\xc0"),  # nested lists, each announced as long
        raw((b"\xdd\x00\x03\xff\xff" * 1000) + b"\xc0"),
        raw(b"\xdc\x0f\xff" + (b"\xdc\x0f\xff" + b"\x80" * 4095) * 60),  # many empty maps
        raw(b"\xdb\xff\xff\xff\xffa"),
        raw(header(rows=2**20), *GOOD),
        raw(header(stream="bare", rows=2**62, columns=[])),
    ],
    ids=["length", "limit", "lists", "long lists", "maps", "text", "rows", "rows without columns"],
)  # fmt: skip
def test_bytes_announced_but_not_sent_use_no_memory(data: bytes) -> None:
    assert peak_bytes(data) < FRAME_LIMIT_BYTES / 2


def test_encoding_and_decoding_rates_are_reported(record_property: Callable[[str, object], None]) -> None:
    schema = Schema.of(dict.fromkeys("abcd", "int64"))
    data = Data("s", 1, Batch.of({name: np.arange(10_000) for name in "abcd"}), schema)
    frame, reader = encode_all(data), Decoder({"s": schema})
    for name, work in (("pack", lambda: encode(data)), ("unpack", lambda: reader.feed(frame))):
        start = time.perf_counter()
        for _ in range(200):
            work()
        rate = f"{(time.perf_counter() - start) / 200 * 1e6:.0f} us for 4 columns of 10,000 int64"
        record_property(name, rate)
    assert comparable(reader.feed(frame)) == comparable([data])
