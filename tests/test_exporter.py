"""Metrics over HTTP as Prometheus reads them: all of the table, nothing else, and no part that keeps others waiting."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from live_parts import plan_of, running
from prometheus_client.parser import text_string_to_metric_families
from test_domain import EVEN, Results, asked, batch, domain_of, settled

import actors.exporter
import dsms
from actors.exporter import Exporter, Source, families
from actors.launch import check_ports
from actors.safety import Safety
from dsms.errors import DsmsError
from dsms.live.setup import Setup
from dsms.metric_names import COUNTER, HISTOGRAM, METRICS

HOST = "127.0.0.1"
ADAPTIVE = "adaptive:candidates=fifo+chain"


class Part:
    """Answers what it is told to, and counts how often it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.asked, self.gate = answer, 0, threading.Event()
        self.gate.set()

    def metrics(self) -> Any:
        self.asked += 1
        self.gate.wait(10)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@contextmanager
def exporting(**parts: Any) -> Iterator[str]:
    """The address of an exporter of these."""
    exporter = Exporter("d", "1.2", [Source(name, part, "metrics") for name, part in parts.items()])
    try:
        yield "http://{}:{}/metrics".format(*exporter.listen(HOST, 0))
    finally:
        exporter.close()


def scraped(address: str) -> dict[str, Any]:
    """By name, the families that a scrape brings."""
    with urllib.request.urlopen(address, timeout=20) as answer:
        found = list(text_string_to_metric_families(answer.read().decode()))
    return {family.name + ("_total" if family.type == COUNTER else ""): family for family in found}


def value(found: dict[str, Any], metric: str, **labels: str) -> float:
    """Of the one sample with these labels, perhaps among others."""
    [sample] = [s for s in found[metric].samples if labels.items() <= s.labels.items()]
    return float(sample.value)


def test_a_scrape_has_every_metric_of_the_table_and_no_other() -> None:
    with exporting() as address:
        found = scraped(address)
    wanted = {(metric.name, metric.kind, metric.help) for metric in METRICS}
    assert {(name, family.type, family.documentation) for name, family in found.items()} == wanted
    assert value(found, "dsms_build_info", deployment="d", version="1.2") == 1


def test_a_name_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(DsmsError, match=r"no metric 'dsms_queue_tupels' \(did you mean 'dsms_queue_tuples'"):
        list(families({"dsms_queue_tupels": []}))


def test_of_everything_there_is_a_sample_where_everything_happens(tmp_path: Any) -> None:
    """All but what only a recording has."""
    results, safety = Results(), Safety("d")
    safety.saved({"number": 1, "bytes": 99}, {"0": 0.004}, 0.1)
    with (
        domain_of(asked(even=EVEN), results, policy=ADAPTIVE) as domain,
        running(plan_of({"s": {"x": "int64"}}, all="SELECT x FROM s"), durable=str(tmp_path)) as (_, gateway, door),
        dsms.connect(door) as client,
        exporting(domain=domain, gateway=gateway, deployment=safety) as address,
    ):
        client.push("s", batch(1, 2, 3))
        client.flush(10)
        domain.arrived([("s", batch(*range(10)))])
        results.of("even", 5)
        settled(domain)
        domain.pause()
        domain.arrived([("s", batch(*range(10)))])
        found = scraped(address)
    silent = {name for name, family in found.items() if not family.samples}
    assert silent <= {"dsms_recording_failed", "dsms_operator_priority"}
    for metric in METRICS:
        for sample in found[metric.name].samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)
            if metric.kind == HISTOGRAM and sample.name.endswith("_count"):
                ends = [s.value for s in found[metric.name].samples if s.labels == sample.labels | {"le": "+Inf"}]
                assert ends == [sample.value]
    assert value(found, "dsms_result_rows_total", query="even") == 5
    assert value(found, "dsms_ingest_rows_total", part="g", stream="s") == 3
    assert value(found, "dsms_ingest_connections", part="g") == 1
    assert value(found, "dsms_memory_tuples") == 10


def test_several_who_ask_at_once_cost_as_much_as_one() -> None:
    part = Part({})
    with exporting(one=part) as address:
        threads = [threading.Thread(target=scraped, args=(address,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert part.asked == 1


def test_after_a_moment_parts_are_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actors.exporter, "FRESH", 0.0)
    part = Part({"dsms_memory_tuples": [(("0",), 1.0)]})
    with exporting(one=part) as address:
        assert value(scraped(address), "dsms_memory_tuples") == 1
        part.answer = {"dsms_memory_tuples": [(("0",), 2.0)]}
        assert value(scraped(address), "dsms_memory_tuples") == 2


def test_parts_that_fail_or_do_not_answer_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actors.exporter, "ANSWER", 0.2)
    well, broken, slow = Part({"dsms_memory_tuples": [(("0",), 7.0)]}), Part(DsmsError("no")), Part({})
    slow.gate.clear()
    with exporting(well=well, broken=broken, slow=slow) as address:
        found = scraped(address)
        slow.gate.set()
    ups = {sample.labels["part"]: sample.value for sample in found["dsms_part_up"].samples}
    assert ups == {"well": 1, "broken": 0, "slow": 0}
    assert value(found, "dsms_memory_tuples") == 7


def test_a_port_for_metrics_that_cannot_be_is_refused_before_anything_is_started() -> None:
    with pytest.raises(DsmsError, match="metrics: 80 cannot be the port: 10002 to 19999 are Ray's, below 1024 the"):
        Setup.read({"metrics": 80})
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            DsmsError, match=f"metrics cannot be served at {HOST}:{port}: .*; `metrics` in .live. takes"
        ):
            check_ports(Setup(port=0, metrics=port))


def test_a_port_that_is_taken_is_said_and_one_that_was_used_is_free_again() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DsmsError, match=f"metrics cannot be served at {HOST}:{port}: Address already in use"):
            Exporter("d", "1", []).listen(HOST, port)
    for _ in range(2):
        exporter = Exporter("d", "1", [])
        assert exporter.listen(HOST, port) == (HOST, port)
        exporter.close()
