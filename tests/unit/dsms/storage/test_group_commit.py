"""Group commit: in order, in one transaction, and what could not be stored is refused, and known to be."""

from __future__ import annotations

import threading

from dsms.errors import DsmsError
from dsms.storage import CommitResult, GroupCommit, LogEntry, ProducerPosition, SqliteLog

WAIT = 30.0


class CommitCollector:
    """Collects the groups that the committer reports, and lets a test wait for them."""

    def __init__(self):
        self.groups = []
        self._came = threading.Condition()

    def __call__(self, group):
        with self._came:
            self.groups.append(list(group))
            self._came.notify_all()

    def all(self, count):
        with self._came:
            assert self._came.wait_for(lambda: sum(map(len, self.groups)) >= count, WAIT)
        return [one for group in self.groups for one in group]


class Failing(SqliteLog):
    """A log on a disk that is full for a while."""

    full = False
    gate = threading.Event()

    def append(self, entries):
        self.gate.wait(WAIT)
        if self.full:
            raise DsmsError("the log cannot be written: database or disk is full")
        return super().append(entries)


def committer_on(path):
    told, log = CommitCollector(), Failing(path)
    log.gate = threading.Event()
    return GroupCommit(log, told), log, told


def test_all_that_waits_is_stored_at_once_and_told_in_order(tmp_path):
    committer, log, told = committer_on(tmp_path / "log")
    for number in range(1, 6):
        committer.add(LogEntry("p", number, b"x"), number)
    log.gate.set()
    assert told.all(5) == [CommitResult(number, number, None) for number in range(1, 6)]
    assert len(told.groups) <= 2  # what waited while the first was stored goes together
    committer.close()


def test_while_the_disk_is_full_frames_are_refused_and_known_as_refused_when_there_is_room_again(tmp_path):
    committer, log, told = committer_on(tmp_path / "log")
    log.gate.set()
    committer.add(LogEntry("p", 1, b"one"), 1)
    told.all(1)
    log.full = True
    committer.add(LogEntry("p", 2, b"two"), 2)
    committer.add(LogEntry("", None, b"far"), 0)
    reason = "the log cannot be written: database or disk is full"
    assert told.all(3)[1:] == [CommitResult(2, None, reason), CommitResult(0, None, reason)]
    log.full = False
    committer.add(LogEntry("p", 3, b"three"), 3)
    assert told.all(4)[3] == CommitResult(3, 2, None)
    assert log.producers() == {"p": ProducerPosition(3, {2: reason})}
    committer.add(LogEntry("p", 2, b"two"), 2)
    assert told.all(5)[4] == CommitResult(2, 3, None)
    assert [frame for _, frame in log.read(0, 100)] == [b"one", b"three", b"two"]
    committer.close()


def test_what_is_forgotten_goes_and_what_waits_is_stored_before_the_end(tmp_path):
    committer, log, told = committer_on(tmp_path / "log")
    log.gate.set()
    committer.add(LogEntry("p", 1, b"one"), 1)
    told.all(1)
    committer.truncate(1)
    committer.add(LogEntry("p", 2, b"two"), 2)
    committer.close()
    assert [frame for _, frame in log.read(0, 100)] == [b"two"]
