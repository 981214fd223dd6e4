"""A load on its way from Spark to a live system, open loop: rows go when they are due, whether it keeps up or not.

Between two micro-batches Spark has its own work to do for some tenths of a second. So there are two queries, the lanes,
with every other window of time each: while one pushes, the other makes what it will push next.
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

from dsms.clock import epoch, stopwatch
from dsms.errors import DsmsError, FailedError
from loadgen import sink, source
from loadgen.faults import gone, in_our_words, said
from loadgen.formats import register
from loadgen.load import Recipe, load_of
from loadgen.pace import GRAIN, Delivery
from loadgen.rows import NUMBER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LANES = 2
WINDOW = 2.0  # seconds: longer than what Spark does between two micro-batches, on a busy machine too
AWAY = 60.0  # seconds that a gateway may be away in a load that has begun: it may be started anew
LEAD = 3.0  # seconds from starting the queries to the first row: they must be ready by then

WARM: set[str] = set()  # the Sparks that have had their first query


@dataclass(frozen=True)
class Way:
    """Where the rows of a load go, and in what pieces."""

    address: str = ""  # or several, between commas; none: as `dsms.connect` finds it
    window: float = WINDOW
    grain: float = GRAIN
    partitions: int = 1

    def options(self) -> dict[str, Any]:
        """For the sink."""
        around = {
            "address": "DSMS_ADDRESS",
            "tokenfile": "DSMS_TOKEN_FILE",
            "ca": "DSMS_CA",
        }  # tasks may have other surroundings
        found = {option: os.environ[name] for option, name in around.items() if name in os.environ}
        given = {"address": self.address} if self.address else {}
        return {**found, **given, "pace": True, "grain": self.grain}


class Drive:
    """The queries of one load, and what they have delivered so far; to be closed."""

    def __init__(self, spark: SparkSession, recipe: Recipe, way: Way, checkpoint: Path | None = None) -> None:
        self._spark, self._recipe, self._way = spark, recipe, way
        self.load = load_of(recipe)
        self._temporary = tempfile.TemporaryDirectory(prefix="dsms-load-") if checkpoint is None else None
        self._folder = Path(self._temporary.name) if checkpoint is None and self._temporary else Path(str(checkpoint))
        self._folder.mkdir(parents=True, exist_ok=True)
        self._queries: list[Any] = []
        self.begun, self._lead = 0.0, LEAD  # when the first row is due; how soon a query is ready
        register(spark)

    def warm(self) -> None:
        """Take the first window through everything but the last step: the first query of a session is slow.

        The second one tells how soon a query is ready on this machine, as it is.
        """
        application = self._spark.sparkContext.applicationId
        for _ in range(1 if application in WARM else 2):
            begun = stopwatch()
            with tempfile.TemporaryDirectory(prefix="dsms-warm-") as folder:
                rows = self._rows(lanes=1, begin=epoch() - self._way.window).where(f"{NUMBER} < 0")
                query = self._written(rows, Path(folder))
                try:
                    with in_our_words("the load cannot be pushed"):
                        query.processAllAvailable()
                finally:
                    query.stop()
        self._lead = max(LEAD, LANES * (stopwatch() - begun))
        WARM.add(application)

    def start(self, begin: float | None = None) -> float:
        """Begin, or go on where a checkpoint ends; answers from when on rows are due."""
        self.begun = self._noted(epoch() + self._lead if begin is None else begin)
        if self.delivered()[0] >= self.windows:
            raise DsmsError(f"all of this load was delivered before; remove {str(self._folder)!r} to begin anew")
        for lane in range(self._lanes):
            rows = self._rows(lanes=self._lanes, lane=lane, ahead=(LANES + 1) * self._way.window, begin=self.begun)
            journal = self._folder / f"lane-{lane}.jsonl"
            how = {"journal": str(journal), "patience": AWAY, **self._turns(lane)}
            self._queries.append(self._written(rows, self._folder / f"lane-{lane}", **how))
        return self.begun

    def _noted(self, begin: float) -> float:
        """When this load began, which may be long ago: what is overdue by now is late. Another load is refused."""
        file = self._folder / "load.json"
        mine = {**self._recipe.options(), **asdict(self._way), "plan": hashlib.sha256(self._recipe.plan).hexdigest()}
        del mine["address"]  # the system may have moved
        if not file.exists():
            file.write_text(json.dumps({"begin": begin, "load": mine}), encoding="utf-8")
            return begin
        found = json.loads(file.read_text(encoding="utf-8"))
        for key in sorted(mine.keys() | found["load"].keys()):
            before, now = found["load"].get(key), mine.get(key)
            if before != now:
                raise DsmsError(f"{str(self._folder)!r} belongs to another load: {key} was {before}, and is {now}")
        return float(found["begin"])

    @property
    def windows(self) -> float:
        """How many there are in all; of a load that never ends, infinitely many."""
        return source.windows_of(self.load, source.micros(self._way.window * self.load.speedup))

    @property
    def _lanes(self) -> int:
        """A lane without a window would have a micro-batch all the same."""
        return int(max(1, min(LANES, self.windows)))

    def delivered(self) -> tuple[int, Delivery]:
        """How many windows are done, and what was delivered in them; also what was before a restart."""
        done: dict[tuple[str, int], Delivery] = {}
        for file in sorted(self._folder.glob("lane-*.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                found = json.loads(line)
                batch = found.pop("batch")
                done[file.name, batch] = Delivery.of_json(found)
        whole = Delivery()
        for each in done.values():
            whole.add(each)
        return len(done), whole

    def offered(self, start: float, stop: float) -> int:
        """How many rows are due in a stretch of time by the calendar."""
        speedup = self.load.speedup
        return self.load.due(max(0.0, (start - self.begun) * speedup), max(0.0, (stop - self.begun) * speedup))

    def check(self) -> None:
        """Raise what a query has failed of."""
        self._check(self._queries)

    def wait(self, wait: Callable[[], object]) -> None:
        """Until all is delivered, looking now and then."""
        while self.delivered()[0] < self.windows:
            self.check()
            wait()

    def stop(self) -> None:
        """End the queries; what a task is just sending is sent again if the load goes on from the checkpoint."""
        for query in self._queries:
            with gone():
                query.stop()
        self._queries = []

    def __enter__(self) -> Drive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _rows(self, **how: Any) -> Any:
        window = self._way.window * self._recipe.speedup
        pieces = {"window": window, "windows": 1, "partitions": self._way.partitions}
        reader = self._spark.readStream.format(source.FORMAT)
        with in_our_words("the load cannot be generated"):
            return reader.options(**self._recipe.options(), **pieces, **how).load()

    def _turns(self, lane: int) -> dict[str, Any]:
        """Rows of the next window never overtake those of the one before, where tasks can see each other's files."""
        if not (self._spark.sparkContext.master or "").startswith("local"):
            return {}
        folder = self._folder / "turns"
        folder.mkdir(exist_ok=True)
        return {"turns": str(folder), "lane": lane, "lanes": self._lanes, "partitions": self._way.partitions}

    def _written(self, rows: Any, folder: Path, **how: Any) -> Any:
        writer = rows.writeStream.format(sink.FORMAT).options(**self._way.options(), **how)
        with in_our_words("the load cannot be pushed"):
            return writer.option("checkpointLocation", str(folder)).start()

    def _check(self, queries: list[Any]) -> None:
        for query in queries:
            if (error := query.exception()) is not None:
                raise FailedError(f"the load could not go on: {said(error)}")
