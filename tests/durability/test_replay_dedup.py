"""The newest checkpoint is damaged: released results are produced again in other batches, and no row counts twice."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

from actors.checkpoints.checkpoint import DeploymentCheckpoint, DomainCheckpoints
from actors.checkpoints.store import CheckpointStore
from actors.deployment.actor_handles import wait_until
from actors.results.release import ReleaseWithCheckpoint
from actors.results.replay_dedup import count_rows, drop_duplicates
from actors.results.result_hub import ResultHub
from actors.scheduler.scheduler import DomainCheckpoint
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.live.query_set import QuerySet

N = Schema.of({"n": "int64"})
QUERIES = {"come": ({"jsonl": "come.jsonl"}, N, True), "held": ({"jsonl": "held.jsonl"}, N, False)}
TABLE = {"streams": {"s": {"schema": {"n": "int64"}}}, "queries": {"all": {"cql": "SELECT n FROM s"}}}


class FakeGateway:
    """A gateway that subscribes to everything."""

    def __init__(self):
        self.got = {query: [] for query in QUERIES}

    def results(self, results):
        for query, number, batch in results:
            self.got[query].append((number, batch))

    def net(self, query):
        found = Counter()
        for _, batch in self.got[query]:
            for n, sign in zip(batch.columns["n"].tolist(), batch.each("sign").tolist(), strict=True):
                found[n] += sign
                assert found[n] >= 0
        return +found


class Maker:
    """A domain that outputs counts or rows, in batches of the given sizes."""

    def __init__(self, outlet, incarnation, done=0, number=0):
        self._outlet, self._incarnation, self.done, self.number = outlet, incarnation, done, number

    def make(self, *cuts):
        for rows in cuts:
            self.number += 1
            fresh = list(range(self.done, self.done + rows))
            changed = [self.done, self.done + rows] if self.done else [rows]
            signs = np.array([-1, 1][-len(changed) :])
            come = Batch.of({"n": np.array(fresh)}, ts=np.zeros(rows, np.int64))
            held = Batch.of({"n": np.array(changed)}, ts=np.zeros(len(changed), np.int64), sign=signs)
            self._outlet.take([("come", self.number, come), ("held", self.number, held)], self._incarnation)
            self.done += rows
        return dict.fromkeys(QUERIES, self.number)


def filed(folder, query):
    found = Counter()
    for line in (folder / f"{query}.jsonl").read_text().splitlines():
        row = json.loads(line)
        found[row["n"]] += row.get("sign", 1)
    return +found


def last(reader, query):
    return max((number for number, _ in reader.got[query]), default=0)


def caught_up(outlet, reader):
    """Wait until all released results have arrived."""
    latest = {one["name"]: one["results"] for one in outlet.status()["queries"]}
    assert wait_until(lambda: all(last(reader, query) == number for query, number in latest.items()), 30)


def subscribed(outlet, reader):
    """Subscribe from the last result on, like a gateway that reconnects."""
    for query in QUERIES:
        after = last(reader, query)
        _, past = outlet.subscribe(query, reader, "g", after)
        reader.results([(query, number, batch) for number, batch in past])


def saved_in(archive, outlet, numbers):
    """Save a checkpoint of results up to these numbers, then release them."""
    release_records = outlet.snapshot(numbers)
    saved = DeploymentCheckpoint(0.0, TABLE, QuerySet(TABLE), {}, {}, [], release_records, numbers, 1, 0)
    number = archive.save(saved, DomainCheckpoints({"0": DomainCheckpoint(b"", numbers, {}, 0, 0.0)}, {"0": []}))[
        "number"
    ]
    outlet.release(numbers)
    return archive.folder / "checkpoints" / f"checkpoint-{number:012}"


def right(folder, reader, rows):
    for found in (reader.net("come"), filed(folder, "come")):
        assert found == Counter(range(rows))
    for found in (reader.net("held"), filed(folder, "held")):
        assert found == Counter([rows])
    for query in QUERIES:
        numbers = [number for number, _ in reader.got[query]]
        assert numbers == list(range(1, len(numbers) + 1))


def cuts(least=1):
    return st.lists(st.integers(1, 5), min_size=least, max_size=4)


@settings(DETERMINISTIC, max_examples=12)
@given(
    covered=cuts(),
    lost=st.lists(cuts(), min_size=1, max_size=2),
    again=cuts(),
    ahead=cuts(0),
    more=cuts(),
    dies=st.booleans(),
)
def test_rows_are_released_once_though_checkpoints_cannot_be_read(
    tmp_path_factory, covered, lost, again, ahead, more, dies
):
    folder, reader = tmp_path_factory.mktemp("redone"), FakeGateway()
    archive, outlet = CheckpointStore(folder / "durable"), ResultHub(ReleaseWithCheckpoint())
    outlet.open(QUERIES, str(folder))
    subscribed(outlet, reader)
    maker = Maker(outlet, 1)
    saved_in(archive, outlet, maker.make(*covered))
    known, number = maker.done, maker.number
    for each in lost:
        damaged = saved_in(archive, outlet, maker.make(*each))
        damaged.write_bytes(damaged.read_bytes()[:-1])
    rows = maker.done
    caught_up(outlet, reader)

    archive = CheckpointStore(folder / "durable")
    saved, _ = archive.latest()
    assert saved.numbers == dict.fromkeys(QUERIES, number)
    if dies:  # the result hub too
        past, beyond = archive.past()
        outlet = ResultHub(ReleaseWithCheckpoint())
        outlet.restore(
            saved.release_records, past, {name: (told, str(folder)) for name, told in QUERIES.items()}, beyond
        )
        outlet.release(saved.numbers)
        subscribed(outlet, reader)
    else:
        outlet.rewind(saved.numbers, [1])
    maker = Maker(outlet, 2, known, number)
    numbers, known = maker.make(*again), maker.done
    maker.make(*ahead)  # arrives before the next checkpoint is committed, and is lost
    saved_in(archive, outlet, numbers)
    caught_up(outlet, reader)

    archive, after = (
        CheckpointStore(folder / "durable"),
        ResultHub(ReleaseWithCheckpoint()),
    )  # once more, with a readable checkpoint
    saved, _ = archive.latest()
    past, beyond = archive.past()
    assert beyond == []
    after.restore(saved.release_records, past, {name: (told, str(folder)) for name, told in QUERIES.items()}, beyond)
    after.release(saved.numbers)
    subscribed(after, reader)
    maker = Maker(after, 3, known, numbers["come"])
    numbers = maker.make(*more)
    if maker.done < rows:
        numbers = maker.make(rows - maker.done)
    after.release(numbers)
    caught_up(after, reader)
    right(folder, reader, maker.done)
    after.close()


def test_results_of_an_uncommitted_checkpoint_do_not_count_as_released(tmp_path):
    archive, outlet = CheckpointStore(tmp_path / "durable"), ResultHub(ReleaseWithCheckpoint())
    outlet.open(QUERIES, str(tmp_path))
    maker = Maker(outlet, 1)
    saved_in(archive, outlet, maker.make(1))
    saved_in(archive, outlet, maker.make(2)).unlink()  # killed before it was committed
    archive = CheckpointStore(tmp_path / "durable")
    archive.latest()
    past, beyond = archive.past()
    assert (len(past), beyond) == (1, [])
    assert len(archive.past()[0]) == 1


@pytest.mark.parametrize("value", [None, "a"])
def test_texts_and_nulls_are_told_apart(value):
    batch = Batch.of({"t": np.array([value, "b", value], dtype=object)})
    duplicates = count_rows([batch.pick(slice(0, 2))])
    assert drop_duplicates(batch, duplicates).columns["t"].tolist() == [value]
    assert not duplicates
