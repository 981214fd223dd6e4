"""Drives a load from Spark into a live system in an open loop: rows are sent when due, whether it keeps up or not.

Between two micro-batches Spark is busy for some tenths of a second. So two streaming queries, the lanes, take turns by
windows of time: while one pushes its window, the other generates the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dsms.clock import monotonic_s, wall_time_s
from dsms.errors import DsmsError, FailedError
from loadgen.push.pacing import GRAIN_S, SendStats
from loadgen.spark import sink, source
from loadgen.spark.errors import extract_message, ignore_spark_exit, translate_errors
from loadgen.spark.register import register
from loadgen.spark.rows import NUMBER
from loadgen.spec.load import LoadSpec, make_load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_LANES = 2
WINDOW_S = 2.0  # longer than Spark's pause between two micro-batches, also on a busy machine
GATEWAY_TIMEOUT_S = 60.0  # how long a gateway may be unreachable during a load: it may be restarting
START_DELAY_S = 3.0  # from starting the queries to the first row: they must be ready by then

WARMED_SESSIONS: set[str] = set()  # application ids of the Spark sessions that have run a query


@dataclass(frozen=True)
class PushTarget:
    """The gateways that rows are pushed to, and how rows are grouped."""

    address: str = ""  # one, or several separated by commas; empty: the default of `dsms.connect`
    window: float = WINDOW_S
    grain: float = GRAIN_S
    partitions: int = 1

    def options(self) -> dict[str, Any]:
        """The options of the sink; tasks may have another environment, so its variables become options."""
        variables = {"address": "DSMS_ADDRESS", "tokenfile": "DSMS_TOKEN_FILE", "ca": "DSMS_CA"}
        environment = {option: os.environ[name] for option, name in variables.items() if name in os.environ}
        address = {"address": self.address} if self.address else {}
        return {**environment, **address, "pace": True, "grain": self.grain}


class Driver:
    """Runs the streaming queries of one load and reads their progress; a context manager."""

    def __init__(self, spark: SparkSession, spec: LoadSpec, target: PushTarget, checkpoint: Path | None = None) -> None:
        self._spark, self._spec, self._target = spark, spec, target
        self.load = make_load(spec)
        self._temporary = tempfile.TemporaryDirectory(prefix="dsms-load-") if checkpoint is None else None
        self._folder = Path(self._temporary.name) if checkpoint is None and self._temporary else Path(str(checkpoint))
        self._folder.mkdir(parents=True, exist_ok=True)
        self._queries: list[Any] = []
        self.begin, self._start_delay = 0.0, START_DELAY_S  # when the first row is due; how long a query needs to start
        register(spark)

    def warm(self) -> None:
        """Run a query that sends no rows: the first query of a session is slow.

        A second one measures how long a query needs to start on this machine.
        """
        application = self._spark.sparkContext.applicationId
        for _ in range(1 if application in WARMED_SESSIONS else 2):
            start = monotonic_s()
            with tempfile.TemporaryDirectory(prefix="dsms-warm-") as folder:
                rows = self._rows(lanes=1, begin=wall_time_s() - self._target.window).where(f"{NUMBER} < 0")
                query = self._write(rows, Path(folder))
                try:
                    with translate_errors("the load cannot be pushed"):
                        query.processAllAvailable()
                finally:
                    query.stop()
        self._start_delay = max(START_DELAY_S, DEFAULT_LANES * (monotonic_s() - start))
        WARMED_SESSIONS.add(application)

    def start(self, begin: float | None = None) -> float:
        """Start the load, or resume it from its checkpoint; returns the instant from which rows are due."""
        self.begin = self._read_begin(wall_time_s() + self._start_delay if begin is None else begin)
        if self.read_delivered()[0] >= self.windows:
            raise DsmsError(f"all of this load was delivered before; remove {str(self._folder)!r} to push it again")
        for lane in range(self._lanes):
            rows = self._rows(
                lanes=self._lanes, lane=lane, ahead=(DEFAULT_LANES + 1) * self._target.window, begin=self.begin
            )
            journal = self._folder / f"lane-{lane}.jsonl"
            options = {"journal": str(journal), "patience": GATEWAY_TIMEOUT_S, **self._window_order(lane)}
            self._queries.append(self._write(rows, self._folder / f"lane-{lane}", **options))
        return self.begin

    def _read_begin(self, begin: float) -> float:
        """The begin of this load, from its checkpoint if it has one; the checkpoint of another load is refused."""
        file = self._folder / "load.json"
        load = {**self._spec.options(), **asdict(self._target), "plan": hashlib.sha256(self._spec.plan).hexdigest()}
        del load["address"]  # the system may have moved
        if not file.exists():
            file.write_text(json.dumps({"begin": begin, "load": load}), encoding="utf-8")
            return begin
        checkpoint = json.loads(file.read_text(encoding="utf-8"))
        for key in sorted(load.keys() | checkpoint["load"].keys()):
            before, now = checkpoint["load"].get(key), load.get(key)
            if before != now:
                raise DsmsError(
                    f"checkpoint {str(self._folder)!r} belongs to another load: {key} was {before}, and is {now}; "
                    "use another folder"
                )
        return float(checkpoint["begin"])

    @property
    def windows(self) -> float:
        """The number of windows; infinite for a load that never ends."""
        return source.count_windows(self.load, source.to_micros(self._target.window * self.load.speedup))

    @property
    def _lanes(self) -> int:
        """The number of lanes, at most one per window: a lane without a window would run an empty micro-batch."""
        return int(max(1, min(DEFAULT_LANES, self.windows)))

    def read_delivered(self) -> tuple[int, SendStats]:
        """The number of windows delivered, and the counts of their rows, from before a restart too."""
        done: dict[tuple[str, int], SendStats] = {}
        for file in sorted(self._folder.glob("lane-*.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                batch = entry.pop("batch")
                done[file.name, batch] = SendStats.of_json(entry)
        total = SendStats()
        for stats in done.values():
            total.add(stats)
        return len(done), total

    def count_due(self, start: float, stop: float) -> int:
        """The number of rows due between two instants of wall-clock time."""
        speedup = self.load.speedup
        return self.load.count_due(max(0.0, (start - self.begin) * speedup), max(0.0, (stop - self.begin) * speedup))

    def check(self) -> None:
        """Raise the error of a query that has failed."""
        self._check(self._queries)

    def wait(self, sleep: Callable[[], object]) -> None:
        """Wait until all windows are delivered; calls `sleep` between two checks."""
        while self.read_delivered()[0] < self.windows:
            self.check()
            sleep()

    def stop(self) -> None:
        """Stop the queries; a window in progress is sent again if the load resumes from its checkpoint."""
        for query in self._queries:
            with ignore_spark_exit():
                query.stop()
        self._queries = []

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _rows(self, **options: Any) -> Any:
        window = self._target.window * self._spec.speedup
        pieces = {"window": window, "windows": 1, "partitions": self._target.partitions}
        reader = self._spark.readStream.format(source.FORMAT)
        with translate_errors("the load cannot be generated"):
            return reader.options(**self._spec.options(), **pieces, **options).load()

    def _window_order(self, lane: int) -> dict[str, Any]:
        """Sink options that keep windows in order; only where tasks share this machine's files."""
        if not (self._spark.sparkContext.master or "").startswith("local"):
            return {}
        folder = self._folder / "turns"
        folder.mkdir(exist_ok=True)
        return {"turns": str(folder), "lane": lane, "lanes": self._lanes, "partitions": self._target.partitions}

    def _write(self, rows: Any, folder: Path, **options: Any) -> Any:
        writer = rows.writeStream.format(sink.FORMAT).options(**self._target.options(), **options)
        with translate_errors("the load cannot be pushed"):
            return writer.option("checkpointLocation", str(folder)).start()

    def _check(self, queries: list[Any]) -> None:
        for query in queries:
            if (error := query.exception()) is not None:
                raise FailedError(f"the load failed: {extract_message(error)}")
