"""A deployment's durability in its status and its metrics."""

from __future__ import annotations

from itertools import accumulate

import pytest

from actors.checkpoints.status import DurabilityStatus
from dsms.errors import DsmsError
from dsms.measure.metric_names import PAUSE


def test_before_the_first_checkpoint_the_status_has_none():
    durability = DurabilityStatus("/d")
    assert durability.status() == {
        "folder": "/d", "checkpoint": None, "error": None, "recoveries": 0, "median": None, "worst": None
    }  # fmt: skip
    assert durability.checkpoint == {}
    assert {name for name, samples in durability.metrics().items() if not samples} == {"dsms_checkpoint_pause_seconds"}
    assert "dsms_checkpoint_age_seconds" not in durability.metrics()


def test_pauses_are_counted_by_domain_and_the_longest_is_the_checkpoints():
    durability = DurabilityStatus("/d")
    durability.record_checkpoint({"number": 1, "bytes": 10}, {"0": 0.004, "1": 0.3}, 0.5)
    durability.record_checkpoint({"number": 2, "bytes": 20}, {"0": 0.004, "1": 60.0}, 0.7)
    last = durability.status()["checkpoint"]
    assert (last["number"], last["bytes"], last["pause"], last["seconds"]) == (2, 20, 60.0, 0.7)
    assert last["age"] >= 0
    found = dict(durability.metrics()["dsms_checkpoint_pause_seconds"])
    within = [sum(edge >= pause for pause in (0.004, 0.004)) for edge in PAUSE]
    assert list(accumulate(found[("0",)][0])) == [*within, 2]
    assert found[("0",)][1] == pytest.approx(0.008)
    assert (sum(found[("1",)][0]), found[("1",)][0][-1]) == (2, 1)
    assert durability.metrics()["dsms_checkpoints_total"] == [((), 2)]
    assert durability.metrics()["dsms_checkpoint_bytes"] == [((), 20)]


def test_a_failure_is_shown_until_the_next_checkpoint():
    durability = DurabilityStatus("/d")
    durability.record_failure(DsmsError("no space left"))
    assert durability.status()["error"] == "no space left"
    assert durability.metrics()["dsms_checkpoint_failed"] == [((), 1.0)]
    first = durability.overdue_s
    durability.record_failure(DsmsError("no space left"))
    assert 0 < first < durability.overdue_s  # since the first time
    durability.record_checkpoint({"number": 1, "bytes": 10}, {"0": 0.004}, 0.5)
    assert durability.status()["error"] is None
    assert durability.overdue_s == 0
    assert durability.metrics()["dsms_checkpoint_failed"] == [((), 0.0)]


def test_recoveries_are_counted_with_their_median_and_longest():
    durability = DurabilityStatus("/d")
    durability.recoveries = 7  # as saved
    for seconds in (3.0, 1.0, 2.0):
        durability.record_recovery(seconds)
    durability.record_recovery()  # the duration of the outage is unknown
    assert durability.status() | {"folder": "", "checkpoint": None} == {
        "folder": "", "checkpoint": None, "error": None, "recoveries": 11, "median": 2.0, "worst": 3.0
    }  # fmt: skip
