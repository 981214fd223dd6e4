"""A log is one process's at a time: two deployments on one folder would take each other's rows for their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from actors.ingest.gateway import Gateway
from dsms.errors import DsmsError
from dsms.storage import FileLock

HOLDING = """
import sys, pathlib
from dsms.storage import FileLock
held = FileLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_one_is_refused_and_told_of_the_folder(tmp_path: Path) -> None:
    first = FileLock(tmp_path / "d" / "gateway-0.lock")
    with pytest.raises(DsmsError, match=r"d' is in use by another deployment .*'gateway-0.lock'"):
        FileLock(tmp_path / "d" / "gateway-0.lock", wait=0.1)
    FileLock(tmp_path / "d" / "gateway-1.lock", wait=0.1).close()
    first.close()
    FileLock(tmp_path / "d" / "gateway-0.lock", wait=0.1).close()


def test_what_a_killed_process_held_is_free(tmp_path: Path) -> None:
    path = tmp_path / "gateway-0.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(DsmsError, match="in use"):
            FileLock(path, wait=0.1)
        other.kill()
    FileLock(path).close()


def test_a_folder_that_is_a_file_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("")
    with pytest.raises(DsmsError, match=r"gateway-0.lock' cannot be opened: (File exists|Not a directory)"):
        FileLock(tmp_path / "d" / "gateway-0.lock")


def test_two_gateways_do_not_write_to_one_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsms.storage.file_lock.LOCK_TIMEOUT_S", 0.1)
    first = Gateway("gateway-0", durable=str(tmp_path))
    with pytest.raises(DsmsError, match="in use"):
        Gateway("gateway-0", durable=str(tmp_path))
    first.close()
    Gateway("gateway-0", durable=str(tmp_path)).close()
