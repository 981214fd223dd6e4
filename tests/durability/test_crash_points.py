"""strace kills a process at every system call that writes the log or a checkpoint; nothing acknowledged is lost."""

from __future__ import annotations

import itertools
import shutil
from functools import partial

import pytest
from support.live.dying_process import WRITES, kill_at_syscall

from dsms.storage import CheckpointFolder, LogEntry, SqliteLog

LEAST = 20  # points at least

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def points(folder, write):
    """A folder for each point at which it was killed, and what had been reported by then."""
    count = 0
    for call in WRITES:
        for number in itertools.count(1):
            place = folder / f"{call}-{number}"
            try:
                killed, told = kill_at_syscall(call, number, partial(write, place))
            except PermissionError as error:
                pytest.skip(f"strace may not be used here: {error}")
            yield place, told
            if not killed:
                break
            count += 1
    assert count > LEAST


def frame(number):
    return b"%d" % number * 3000


def test_a_log_killed_at_any_system_call_has_all_that_was_acknowledged(tmp_path):
    def write(place, tell):
        log = SqliteLog(place / "log")
        for first in (1, 3, 5):
            log.append([LogEntry("p", number, frame(number)) for number in (first, first + 1)])
            tell(first + 1)
            log.truncate(first)
        log.close()

    for place, told in points(tmp_path, write):
        log = SqliteLog(place / "log")  # it can always be opened
        taken = {name: known.taken for name, known in log.producers().items()}.get("p", 0)
        assert taken in (told, told + 2)
        found = dict(log.read(0, 1 << 20))
        assert list(found.values()) == [frame(number) for number in found]
        assert list(found)[-1:] == ([taken] if taken else [])
        assert log.append([LogEntry("p", 9, b"on it goes")]) == [taken + 1]
        log.close()


def test_after_a_kill_at_any_system_call_the_newest_checkpoint_can_be_read(tmp_path):
    def write(place, tell):
        store = CheckpointFolder(place)
        for number in range(1, 6):
            tell(store.save({"whole": frame(number), "host": frame(number)}))

    for place, told in points(tmp_path, write):
        store = CheckpointFolder(place)
        latest = store.latest()
        number = 0 if latest is None else latest.number
        assert number in (told, told + 1)
        if latest is not None:
            assert latest.sections == {"whole": frame(number), "host": frame(number)}
            assert latest.damaged == []
        assert store.save({}) == number + 1
