"""`dsms trace convert` writes archive traces as Parquet: every format, malformed lines, and the order of time."""

from __future__ import annotations

import gzip

import pyarrow.parquet as parquet
import pytest
from support.load.packet_lines import EPOCH, Packets

from dsms.cli import main
from dsms.errors import DsmsError
from loadgen.traces.files import find_trace_files
from loadgen.traces.layouts import SANITIZED, find_layout

HOSTS = ("source", "destination", "source_port", "destination_port")
COLUMNS = ["at", "time", *HOSTS, "size", "protocol"]
MADE = Packets.made(40)


def write_lines(path, lines):
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def rows(folder):
    return parquet.read_table(folder).to_pylist()


def call(capsys, *words):
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "columns", "stamped", "more", "protocol"),
    [
        ("lbl-pkt-4.tcp.gz", (*HOSTS, "size"), True, "", "tcp"),
        ("dec-pkt-1.udp", HOSTS, True, "", "udp"),
        ("dec-pkt-2.sf", HOSTS, True, " SP 774 0", "tcp"),
        ("lbl-pkt-5.other", (), True, "", "other"),
        ("BC-pAug89.TL", ("size",), False, "  ", "ethernet"),
    ],
)
def test_a_trace_of_every_format_becomes_its_packets(name, columns, stamped, more, protocol, spark, tmp_path, capsys):
    source = write_lines(tmp_path / name, MADE.lines(*columns, stamped=stamped, more=more))
    code, out, _ = call(capsys, "trace", "convert", source, tmp_path / "out.parquet")
    made = rows(tmp_path / "out.parquet")
    assert (code, out.splitlines()[0].partition(" in ")[0]) == (0, "40 packets")
    assert list(made[0]) == COLUMNS
    assert [row["at"] for row in made] == pytest.approx([time - MADE.times[0] for time in MADE.times], abs=1e-6)
    assert [row["time"] for row in made[1:]] == MADE.times[1:]
    assert made[0]["time"] == pytest.approx(MADE.times[0] + (EPOCH if stamped else 0), abs=1e-6)
    assert {row["protocol"] for row in made} == {protocol}
    for column in (*HOSTS, "size"):
        expected = MADE.numbers[column] if column in columns else [None] * 40
        assert [row[column] for row in made] == expected


@pytest.mark.spark
def test_malformed_lines_are_skipped_counted_and_shown(spark, tmp_path, capsys):
    lines = MADE.lines(*HOSTS, "size")
    lines[3:3] = [
        "",
        "torn li",
        "9.0 1 2 3 4 -5",
        "9.0 1 2 3 4 5 6",
        "9.0 1 x 3 4 5",
        "nan 1 2 3 4 5",
        "9.0 1 2 3 4 99999999999999999999",
    ]
    source = write_lines(tmp_path / "lbl-pkt-4.tcp", lines)
    code, out, _ = call(capsys, "trace", "convert", source, tmp_path / "out.parquet")
    assert (code, len(rows(tmp_path / "out.parquet"))) == (0, 40)
    table = {" ".join(line.split()) for line in out.splitlines()}
    assert table >= {
        "lbl-pkt-4.tcp not 6 fields 3",
        "lbl-pkt-4.tcp not a number 3 9.0 1 x 3 4 5",
        "lbl-pkt-4.tcp a negative number 1 9.0 1 2 3 4 -5",
    }
    code, out, err = call(capsys, "trace", "convert", source, tmp_path / "strict", "--strict")
    assert (code, out) == (1, "")
    assert "7 lines are malformed, and --strict allows none" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lbl-pkt-4.tcp", "out.parquet"]


@pytest.mark.spark
def test_packets_of_unsorted_lines_and_of_files_with_other_start_times_are_sorted_by_time(spark, tmp_path, capsys):
    early = ["757718465.250000 1 2 3 4 10", "3.000000 1 2 3 4 30", "2.000000 1 2 3 4 20", "3.000000 1 2 3 4 31"]
    late = ["757718467.500000 1 2 3 4", "0.750000 1 2 3 4"]  # two seconds later, so at 2.25 and 2.5 of the other
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "lbl-pkt-4.tcp", early)
    write_lines(tmp_path / "in" / "lbl-pkt-4.udp.gz", late)
    assert call(capsys, "trace", "convert", tmp_path / "in", tmp_path / "out")[0] == 0
    made = [(row["at"], row["protocol"], row["size"]) for row in rows(tmp_path / "out")]
    assert made == [
        (0.0, "tcp", 10), (1.75, "tcp", 20), (2.25, "udp", None), (2.5, "udp", None),
        (2.75, "tcp", 30), (2.75, "tcp", 31),
    ]  # fmt: skip


