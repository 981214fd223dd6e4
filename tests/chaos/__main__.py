"""Kill processes of durable deployments at random, run after run, and compare every result with DuckDB's.

`python -m chaos [KILLS] [SEED]`, in `tests`: so many kills (200), with seeds from SEED (0) on. Time to recover is from
the last kill of a strike until a row that was sent after it has come to a subscriber.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from chaos.figures import Figures
from chaos.storm import ACTORS, NODE, PAIR, SPARK, TWICE, Storm
from chaos.workers import Workers
from dsms.cli.stopping import stoppable, undisturbed
from loadgen.formats import register
from loadgen.session import during

DECK = (*ACTORS, "host", NODE, PAIR, TWICE, SPARK)  # strikes of one run


def main(kills: int = 200, seed: int = 0) -> int:
    """All runs, a line for each strike, and the figures."""
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="dsms-chaos-") as folder, stoppable():
        workers = Workers(Path(folder))
        try:
            workers.start()
            with during() as spark:
                register(spark)
                while figures.killed < kills:
                    run(Path(tempfile.mkdtemp(dir=folder)), workers, spark, figures, seed, kills)
                    seed += 1
        except KeyboardInterrupt:
            return 130
        finally:
            with undisturbed():
                workers.close()
            print(figures, flush=True)
    return 0 if figures.verdict.right else 1


def run(folder: Path, workers: Workers, spark: SparkSession, figures: Figures, seed: int, kills: int) -> None:
    """One deployment through a deck of strikes."""
    storm = Storm(folder, seed, workers=workers, spark=spark)
    try:
        for kind in random.Random(seed).sample(DECK, len(DECK)):
            if figures.killed >= kills:
                break
            struck, seconds = storm.strike(kind)
            figures.struck(kind, struck, seconds)
            print(f"kill {figures.killed} of {kills}: {kind}, made good in {seconds:.1f} s", flush=True)
        verdict = storm.finish()
        figures.verdict += verdict
        figures.rows += storm.rows
        print(f"run with seed {seed}: {storm.rows:,} rows; {verdict}", flush=True)
    finally:
        with undisturbed():
            storm.close()


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
