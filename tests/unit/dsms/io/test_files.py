"""File sources and sinks: no row is lost or changed, and bad rows are rejected with the reason."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.dead_letter import DeadLetter
from dsms.data.schema import Schema
from dsms.errors import PlanError
from dsms.io import csv_records as records
from dsms.io.arrow_columns import batch_from_arrow
from dsms.io.dead_letters import DeadLetterFile
from dsms.io.rejected_row import MalformedRowError, RejectedRow
from dsms.io.sinks import open_sink, sink_schema
from dsms.io.sources import SourceError, open_source, read_relation_rows

AB = Schema.of({"a": "int64", "b": "string"})
TYPES = {"i": "int64", "f": "float64", "b": "bool", "t": "timestamp", "s": "string"}
ALL = Schema.of(TYPES)


def read(
    text: bytes, tmp_path: Path, schema: Schema = AB, form: str = "csv", block: int = 1 << 20, **options: Any
) -> tuple[list[tuple[Any, ...]], list[tuple[int, str, str]]]:
    """Return the rows of a file with this text, and line, text and reason of the rejected rows."""
    file = tmp_path / f"file.{form}"
    file.write_bytes(text)
    rejected: list[RejectedRow] = []
    source = open_source({form: file.name, **options}, schema, tmp_path, rejected.append, block=block)
    found = [tuple(row.values()) for batch in source for row in batch.records()]
    assert all(row.file == str(file) for row in rejected)
    return found, [(row.line, row.text, row.reason) for row in rejected]


def rows(text: bytes, tmp_path: Path, schema: Schema = AB, form: str = "csv", **options: Any) -> list[tuple[Any, ...]]:
    found, rejected = read(text, tmp_path, schema, form, **options)
    assert rejected == []
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n", []),
        (b"a,b\n", []),
        (b"a,b", []),
        (b"a,b\n1,x\n", [(1, "x")]),
        (b"a,b\n1,x", [(1, "x")]),
        (b"\xef\xbb\xbfa,b\n1,x\n", [(1, "x")]),
        (b"a,b\r\n1,x\r\n2,y\r\n", [(1, "x"), (2, "y")]),
        (b"a,b\r1,x\r2,y", [(1, "x"), (2, "y")]),
        (b"\n\na,b\n\n1,x\n\n2,y\n\n", [(1, "x"), (2, "y")]),
        (b"b,c,a\nx,9,1\n", [(1, "x")]),
        (b'a,b\n1,"x, ""y""\n z"\n', [(1, 'x, "y"\n z')]),
        (b'a,"b"\n1,""\n,\n"",y\n', [(1, ""), (None, None), (None, "y")]),
        (b'a,b\n"",', [(None, None)]),
        (b"a,b\n 1 , x \n+2,NULL\n", [(1, " x "), (2, "NULL")]),
        (b'a,b\n1,5" disk\n2,x"\n', [(1, '5" disk'), (2, 'x"')]),
        ("a,b\n1,grün\n".encode(), [(1, "grün")]),
    ],
)
@pytest.mark.parametrize("block", [1, 2, 5, 1000])
def test_csv_is_read_in_any_style_and_any_chunks(
    text: bytes, expected: list[tuple[Any, ...]], block: int, tmp_path: Path
) -> None:
    assert rows(text, tmp_path, block=block) == expected


@pytest.mark.parametrize(
    ("text", "expected", "rejected"),
    [
        (b"a,b\n1,x\n2\n3,y,z\n4,v\n", [(1, "x"), (4, "v")], [(3, "2", "1 field,"), (4, "3,y,z", "3 fields")]),
        (b"a,b\nq,x\n2\n", [], [(2, "q,x", "'q' is not"), (3, "2", "1 field,")]),
        (b"a,b\r\n1,x\r\n2\r\n4,v\r\n", [(1, "x"), (4, "v")], [(3, "2", "1 field, expected 2")]),
        (b'a,b\n1,"x\ny"\n2.5,y\n4,v\n', [(1, "x\ny"), (4, "v")], [(4, "2.5,y", "column 'a': '2.5' is not")]),
        (b"a,b\n\n\n9223372036854775808,y", [], [(4, "9223372036854775808,y", "int64")]),
        (b"a,b\n1,x\n2,\xffy\n", [(1, "x")], [(3, "2,\\xffy", "column 'b': byte 0xff at position 0 is not UTF-8")]),
        (b"a,b\n\xff,x\n2,y\n", [(2, "y")], [(2, "\\xff,x", "column 'a': byte 0xff at position 0 is not UTF-8")]),
        (b"a,b\n1,\xff,x\n2,y\n", [(2, "y")], [(2, "1,\\xff,x", "3 fields, expected 2")]),
        (b'a,b\n1,"x\n2,y\n3,z\n', [(2, "y"), (3, "z")], [(2, '1,"x', "a quote is never closed")]),
        (b'a,b\nq,"x\ny"\n2,"y\n', [], [(2, 'q,"x\ny"', "'q' is not"), (4, '2,"y', "never closed")]),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 1000])
def test_bad_csv_rows_are_rejected_by_line_and_the_others_are_read_in_order(
    text: bytes, expected: list[tuple[Any, ...]], rejected: list[tuple[int, str, str]], block: int, tmp_path: Path
) -> None:
    found, bad = read(text, tmp_path, block=block)
    assert found == expected
    assert [row[:2] for row in bad] == [row[:2] for row in rejected]
    assert all(part in reason for (_, _, reason), (_, _, part) in zip(bad, rejected, strict=True))


@settings(deadline=None, max_examples=150)
@given(st.text('x1",\n\r', max_size=30), st.integers(1, 10))
def test_any_text_gives_the_same_rows_and_rejects_for_any_chunks(text: str, block: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found, rejected = read(text.encode(), Path(folder), header=False)
        assert read(text.encode(), Path(folder), header=False, block=block) == (found, rejected)
    lines = re.split("\r\n|\r|\n", text)
    assert all(lines[line - 1].startswith(re.split("[\r\n]", row)[0]) for line, row, _ in rejected)
    if '"' not in text:
        assert len(found) + len(rejected) == sum(map(bool, lines))


def test_the_search_for_a_closing_quote_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_QUOTED_BYTES", 20)
    found, rejected = read(b'a,b\n1,"x\n' + b"2,y\n" * 20 + b'3,"z"\n', tmp_path, block=10)
    assert found == [(2, "y")] * 20 + [(3, "z")]
    assert rejected == [(2, '1,"x', "a quote is never closed")]


def test_csv_without_a_header_has_the_columns_of_the_schema(tmp_path: Path) -> None:
    assert rows(b"1;x\n2;y\n", tmp_path, header=False, delimiter=";") == [(1, "x"), (2, "y")]


def test_all_types_are_read_from_csv(tmp_path: Path) -> None:
    text = b"i,f,b,t,s\n-5,1e3,true,1700000000000000,x\n5,nan,FALSE,1970-01-01T00:00:01Z,y\n,,,,\n"
    found, rejected = read(text, tmp_path, ALL)
    assert rejected == []
    assert found[0] == (-5, 1000.0, True, 1700000000000000, "x")
    assert found[1][0::2] == (5, False, "y")
    assert math.isnan(found[1][1])
    assert found[1][3] == 1_000_000
    assert found[2] == (None,) * 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("1970-01-02", 86_400_000_000),
        ("1970-01-01 00:00:00.000123", 123),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.000123456Z", 123),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_timestamps_are_microseconds_or_iso_8601(text: str, expected: int, form: str, tmp_path: Path) -> None:
    line = f"0\n{text}\n" if form == "csv" else f'{{"t": 0}}\n{{"t": {text if text.isdigit() else json.dumps(text)}}}'
    file = f"t\n{line}" if form == "csv" else line
    assert rows(file.encode(), tmp_path, Schema.of({"t": "timestamp"}), form) == [(0,), (expected,)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n\n", []),
        (b'\xef\xbb\xbf{"a": 1, "b": "x"}', [(1, "x")]),
        (b'{"a": 1, "b": "x", "c": [1, {}]}\r\n\r\n{"b": "y"}\r\n', [(1, "x"), (None, "y")]),
        (b'{"b": "\\u00fc\\n", "a": null}\n{"a": 2}\n', [(None, "ü\n"), (2, None)]),
    ],
)
@pytest.mark.parametrize("block", [7, 1000])
def test_json_lines_are_read(text: bytes, expected: list[tuple[Any, ...]], block: int, tmp_path: Path) -> None:
    assert rows(text, tmp_path, form="jsonl", block=block) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", "JSON is a list, expected an object"),
        (b"nonsense", "not JSON: Expecting value at column 1"),
        (b'{"a": 1} {"a": 2}', "not JSON: Extra data"),
        (b'{"a": 1.5}', "column 'a': 1.5 is not"),
        (b'{"a": true}', "column 'a': True is not"),
        (b'{"a": 99999999999999999999}', "int64"),
        (b'{"b": 7}', "column 'b': 7 is not text (string)"),
        (b'{"b": "\xfe"}', "byte 0xfe at position 7 is not UTF-8"),
        (b'{"b": "\\ud800"}', "column 'b'"),
        (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_json_lines_are_rejected_by_line_and_the_others_are_read(line: bytes, reason: str, tmp_path: Path) -> None:
    text = b'{"a": 1, "b": "x"}\n\n' + line + b'\n{"a": 2, "b": "y"}\n'
    found, rejected = read(text, tmp_path, form="jsonl")
    assert found == [(1, "x"), (2, "y")]
    assert [row[:2] for row in rejected] == [(3, line.decode("utf-8", "backslashreplace"))]
    assert reason in rejected[0][2]


def test_parquet_is_converted_and_bad_rows_are_rejected_by_number(tmp_path: Path) -> None:
    table = {
        "t": pa.array([0, 1_500, None], pa.timestamp("ms", "UTC")),
        "f": pa.array([1.5, None, 2.5], pa.float32()),
        "i": pa.array([1, 2**63, 3], pa.uint64()),
        "s": pa.array(["x", "y", None]).dictionary_encode(),
        "b": pa.array([True, None, False]),
        "more": [1, 2, 3],
    }
    parquet.write_table(pa.table(table), tmp_path / "p.parquet")
    rejected: list[RejectedRow] = []
    source = open_source({"parquet": "p.parquet"}, ALL, tmp_path, rejected.append)
    assert [row for batch in source for row in batch.records()] == [
        {"i": 1, "f": 1.5, "b": True, "t": 0, "s": "x"},
        {"i": 3, "f": 2.5, "b": False, "t": None, "s": None},
    ]
    assert [(row.line, json.loads(row.text)["i"]) for row in rejected] == [(2, 2**63)]
    assert "column 'i': 9223372036854775808 is not" in rejected[0].reason


@pytest.mark.parametrize("path", ["parts", "parts/*.parquet"])
def test_a_folder_or_a_pattern_is_read_file_by_file(path: str, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number in (2, 1, 3):
        table = pa.table({"a": [number], "b": [str(number)]})
        parquet.write_table(table, tmp_path / "parts" / f"{number}.parquet")
    assert read_relation_rows({"parquet": path}, AB, tmp_path).columns["a"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_missing_column_is_named_with_the_existing_ones(form: str, tmp_path: Path) -> None:
    file = tmp_path / f"file.{form}"
    if form == "parquet":
        parquet.write_table(pa.table({"a": [1], "bb": [1]}), file)
    else:
        file.write_text("a,bb\n1,1\n" if form == "csv" else '{"a": 1, "bb": 1}\n')
    with pytest.raises(PlanError, match=r"file\..*: no column 'b'.*did you mean 'bb'.*\['a', 'bb'\]"):
        read_relation_rows({form: file.name}, AB, tmp_path)


def test_a_bad_row_ends_the_run_with_on_error_fail_or_without_a_dead_letter_file(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,x\nq,y\n")
    wanted = r"x.csv:3: column 'a': 'q' is not a 64-bit integer \(int64\); the row is 'q,y'"
    with pytest.raises(MalformedRowError, match=wanted):
        read_relation_rows({"csv": "x.csv", "on_error": "fail"}, AB, tmp_path, [].append)
    with pytest.raises(MalformedRowError, match=wanted):
        read_relation_rows({"csv": "x.csv"}, AB, tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "exactly one of"),
        ({"csv": "x.csv", "jsonl": "y"}, "exactly one of"),
        ({"csv": "y.csv"}, r"no file .*y.csv.*there are \['x.csv'\]"),
        ({"csv": 5}, "csv is 5: it must be the path of a file"),
        ({"csv": "x.csv", "delimeter": ";"}, "no option 'delimeter'.*did you mean 'delimiter'"),
        ({"csv": "x.csv", "delimiter": ";;"}, "delimiter is ';;': it must be one ASCII character"),
        ({"csv": "x.csv", "header": 1}, "header is 1: it must be true or false"),
        ({"csv": "x.csv", "on_error": "stop"}, "no on_error 'stop'; there are"),
        ({"jsonl": "x.csv", "header": True}, "no option 'header'"),
        ({"parquet": "-"}, "only as csv or jsonl"),
        ({"parquet": "x.csv"}, "cannot be read as Parquet"),
    ],
)
def test_an_invalid_source_is_refused(table: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(PlanError, match=message):
        read_relation_rows(table, AB, tmp_path)


def test_standard_input_and_compressed_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,x\n")))
    assert read_relation_rows({"csv": "-"}, AB, tmp_path).columns["a"].tolist() == [1]
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n2,x\n"))
    assert read_relation_rows({"csv": "x.csv.gz"}, AB, tmp_path).columns["a"].tolist() == [2]
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n2,x\n")[:-9])
    with pytest.raises(SourceError, match=r"x.csv.gz"):
        read_relation_rows({"csv": "x.csv.gz"}, AB, tmp_path)


def test_a_source_is_read_lazily_in_batches(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" + "1,x\n" * 50 + "1\n" * 100)
    source = open_source({"csv": "x.csv"}, AB, tmp_path, rows=20, block=100)
    assert len(next(iter(source))) == 20
    with pytest.raises(MalformedRowError):
        list(source)


def test_an_empty_file_is_stored_as_a_batch_with_all_columns(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n")
    batch = read_relation_rows({"csv": "x.csv"}, AB, tmp_path)
    assert {name: str(column.dtype) for name, column in batch.columns.items()} == {"a": "int64", "b": "object"}


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(),
    "bool": st.booleans(),
    "timestamp": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(['"', "\n", "\r", "\\"]),
}
TABLES = st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in TYPES.values())), max_size=8)


def batch_from(table: list[tuple[Any, ...]], **attributes: Any) -> Batch:
    columns = {}
    for place, (name, kind) in enumerate(TYPES.items()):
        arrow = {"timestamp": pa.int64(), "bool": pa.bool_()}.get(kind) or pa.type_for_alias(kind)
        columns[name] = pa.array([row[place] for row in table], arrow, from_pandas=False)
    found = batch_from_arrow(columns, ALL)
    return Batch.of(found.columns, rows=len(found), **attributes)


def exact(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows to compare: a NaN is equal to itself, and -0.0 is not 0.0."""
    return [repr(row) for row in rows]


