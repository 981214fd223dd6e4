"""No progress though there is work: it is said once, with who is to blame, and unsaid when it goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import pytest
from support.live.domains import STREAMS, WAIT, ResultCollector, batch, domain_of, settled

from actors.deployment.actor_handles import wait_until
from dsms.data.batch import Batch
from dsms.live.monitor.status import WatchdogStatus
from dsms.live.watchdog import StallCause, Watchdog


class Ward:
    """Something to be watched, and what the watchdog did."""

    def __init__(self, station: str | None = "f") -> None:
        self.pulse: Hashable | None = 0
        self.ended = list[str]()
        self.dog = Watchdog("0", 10.0, lambda: self.pulse, lambda: StallCause("it hangs", station), self._end)

    def _end(self, station: str) -> bool:
        self.ended.append(station)
        return True

    def look(self, *instants: float) -> list[bool]:
        found = []
        for instant in instants:
            self.dog.check(instant)
            found.append(self.dog.stalled)
        return found


def test_an_alert_is_raised_when_patience_is_over_and_once(caplog: pytest.LogCaptureFixture) -> None:
    ward = Ward()
    with caplog.at_level(logging.WARNING, "dsms"):
        assert ward.look(0, 9, 10, 15) == [False, False, True, True]
        assert (ward.dog.alerts, ward.dog.status().culprit) == (1, "f")
        ward.pulse = 1
        assert ward.look(16, 25, 26) == [False, False, True]
    assert [record.message for record in caplog.records] == [
        "domain 0 is stalled: work but no progress for 10 s: it hangs",
        "domain 0 makes progress again after 16 s",
        "domain 0 is stalled: work but no progress for 10 s: it hangs",
    ]
    assert ward.dog.alerts == 2


def test_where_nothing_is_to_be_done_there_is_nothing_to_say() -> None:
    ward = Ward()
    ward.pulse = None
    assert ward.look(0, 100, 200) == [False, False, False]


def test_an_operator_that_hangs_for_twice_as_long_is_ended_once() -> None:
    ward = Ward()
    ward.look(0, 10, 19)
    assert ward.ended == []
    ward.look(20, 30, 40)
    assert ward.ended == ["f"]
    assert ward.dog.status().ended == "f"


def test_what_is_no_operator_is_not_ended() -> None:
    ward = Ward(station=None)
    ward.look(0, 10, 20, 30)
    assert ward.ended == []


COME_BACK = threading.Event()


def hang(batch: Batch) -> Batch:
    COME_BACK.wait(WAIT)
    return batch


def table(function: Any) -> dict[str, Any]:
    return {"streams": STREAMS, "queries": {"q": {"from": "s", "operators": [{"name": "f", "function": function}]}}}


@pytest.mark.parametrize("hosts", [None, 1], ids=["inline", "a host"])
def test_the_operator_that_does_not_come_back_is_named_while_it_does_not(hosts: int | None) -> None:
    COME_BACK.clear()
    results = ResultCollector()
    with domain_of(table(hang), results, hosts, patience=0.2) as domain:
        domain.status()
        domain.admit([("s", batch(1))])
        assert wait_until(lambda: domain.watchdog.status().culprit == "f", WAIT)
        status = domain.status()  # answered though the domain is not
        assert status.watchdog.culprit == "f"
        where = "here" if hosts is None else "host 0"
        assert status.watchdog.alert == f"operator 'f' ({where}) does not return"
        assert dict(domain.metrics())["dsms_watchdog_stalled"] == [(("0",), 1.0)]
        COME_BACK.set()
        assert results.of("q", 1) == [1]
        assert wait_until(lambda: not domain.watchdog.stalled, WAIT)
        assert replace(settled(domain).watchdog, alerts=0) == WatchdogStatus()
        assert domain.watchdog.alerts >= 1


def test_a_domain_that_is_full_and_waits_for_a_stream_says_for_which() -> None:
    streams = {name: {"schema": {"x": "int64", "at": "timestamp"}, "timestamp": "at"} for name in ("s", "t")}
    join = {"q": {"cql": "SELECT ISTREAM(s.x) FROM s [NOW], t [NOW] WHERE s.x = t.x"}}
    with domain_of({"streams": streams, "queries": join}, ResultCollector(), most_bytes=20_000, patience=0.2) as domain:

        def push() -> None:
            for first in range(0, 3000, 10):
                rows = list(range(first, first + 10))
                domain.admit([("s", Batch.of({"x": rows, "at": rows}))])

        pushing = threading.Thread(target=push)
        pushing.start()
        said = "it is at its memory limit and blocked: operator 'q.join' holds"
        assert wait_until(lambda: (domain.watchdog.status().alert or "").startswith(said), WAIT)
        domain.advance("t", 10_000)
        pushing.join(WAIT)
        assert not pushing.is_alive()
        assert wait_until(lambda: not domain.watchdog.stalled, WAIT)
