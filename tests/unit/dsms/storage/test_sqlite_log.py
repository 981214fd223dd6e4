"""The log: all or nothing, each number once, and what was appended is there after any end of the process."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.live.dying_process import kill_after
from support.strategies import DETERMINISTIC

from dsms.errors import DsmsError
from dsms.storage import LogEntry, ProducerPosition, SqliteLog

PLENTY = 1 << 20


@pytest.fixture
def log(tmp_path):
    found = SqliteLog(tmp_path / "gateway-0.log")
    yield found
    found.close()


def frames(log, after=0):
    return [(offset, frame) for offset, frame in log.read(after, PLENTY)]


def test_what_is_appended_is_read_by_offset_also_by_another_process_later(log):
    assert log.append([LogEntry("p", 1, b"one"), LogEntry("q", 1, b"two")]) == [1, 2]
    assert log.append([LogEntry("", None, b"far")]) == [3]
    log.close()
    again = SqliteLog(log.path)
    assert frames(again) == [(1, b"one"), (2, b"two"), (3, b"far")]
    assert frames(again, 2) == [(3, b"far")]
    assert again.producers() == {"p": ProducerPosition(1), "q": ProducerPosition(1)}
    again.close()


def test_a_number_that_came_before_is_not_stored_again_but_one_that_was_refused_is(log):
    assert log.append([LogEntry("p", 5, b"five"), LogEntry("p", 5, b"five")]) == [1, None]
    assert log.append([LogEntry("p", 6, refused="too odd"), LogEntry("p", 7, b"seven")]) == [None, 2]
    assert log.producers() == {"p": ProducerPosition(7, {6: "too odd"})}
    assert log.append([LogEntry("p", 6, b"six"), LogEntry("p", 4, b"four")]) == [3, None]
    assert log.producers() == {"p": ProducerPosition(7)}
    assert [frame for _, frame in frames(log)] == [b"five", b"seven", b"six"]


def test_reading_stops_at_a_size_but_answers_at_least_one(log):
    log.append([LogEntry("p", number, b"x" * 100) for number in range(1, 6)])
    assert [len(log.read(0, size)) for size in (1, 100, 101, 1000)] == [1, 1, 2, 5]


def test_what_is_forgotten_is_gone_but_offsets_and_producers_are_not(log):
    log.append([LogEntry("p", number, b"x") for number in range(1, 4)])
    log.truncate(3)
    assert frames(log) == []
    assert (log.last(), log.append([LogEntry("p", 3, b"x"), LogEntry("p", 4, b"y")])) == (3, [None, 4])


def test_a_stream_that_is_over_stays_so(log):
    log.append([LogEntry("", None, b"end", ends="a"), LogEntry("", None, b"end", ends="a")])
    log.truncate(2)
    assert log.ended() == {"a": 1}


def test_a_damaged_entry_a_damaged_file_and_another_version_are_said(log, tmp_path):
    log.append([LogEntry("p", 1, b"one")])
    with sqlite3.connect(log.path) as database:
        database.execute("UPDATE entries SET frame = x'00'")
    with pytest.raises(DsmsError, match=r"gateway-0.log' is damaged: the checksum of entry 1 differs"):
        log.read(0, PLENTY)
    with sqlite3.connect(log.path) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(DsmsError, match=r"gateway-0.log' has version 9, but this build reads version 1"):
        SqliteLog(log.path)
    (tmp_path / "rubbish").write_bytes(b"no database at all" * 100)
    with pytest.raises(DsmsError, match=r"rubbish' cannot be opened: file is not a database"):
        SqliteLog(tmp_path / "rubbish")
    with pytest.raises(DsmsError, match="cannot be opened"):
        SqliteLog(tmp_path)


@settings(DETERMINISTIC, max_examples=30)
@given(groups=st.lists(st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 9)), max_size=5), max_size=8))
def test_however_frames_come_again_each_number_is_stored_once_and_the_offsets_are_in_order(tmp_path_factory, groups):
    log = SqliteLog(tmp_path_factory.mktemp("log") / "l")
    taken: dict[str, int] = {}
    expected = []
    for group in groups:
        log.append([LogEntry(producer, number, f"{producer}{number}".encode()) for producer, number in group])
        for producer, number in group:
            if number > taken.get(producer, 0):
                taken[producer] = number
                expected.append(f"{producer}{number}".encode())
    assert [frame for _, frame in log.read(0, PLENTY)] == expected
    assert {name: known.taken for name, known in log.producers().items()} == taken
    log.close()


def test_killed_at_any_moment_all_that_was_acknowledged_is_there_and_nothing_twice(tmp_path):
    """Forty processes go on with one log, one after the other, each killed a little later than the last."""
    path = tmp_path / "log"

    def write(tell):
        log = SqliteLog(path)
        number = log.producers()["p"].taken if log.last() else 0
        while True:
            group = range(number + 1, number + 4)
            log.append([LogEntry("p", each, b"%d" % each * 500) for each in group])
            number = group[-1]
            tell(number)

    for moment in range(40):
        last = kill_after(write, moment / 4000)
        log = SqliteLog(path)
        found = [frame for _, frame in log.read(0, 1 << 30)]
        assert found == [b"%d" % number * 500 for number in range(1, len(found) + 1)]
        assert len(found) >= last
        log.close()


def test_nobody_else_may_read_it(tmp_path):
    log = SqliteLog(tmp_path / "x.log")
    log.append([LogEntry("p", 1, b"row")])
    assert {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {
        "x.log": 0o600, "x.log-wal": 0o600, "x.log-shm": 0o600
    }  # fmt: skip
    log.close()
