"""Kills processes of durable deployments at random, and compares every result with DuckDB's.

`python -m chaos [KILLS] [SEED]`, in `tests`: KILLS kills (200), with seeds from SEED (0) on. The time to recover runs
from the last kill of a strike until a subscriber has a row that was sent after it.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from chaos.figures import ChaosStats
from chaos.storm import ACTORS, NODE, PAIR, SPARK, TWICE, Storm
from chaos.workers import WorkerNodes
from dsms.cli.signals import handle_signals, ignore_signals
from loadgen.spark.register import register
from loadgen.spark.session import open_session

DECK = (*ACTORS, "host", NODE, PAIR, TWICE, SPARK)  # strikes of one run


def main(kills: int = 200, seed: int = 0) -> int:
    """Run deployments until enough processes are killed; print a line for each strike, and the figures."""
    figures = ChaosStats()
    with tempfile.TemporaryDirectory(prefix="dsms-chaos-") as folder, handle_signals():
        workers = WorkerNodes(Path(folder))
        try:
            workers.start()
            with open_session() as spark:
                register(spark)
                while figures.killed < kills:
                    run(Path(tempfile.mkdtemp(dir=folder)), workers, spark, figures, seed, kills)
                    seed += 1
        except KeyboardInterrupt:
            return 130
        finally:
            with ignore_signals():
                workers.close()
            print(figures, flush=True)
    return 0 if figures.verdict.right else 1


def run(
    folder: Path,
    workers: WorkerNodes | None,
    spark: SparkSession | None,
    figures: ChaosStats,
    seed: int,
    kills: int,
    deck: Sequence[str] = DECK,
) -> None:
    """Run one deployment through a deck of strikes; some of these need worker nodes and Spark."""
    storm = Storm(folder, seed, actors=2 if workers is None else 3, workers=workers, spark=spark)
    try:
        for kind in random.Random(seed).sample(deck, len(deck)):
            if figures.killed >= kills:
                break
            killed, seconds = storm.strike(kind)
            figures.note_kill(kind, killed, seconds)
            print(f"kill {figures.killed} of {kills}: {kind}, recovered in {seconds:.1f} s", flush=True)
        verdict = storm.finish()
        figures.verdict += verdict
        figures.rows += storm.rows
        print(f"run with seed {seed}: {storm.rows:,} rows; {verdict}", flush=True)
    finally:
        with ignore_signals():
            storm.close()


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