@settings(deadline=None, max_examples=60)
@given(TABLES, st.booleans(), st.integers(1, 200), st.sampled_from(["csv", "jsonl", "parquet", "csv.gz"]))
def test_what_a_sink_writes_a_source_reads(
    table: list[tuple[Any, ...]], is_append_only: bool, block: int, form: str
) -> None:
    signs = [1 - 2 * (number % 2) for number in range(len(table))]
    with tempfile.TemporaryDirectory() as made:
        folder, format_ = Path(made), form.split(".")[0]
        sink = open_sink({format_: f"out.{form}"}, ALL, is_append_only, folder)
        sink.write(batch_from(table, ts=7, sign=1 if is_append_only else signs))
        sink.write(batch_from([]))
        sink.write(batch_from(table, ts=list(range(len(table))), sign=1))
        sink.close()
        leading = [(7,) if is_append_only else (7, sign) for sign in signs]
        leading += [(ts,) if is_append_only else (ts, 1) for ts in range(len(table))]
        source = open_source({format_: f"out.{form}"}, sink_schema(ALL, is_append_only), folder, block=block)
        found = [tuple(row.values()) for batch in source for row in batch.records()]
        assert exact(found) == exact([a + b for a, b in zip(leading, table * 2, strict=True)])


def test_json_lines_have_leading_ts_and_sign_and_null_for_null(tmp_path: Path) -> None:
    sink = open_sink({"jsonl": "out.jsonl"}, AB, False, tmp_path)
    sink.write(Batch.of({"a": [1, 2], "b": ['"x"', ""], "a" + NULLS_SUFFIX: [False, True]}, ts=5, sign=[-1, 1]))
    sink.close()
    assert (tmp_path / "out.jsonl").read_text().splitlines() == [
        '{"ts": 5, "sign": -1, "a": 1, "b": "\\"x\\""}',
        '{"ts": 5, "sign": 1, "a": null, "b": ""}',
    ]


