"""A disk that is full, a real one: refused with the reason, nothing lost, and on it goes when there is room."""

from __future__ import annotations

import subprocess

import pytest

from dsms.durable import Checkpoints, Entry, SqliteLog
from dsms.errors import DsmsError

FRAME = b"x" * 20_000


@pytest.fixture
def disk(tmp_path):
    """A file system of 400 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_log_on_a_full_disk_refuses_keeps_what_it_has_and_goes_on_when_there_is_room(disk):
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 100_000)
    log = SqliteLog(disk / "log")
    stored = 3
    log.append([Entry("p", number, FRAME) for number in range(1, stored + 1)])
    with pytest.raises(DsmsError, match=r"log' cannot be written: (database or disk is full|disk I/O error)"):
        log.append([Entry("p", number, FRAME) for number in range(stored + 1, 30)])
    assert [offset for offset, _ in log.read(0, 1 << 30)] == list(range(1, stored + 1))
    ballast.unlink()
    assert log.append([Entry("p", stored + 1, FRAME)]) == [stored + 1]
    log.close()
    again = SqliteLog(disk / "log")
    assert [frame for _, frame in again.read(0, 1 << 30)] == [FRAME] * (stored + 1)
    again.close()


def test_a_checkpoint_that_finds_no_room_leaves_the_one_before(disk):
    store = Checkpoints(disk / "checkpoints")
    store.save({"whole": FRAME})
    with pytest.raises(DsmsError, match=r"checkpoint-000000000002' cannot be written: No space left on device"):
        store.save({"whole": FRAME * 100})
    assert store.latest().sections == {"whole": FRAME}
    assert store.save({"whole": FRAME * 2}) == 2
