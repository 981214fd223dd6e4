"""What is said of how safe a deployment is: by its status, and by its metrics."""

from __future__ import annotations

from itertools import accumulate

import pytest

from actors.safety import Safety
from dsms.errors import DsmsError
from dsms.metric_names import PAUSE


def test_nothing_is_said_of_a_checkpoint_before_there_is_one():
    safety = Safety("/d")
    assert safety.status() == {
        "folder": "/d", "checkpoint": None, "error": None, "recoveries": 0, "median": None, "worst": None
    }  # fmt: skip
    assert safety.checkpoint == {}
    assert {name for name, samples in safety.metrics().items() if not samples} == {"dsms_checkpoint_pause_seconds"}
    assert "dsms_checkpoint_age_seconds" not in safety.metrics()


def test_pauses_are_counted_by_domain_and_the_longest_is_that_of_the_checkpoint():
    safety = Safety("/d")
    safety.saved({"number": 1, "bytes": 10}, {"0": 0.004, "1": 0.3}, 0.5)
    safety.saved({"number": 2, "bytes": 20}, {"0": 0.004, "1": 60.0}, 0.7)
    last = safety.status()["checkpoint"]
    assert (last["number"], last["bytes"], last["pause"], last["seconds"]) == (2, 20, 60.0, 0.7)
    assert last["age"] >= 0
    found = dict(safety.metrics()["dsms_checkpoint_pause_seconds"])
    within = [sum(edge >= pause for pause in (0.004, 0.004)) for edge in PAUSE]
    assert list(accumulate(found[("0",)][0])) == [*within, 2]
    assert found[("0",)][1] == pytest.approx(0.008)
    assert (sum(found[("1",)][0]), found[("1",)][0][-1]) == (2, 1)
    assert safety.metrics()["dsms_checkpoints_total"] == [((), 2)]
    assert safety.metrics()["dsms_checkpoint_bytes"] == [((), 20)]


def test_a_failure_is_said_until_there_is_a_checkpoint_again():
    safety = Safety("/d")
    safety.failed(DsmsError("no space left"))
    assert safety.status()["error"] == "no space left"
    assert safety.metrics()["dsms_checkpoint_failed"] == [((), 1.0)]
    first = safety.overdue
    safety.failed(DsmsError("no space left"))
    assert 0 < first < safety.overdue  # since the first time
    safety.saved({"number": 1, "bytes": 10}, {"0": 0.004}, 0.5)
    assert safety.status()["error"] is None
    assert safety.overdue == 0
    assert safety.metrics()["dsms_checkpoint_failed"] == [((), 0.0)]


def test_recoveries_are_counted_and_the_middle_and_the_longest_said():
    safety = Safety("/d")
    safety.recoveries = 7  # those that were saved
    for seconds in (3.0, 1.0, 2.0):
        safety.recovered(seconds)
    safety.recovered()  # nobody knows how long it was gone
    assert safety.status() | {"folder": "", "checkpoint": None} == {
        "folder": "", "checkpoint": None, "error": None, "recoveries": 11, "median": 2.0, "worst": 3.0
    }  # fmt: skip
