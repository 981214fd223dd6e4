"""Killed at every single system call that writes the log or a checkpoint, by strace: each of them once."""

from __future__ import annotations

import itertools
import shutil

import pytest
from dying import WRITES, killed_at

from dsms.durable import Checkpoints, Entry, SqliteLog

LEAST = 20  # points there are in any case

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def points(folder, write):
    """A folder for each point at which it was killed, and what had been told by then."""
    count = 0
    for call in WRITES:
        for number in itertools.count(1):
            place = folder / f"{call}-{number}"
            try:
                killed, told = killed_at(call, number, lambda tell, place=place: write(place, tell))
            except PermissionError as error:
                pytest.skip(f"strace may not be used here: {error}")
            yield place, told
            if not killed:
                break
            count += 1
    assert count > LEAST


def frame(number):
    return b"%d" % number * 3000


def test_whatever_call_of_the_log_is_the_last_all_that_was_acknowledged_is_there(tmp_path):
    def write(place, tell):
        log = SqliteLog(place / "log")
        for first in (1, 3, 5):
            log.append([Entry("p", number, frame(number)) for number in (first, first + 1)])
            tell(first + 1)
            log.forget(first)
        log.close()

    for place, told in points(tmp_path, write):
        log = SqliteLog(place / "log")  # it can always be opened
        taken = {name: known.taken for name, known in log.producers().items()}.get("p", 0)
        assert taken in (told, told + 2)
        found = dict(log.read(0, 1 << 20))
        assert list(found.values()) == [frame(number) for number in found]
        assert list(found)[-1:] == ([taken] if taken else [])
        assert log.append([Entry("p", 9, b"on it goes")]) == [taken + 1]
        log.close()


def test_whatever_call_of_a_checkpoint_is_the_last_the_newest_that_was_saved_can_be_read(tmp_path):
    def write(place, tell):
        store = Checkpoints(place)
        for number in range(1, 6):
            tell(store.save({"whole": frame(number), "host": frame(number)}))

    for place, told in points(tmp_path, write):
        store = Checkpoints(place)
        latest = store.latest()
        number = 0 if latest is None else latest.number
        assert number in (told, told + 1)
        if latest is not None:
            assert latest.sections == {"whole": frame(number), "host": frame(number)}
            assert latest.damaged == []
        assert store.save({}) == number + 1
