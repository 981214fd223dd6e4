"""On a full disk, writes fail with the reason, nothing is lost, and work continues when there is room."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress

import numpy as np
import pytest

from actors.results.release import ReleaseWithCheckpoint
from actors.results.result_hub import ResultHub
from dsms import Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError
from dsms.storage import CheckpointFolder, LogEntry, SqliteLog

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


def test_a_log_on_a_full_disk_refuses_rows_keeps_its_entries_and_continues_when_there_is_room(disk):
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 100_000)
    log = SqliteLog(disk / "log")
    stored = 3
    log.append([LogEntry("p", number, FRAME) for number in range(1, stored + 1)])
    with pytest.raises(DsmsError, match=r"log' cannot be written: (database or disk is full|disk I/O error)"):
        log.append([LogEntry("p", number, FRAME) for number in range(stored + 1, 30)])
    assert [offset for offset, _ in log.read(0, 1 << 30)] == list(range(1, stored + 1))
    ballast.unlink()
    assert log.append([LogEntry("p", stored + 1, FRAME)]) == [stored + 1]
    log.close()
    again = SqliteLog(disk / "log")
    assert [frame for _, frame in again.read(0, 1 << 30)] == [FRAME] * (stored + 1)
    again.close()


def test_a_checkpoint_without_room_leaves_the_one_before(disk):
    store = CheckpointFolder(disk / "checkpoints")
    store.save({"whole": FRAME})
    with pytest.raises(DsmsError, match=r"checkpoint-000000000002' cannot be written: No space left on device"):
        store.save({"whole": FRAME * 100})
    assert store.latest().sections == {"whole": FRAME}
    assert store.save({"whole": FRAME * 2}) == 2


def rows(*numbers):
    return Batch.of({"n": np.array(numbers, dtype=np.int64)}, ts=np.zeros(len(numbers), dtype=np.int64))


@pytest.mark.parametrize("died", [False, True], ids=["it goes on", "another goes on"])
def test_results_refused_by_a_full_disk_are_in_their_files_once_there_is_room(disk, died):
    """No checkpoint is saved meanwhile: the last one has the results."""
    told = {form: ({form: f"out.{form}"}, Schema.of({"n": "int64"}), True) for form in ("csv", "jsonl")}
    size, first, second, third = 2_000, *(dict.fromkeys(told, number) for number in (1, 2, 3))
    made = [[(query, turn + 1, rows(*range(turn * size, (turn + 1) * size))) for query in told] for turn in range(3)]
    outlet = ResultHub(ReleaseWithCheckpoint())
    outlet.open(told, str(disk))
    outlet.take(made[0], 1)
    outlet.release(first)
    outlet.take(made[1], 1)
    accounts = outlet.snapshot(second)
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1000))
    outlet.release(second)  # a part fits, then no more
    outlet.take(made[2], 1)
    with pytest.raises(DsmsError, match=r"the results of 'csv' cannot be written: .*No space left on device"):
        outlet.snapshot(third)
    assert outlet.status()["queries"][0]["error"] == "[Errno 28] No space left on device"
    ballast.unlink()
    if died:
        outlet = ResultHub(ReleaseWithCheckpoint())
        outlet.restore(accounts, (), {name: (each, str(disk)) for name, each in told.items()})
        outlet.release(second)
        outlet.take(made[2], 1)
    outlet.snapshot(third)
    outlet.release(third)
    assert [one["error"] for one in outlet.status()["queries"]] == [None, None]
    written = (disk / "out.csv").read_text().splitlines()
    assert [int(line.split(",")[1]) for line in written[1:]] == list(range(3 * size))
    assert [json.loads(line)["n"] for line in (disk / "out.jsonl").read_text().splitlines()] == list(range(3 * size))
