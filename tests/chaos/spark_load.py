"""Sends rows from Spark in a task of some seconds, and kills the processes of its tasks meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from soak.processes import list_descendants

from dsms.clock import wall_time_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, SECONDS = 800, 8.0  # of one task
START_DELAY_S = 3.0  # seconds until the first row is due: by then there is a task
JOB_TIMEOUT_S = 120.0


class SparkLoad:
    """Ids from 0 on into the stream `c`, a job at a time."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self._spark, self._address = spark, address
        self._job: threading.Thread | None = None
        self._error: BaseException | None = None
        self._begin = 0.0
        self.pushed = 0

    def start(self) -> None:
        """Start a job, once the previous one has ended."""
        self.finish()
        self._begin = wall_time_s() + START_DELAY_S
        self._job = threading.Thread(target=self._send, args=(self.pushed,), daemon=True)
        self.pushed += ROWS
        self._job.start()

    def kill(self) -> int:
        """SIGKILL for all processes of Spark's tasks while some rows are still to come; the id of one of those."""
        for task in self._tasks():
            os.kill(task, signal.SIGKILL)
        done = min(1.0, (wall_time_s() - self._begin) / SECONDS)
        return min(self.pushed - 1, self.pushed - ROWS + int(done * ROWS) + 1)

    def finish(self) -> None:
        """Wait until all rows are acknowledged."""
        if self._job is not None:
            self._job.join(JOB_TIMEOUT_S)
            assert not self._job.is_alive(), "Spark has not sent everything"
        self.check()

    def check(self) -> None:
        """Raise the error of a failed job."""
        if self._error is not None:
            raise self._error

    def _send(self, first: int) -> None:
        ids = range(first, first + ROWS)
        rows_due = [(number, self._begin + (number - first) * SECONDS / ROWS) for number in ids]
        rows = self._spark.createDataFrame(rows_due, "id long, _due double").coalesce(
            1
        )  # which tells this thread of Spark
        options = {
            "address": self._address,
            "stream": "c",
            "pace": "true",
            "patience": JOB_TIMEOUT_S,
            "timeout": JOB_TIMEOUT_S,
        }
        try:
            rows.write.format("dsms").options(**options).mode("append").save()
        except BaseException as error:
            self._error = error

    def _tasks(self) -> list[int]:
        """The processes that Spark's Python daemons have forked for tasks."""
        parents = list_descendants()
        daemons = {pid for pid, parent in parents.items() if _is_daemon(pid) and not _is_daemon(parent)}
        return [pid for pid, parent in parents.items() if parent in daemons]


def _is_daemon(process: int) -> bool:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return b"pyspark.daemon" in words and b"pyspark.worker" in words  # others plan queries
