"""Starts and stops the Spark session of this process, local by default, on a Java that fits."""

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
from loadgen.spark.errors import ignore_spark_exit, translate_errors
from loadgen.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF_FOLDER = Path(__file__).parent / "conf"
LOCAL_MASTER = "local[4,4]"  # threads, most of which wait until rows are due; attempts per task
SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # the most rows of a frame
    "spark.sql.streaming.ui.enabled": "false",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # recordings are written with checksums
}

INTERRUPTED_CALLS = ("while sending command.", "while shutting down connection")  # the ends of py4j 0.10.9's messages


def get_session(master: str | None = None, name: str = "dsms") -> SparkSession:
    """The session of this process, started if there is none; workers of another `master` need dsms installed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise FailedError("this needs PySpark: `pip install 'dsms[spark]'` installs it and a Java") from None
    if (running := SparkSession.getActiveSession()) is not None:
        return running
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_CONF_DIR", str(CONF_FOLDER))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    hide_interruptions()
    builder = SparkSession.builder.master(master or LOCAL_MASTER).appName(name)
    for key, value in SPARK_SETTINGS.items():
        builder = builder.config(key, value)
    with _defer_signals():
        return builder.getOrCreate()


def hide_interruptions() -> None:
    """Do not show what py4j logs of an interruption, with tracebacks, although it also raises it."""
    for logger in ("", "py4j.clientserver"):
        logging.getLogger(logger).addFilter(_is_relevant)


def _is_relevant(record: logging.LogRecord) -> bool:
    return not str(record.msg).endswith(INTERRUPTED_CALLS)


@contextmanager
def _defer_signals() -> Iterator[None]:
    """Delay Ctrl-C and TERM to the end: an interrupt while Java starts would leave it running for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def note(number: int, _: Any) -> None:
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is note:  # else Spark has set its own, which cancels its jobs
                signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt


@contextmanager
def open_session(master: str | None = None) -> Iterator[SparkSession]:
    """Yield the session; stop it afterwards if this call started it."""
    before = get_active_session()
    session = get_session(master)
    received: list[int] = []
    try:
        with _note_interrupt(received), translate_errors("Spark failed"):
            yield session
    except FailedError:
        if received:
            raise KeyboardInterrupt from None
        raise
    finally:
        if before is None:
            with ignore_spark_exit():
                session.stop()


@contextmanager
def _note_interrupt(received: list[int]) -> Iterator[None]:
    """Record Ctrl-C: Spark then cancels its jobs, and its error may not name the interrupt."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def note(number: int, frame: Any) -> None:
        received.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def get_active_session() -> SparkSession | None:
    """The session that this process already has, or None."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