def test_leading_columns_are_renamed_if_a_query_has_their_names() -> None:
    assert list(sink_schema(Schema.of({"ts": "timestamp", "a": "int64"}), False)) == ["_ts", "sign", "ts", "a"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_gets_its_name_only_when_it_is_complete(form: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    sink = open_sink({form: "out"}, AB, True, tmp_path)
    sink.write(Batch.of({"a": [1], "b": ["x"]}))
    assert (tmp_path / "out").read_text() == "old"
    sink.abandon()
    sink.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "out.part"]
    assert read_relation_rows({form: "out.part"}, AB, tmp_path).records() == [{"a": 1, "b": "x"}]
    whole = open_sink({form: "out"}, AB, True, tmp_path)
    whole.close()
    whole.close()
    whole.abandon()
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("stderr", "a sink of 'stderr'"),
        ({}, "exactly one of"),
        ({"jsonl": "a", "csv": "b"}, "exactly one of"),
        ({"json": "a"}, "no format 'json'.*did you mean 'jsonl'"),
        ({"csv": ""}, "it must be the path of a file"),
        ({"csv": "there"}, "already exists"),
        ({"csv": "."}, "is a folder"),
        ({"csv": "none/out.csv"}, "cannot be written: No such file"),
        ({"parquet": "-"}, "only csv or jsonl"),
    ],
)
def test_an_invalid_sink_is_refused(target: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    with pytest.raises(PlanError, match=message):
        open_sink(target, AB, True, tmp_path, overwrite=False)


@pytest.mark.parametrize(
    ("target", "expected"),
    [("stdout", '{"ts": 0, "a": 1, "b": "x"}\n'), ({"csv": "-"}, '"ts","a","b"\n0,1,"x"\n')],
)
def test_standard_output_is_not_buffered(
    target: Any, expected: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sink = open_sink(target, AB, True, tmp_path)
    sink.write(Batch.of({"a": [1], "b": ["x"]}))
    assert capfd.readouterr().out == expected
    sink.close()


CLOSED_READER = """
import sys
from pathlib import Path
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.io.sinks import SinkClosedError, open_sink
sink = open_sink("stdout", Schema.of({"a": "int64"}), True, Path())
sys.stdin.read()
try:
    sink.write(Batch.of({"a": [1]}))
except SinkClosedError as error:
    print(error, file=sys.stderr)
sink.close()
"""


def test_a_closed_standard_output_is_a_quiet_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CLOSED_READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b"standard output was closed by its reader\n"
    assert process.returncode == 0


def test_dead_letters_hold_rows_or_text_with_place_and_reason(tmp_path: Path) -> None:
    letters = DeadLetterFile(tmp_path / "dead.jsonl")
    letters.close()
    assert not letters.path.exists()
    with letters:
        late = Batch.of({"a": [1, 2], "b": [math.inf, 0.5], "b" + NULLS_SUFFIX: [False, True]}, ts=[3, 4])
        letters.add("q.window", DeadLetter("late", late, "2 s late"))
        letters.add_rejected("bids", RejectedRow("bids.csv", 7, "x,y", "column 'a': 'x' is not"))
    assert [json.loads(line) for line in letters.path.read_text().splitlines()] == [
        {"where": "q.window", "kind": "late", "reason": "2 s late", "ts": 3, "row": {"a": 1, "b": "Infinity"}},
        {"where": "q.window", "kind": "late", "reason": "2 s late", "ts": 4, "row": {"a": 2, "b": None}},
        {
            "where": "bids",
            "kind": "error",
            "reason": "column 'a': 'x' is not",
            "text": "x,y",
            "file": "bids.csv",
            "line": 7,
        },
    ]
    assert letters.counts == {("q.window", "late"): 2, ("bids", "error"): 1}
