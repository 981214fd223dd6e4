"""A result hub holds results until a checkpoint covers them; each is released once, whatever dies."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.live.in_process_domain import make_plan, make_routes, run_gateway

import dsms
from actors.deployment.actor_handles import wait_until
from actors.results.release import ReleaseWithCheckpoint
from actors.results.result_hub import ResultHub
from dsms import Batch
from dsms.data.schema import Schema
from dsms.errors import PlanError

N = Schema.of({"n": "int64"})
FILES = {"j": ({"jsonl": "j.jsonl"}, N, True), "c": ({"csv": "c.csv"}, N, True), "s": (None, N, True)}
WAIT = 30.0


def rows(*numbers):
    return Batch.of({"n": np.array(numbers, dtype=np.int64)}, ts=np.zeros(len(numbers), dtype=np.int64))


def opened(folder):
    outlet = ResultHub(ReleaseWithCheckpoint())
    outlet.open(FILES, str(folder))
    return outlet


def lines(folder):
    """The content of both files."""
    found = [json.loads(line)["n"] for line in (folder / "j.jsonl").read_text().splitlines()]
    head, others = (folder / "c.csv").read_text().splitlines()[:1], (folder / "c.csv").read_text().splitlines()[1:]
    assert head in ([], ['"ts","n"'])  # not there before the first row
    assert [int(line.split(",")[1]) for line in others] == found
    return found


def took(outlet, *numbers, incarnation=1):
    outlet.take([(query, number, rows(number)) for number in numbers for query in FILES], incarnation)


def upto(number):
    return dict.fromkeys(FILES, number)


def again(folder, accounts, past=()):
    """A new process restored from a checkpoint."""
    outlet = ResultHub(ReleaseWithCheckpoint())
    outlet.restore(accounts, past, {name: (told, str(folder)) for name, told in FILES.items()})
    return outlet


def test_results_wait_until_they_are_released(tmp_path):
    outlet = opened(tmp_path)
    took(outlet, 2, 1, 3)
    assert lines(tmp_path) == []
    assert outlet.find_incomplete(upto(3)) == []
    assert outlet.find_incomplete(upto(4)) == list(FILES)
    outlet.release(upto(2))
    assert lines(tmp_path) == [1, 2]
    assert [query["held"] for query in outlet.status()["queries"]] == [1, 1, 1]
    outlet.close()


def test_results_of_an_earlier_incarnation_are_dropped_and_numbers_continue(tmp_path):
    outlet = opened(tmp_path)
    took(outlet, 1, 2, 3)
    outlet.release(upto(1))
    outlet.rewind(upto(1), [1])
    took(outlet, 4)  # was on its way when its host died
    outlet.take([(query, 2, rows(22)) for query in FILES], 2)
    outlet.release(upto(2))
    assert lines(tmp_path) == [1, 22]
    assert [query["results"] for query in outlet.status()["queries"]] == [2, 2, 2]
    outlet.close()


@pytest.mark.parametrize("released", [False, True])
def test_saved_results_are_released_once_whether_it_died_before_or_after(tmp_path, released):
    outlet = opened(tmp_path)
    took(outlet, 1, 2)
    outlet.release(upto(2))
    took(outlet, 3, 4)
    accounts = outlet.snapshot(upto(3))
    if released:
        outlet.release(upto(4))
    after = again(tmp_path, accounts)
    assert lines(tmp_path) == [1, 2]
    after.release(upto(3))
    assert lines(tmp_path) == [1, 2, 3]
    after.take([(query, 4, rows(44)) for query in FILES], 2)
    after.release(upto(4))
    assert lines(tmp_path) == [1, 2, 3, 44]
    after.close()


def test_a_file_that_lacks_written_rows_is_refused(tmp_path):
    outlet = opened(tmp_path)
    took(outlet, 1)
    outlet.release(upto(1))
    accounts = outlet.snapshot(upto(1))
    outlet.close()
    (tmp_path / "j.jsonl").write_text("")
    with pytest.raises(PlanError, match=r"queries\.j\.sink: .*j.jsonl' has 0 bytes, but [0-9]+ were written to it"):
        again(tmp_path, accounts)


def test_a_subscriber_continues_with_a_new_result_hub_without_a_gap_or_a_duplicate(tmp_path):
    plan = make_plan({"x": {"n": "int64"}}, s="SELECT n FROM x")
    outlet = opened(tmp_path)
    with run_gateway(make_routes(plan), result_hub=outlet) as (gateway, address), dsms.connect(address) as client:
        results = client.subscribe("s", 0)
        took(outlet, 1, 2, 3)
        past = outlet.snapshot(upto(1))
        outlet.release(upto(1))
        assert results.next(WAIT).number == 1
        accounts = outlet.snapshot(upto(3))
        after = again(tmp_path, accounts, [past])
        after.release(upto(3))
        gateway.attach(after)
        assert [results.next(WAIT).number for _ in range(2)] == [2, 3]
        after.take([("s", 4, rows(44))], 2)
        after.release(upto(4))
        assert results.next(WAIT).records() == [{"n": 44}]
        late = dsms.connect(address)
        assert [batch.number for batch in (late.subscribe("s", 0).next(WAIT),)] == [1]
        assert wait_until(lambda: gateway.status()["subscribers"] == 2, WAIT)
        late.close()
    after.close()