@pytest.mark.spark
def test_output_is_replaced_only_with_overwrite_and_not_written_if_all_lines_are_malformed(spark, tmp_path, capsys):
    source = write_lines(tmp_path / "BC-pOct89.TL", MADE.lines("size", stamped=False))
    (tmp_path / "out").mkdir()
    code, _, err = call(capsys, "trace", "convert", source, tmp_path / "out")
    assert code == 2
    assert "exists already; `--overwrite` replaces it" in err
    assert call(capsys, "trace", "convert", source, tmp_path / "out", "--overwrite")[0] == 0
    assert len(rows(tmp_path / "out")) == 40
    other = write_lines(tmp_path / "lbl-pkt-4.tcp", MADE.lines("size"))
    code, _, err = call(capsys, "trace", "convert", other, tmp_path / "none")
    assert (code, "all lines are malformed" in err, (tmp_path / "none").exists()) == (2, True, False)


@pytest.mark.parametrize(
    ("name", "first", "family", "layout"),
    [
        ("lbl-pkt-4.tcp", "1 2 3 4 5 6", None, "tcp"),
        ("DEC-PKT-3.UDP.gz", "1 2 3 4 5", None, "udp"),
        ("lbl-pkt-4.encap", "1.5", None, "encap"),
        ("BC-Oct89Ext4.TL", "1.5 64", None, "TL"),
        ("pAug.TL", "1.5 64", None, "TL"),
        ("mine.txt", "1.5 64", None, "TL"),
        ("mine.txt", "1 2 3 4 5 6", None, "tcp"),
        ("mine", "1 2 3 4 5 S 7 8", "dec-pkt", "sf"),
        ("mine.udp", "1 2 3 4 5", "lbl-pkt", "udp"),
    ],
)
def test_a_format_is_recognised_by_the_name_or_else_by_the_first_lines(name, first, family, layout, tmp_path):
    assert find_layout(tmp_path / name, [first.split()], family).name == layout


@pytest.mark.parametrize(
    ("names", "family", "message"),
    [
        (["absent"], None, "no such file or folder"),
        (["empty.tcp"], None, "the file is empty"),
        (["words.txt"], None, "neither its name nor its first lines"),
        (["two.txt"], "lbl-pkt", "are those of an 'lbl-pkt' trace"),
        (["times.txt"], None, "recognised by its name only"),
        (["packed.tcp.Z"], None, "`gunzip packed.tcp.Z` first"),
        (["broken.tcp.gz"], None, "cannot be read"),
        (["two.txt", "two.txt"], None, "is given twice"),
        (["two.txt", "lbl-pkt-4.udp"], None, "convert them one by one"),
        (["folder"], None, "no file in this folder"),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused_before_spark_starts(names, family, message, tmp_path):
    lines = {
        "empty.tcp": [], "words.txt": ["one two three"], "two.txt": ["0.5 64", "0.7 64"], "times.txt": ["0.5"],
        "packed.tcp.Z": ["x"], "broken.tcp": ["x"], "lbl-pkt-4.udp": MADE.lines(*HOSTS),
    }  # fmt: skip
    for name, text in lines.items():
        write_lines(tmp_path / name, text)
    (tmp_path / "broken.tcp").rename(tmp_path / "broken.tcp.gz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DsmsError) as error:
        find_trace_files([tmp_path / name for name in names], family)
    assert message in str(error.value)


def test_a_first_time_since_1970_is_the_base_of_the_others(tmp_path):
    stamped = write_lines(tmp_path / "lbl-pkt-4.tcp", MADE.lines(*HOSTS, "size"))
    plain = write_lines(tmp_path / "lbl-pkt-5.tcp", MADE.lines(*HOSTS, "size", stamped=False))
    assert [file.base for path in (stamped, plain) for file in find_trace_files([path])] == [EPOCH, None]


def test_the_formats_are_listed_and_a_call_with_too_few_paths_is_refused(capsys):
    code, out, _ = call(capsys, "trace", "formats")
    assert code == 0
    assert all(f".{name}" in out for name in (*SANITIZED, "TL"))
    assert (
        call(capsys, "trace", "convert", "one")[2]
        == "dsms: `dsms trace convert` takes IN… OUT: expected two paths or more, got 1\n"
    )
    assert call(capsys, "trace", "formats", "one")[0] == 2
