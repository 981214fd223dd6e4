"""The newest checkpoint is damaged: results that were given out are made again, cut otherwise, and nobody is misled."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import EXACT

from actors.archive import Archive
from actors.durable_outlet import DurableOutlet
from actors.durable_scheduler import Stood
from actors.parts import wait_for
from actors.redone import counted, without
from actors.saved import Domains, Saved
from dsms.batch import Batch
from dsms.live.roster import Roster
from dsms.schema import Schema

N = Schema.of({"n": "int64"})
QUERIES = {"come": ({"jsonl": "come.jsonl"}, N, True), "held": ({"jsonl": "held.jsonl"}, N, False)}
TABLE = {"streams": {"s": {"schema": {"n": "int64"}}}, "queries": {"all": {"cql": "SELECT n FROM s"}}}


class Reader:
    """A gateway that wants everything."""

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
    """A domain that puts out how many rows there are so far, one sum or one row for each, cut as it is told."""

    def __init__(self, outlet, life, done=0, number=0):
        self._outlet, self._life, self.done, self.number = outlet, life, done, number

    def make(self, *cuts):
        for rows in cuts:
            self.number += 1
            fresh = list(range(self.done, self.done + rows))
            changed = [self.done, self.done + rows] if self.done else [rows]
            signs = np.array([-1, 1][-len(changed) :])
            come = Batch.of({"n": np.array(fresh)}, ts=np.zeros(rows, np.int64))
            held = Batch.of({"n": np.array(changed)}, ts=np.zeros(len(changed), np.int64), sign=signs)
            self._outlet.take([("come", self.number, come), ("held", self.number, held)], self._life)
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
    """All that was given out has come."""
    latest = {one["name"]: one["results"] for one in outlet.status()["queries"]}
    assert wait_for(lambda: all(last(reader, query) == number for query, number in latest.items()), 30)


def subscribed(outlet, reader):
    """From where it is, as a gateway that has to connect again."""
    for query in QUERIES:
        after = last(reader, query)
        _, past = outlet.subscribe(query, reader, "g", after)
        reader.results([(query, number, batch) for number, batch in past])


def saved_in(archive, outlet, numbers):
    """A checkpoint of results up to these numbers, which are then given out."""
    accounts = outlet.collect(numbers)
    saved = Saved(0.0, TABLE, Roster(TABLE), {}, {}, [], accounts, numbers, 1, 0)
    number = archive.save(saved, Domains({"0": Stood(b"", numbers, {}, 0, 0.0)}, {"0": []}))["number"]
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


@settings(EXACT, max_examples=12)
@given(
    covered=cuts(),
    lost=st.lists(cuts(), min_size=1, max_size=2),
    again=cuts(),
    ahead=cuts(0),
    more=cuts(),
    dies=st.booleans(),
)
def test_rows_are_given_out_once_in_all_though_checkpoints_cannot_be_read(
    tmp_path_factory, covered, lost, again, ahead, more, dies
):
    folder, reader = tmp_path_factory.mktemp("redone"), Reader()
    archive, outlet = Archive(folder / "durable"), DurableOutlet()
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

    archive = Archive(folder / "durable")
    saved, _ = archive.latest()
    assert saved.numbers == dict.fromkeys(QUERIES, number)
    if dies:  # the outlet too
        past, beyond = archive.past()
        outlet = DurableOutlet()
        outlet.restore(saved.accounts, past, {name: (told, str(folder)) for name, told in QUERIES.items()}, beyond)
        outlet.release(saved.numbers)
        subscribed(outlet, reader)
    else:
        outlet.rewind(saved.numbers, [1])
    maker = Maker(outlet, 2, known, number)
    numbers, known = maker.make(*again), maker.done
    maker.make(*ahead)  # comes before the checkpoint without it is there, and is lost
    saved_in(archive, outlet, numbers)
    caught_up(outlet, reader)

    archive, after = Archive(folder / "durable"), DurableOutlet()  # once more, with a checkpoint that is sound
    saved, _ = archive.latest()
    past, beyond = archive.past()
    assert beyond == []
    after.restore(saved.accounts, past, {name: (told, str(folder)) for name, told in QUERIES.items()}, beyond)
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


def test_results_of_a_checkpoint_that_never_was_are_not_taken_for_given(tmp_path):
    archive, outlet = Archive(tmp_path / "durable"), DurableOutlet()
    outlet.open(QUERIES, str(tmp_path))
    maker = Maker(outlet, 1)
    saved_in(archive, outlet, maker.make(1))
    saved_in(archive, outlet, maker.make(2)).unlink()  # killed before it was there
    archive = Archive(tmp_path / "durable")
    archive.latest()
    past, beyond = archive.past()
    assert (len(past), beyond) == (1, [])
    assert len(archive.past()[0]) == 1


@pytest.mark.parametrize("value", [None, "a"])
def test_texts_and_nulls_are_told_apart(value):
    batch = Batch.of({"t": np.array([value, "b", value], dtype=object)})
    surplus = counted([batch.pick(slice(0, 2))])
    assert without(batch, surplus).columns["t"].tolist() == [value]
    assert not surplus
