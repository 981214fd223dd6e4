"""The Spark session of this process: quiet, on a Java that fits, on this machine unless told otherwise."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.errors import FailedError
from loadgen.faults import gone, in_our_words
from loadgen.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = Path(__file__).parent / "conf"
LOCAL = "local[4,4]"  # threads, most of which wait for rows to be due; and how often a piece of work is tried
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # frames have as many rows as come at once
    "spark.sql.streaming.ui.enabled": "false",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # parts of recordings have them
}


def session(master: str | None = None, name: str = "dsms") -> SparkSession:
    """The session, started if there is none yet; a `master` of another cluster must have dsms installed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise FailedError("this needs PySpark: `pip install 'dsms[spark]'` brings it, and a Java") from None
    if (running := SparkSession.getActiveSession()) is not None:
        return running
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_CONF_DIR", str(CONF))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging.getLogger().addFilter(_news)
    builder = SparkSession.builder.master(master or LOCAL).appName(name)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    with _unbroken():
        return builder.getOrCreate()


def _news(record: logging.LogRecord) -> bool:
    """All but what the way to Java says of an interruption, at length: it is raised, too."""
    return not str(record.msg).endswith("while sending command.")


@contextmanager
def _unbroken() -> Iterator[None]:
    """Ctrl-C or TERM meanwhile counts afterwards: a Java that is left while it starts stays for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _: Any) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is note:  # else Spark has its own by now, which stops what it works on
                signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


@contextmanager
def during(master: str | None = None) -> Iterator[SparkSession]:
    """The session for as long as it is needed; stopped afterwards if it was started for this."""
    before = running()
    mine = session(master)
    came: list[int] = []
    try:
        with _noted(came), in_our_words("Spark could not do it"):
            yield mine
    except FailedError:
        if came:
            raise KeyboardInterrupt from None
        raise
    finally:
        if before is None:
            with gone():
                mine.stop()


@contextmanager
def _noted(came: list[int]) -> Iterator[None]:
    """Ctrl-C meanwhile is noted: Spark lets go of its work then, and may say that it failed rather than why."""
    theirs = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(theirs):
        yield
        return

    def note(number: int, frame: Any) -> None:
        came.append(number)
        theirs(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, theirs)


def running() -> SparkSession | None:
    """The session that this process has already."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
