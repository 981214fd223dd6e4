"""A scrape has every metric of the table and no other, and a slow actor delays no other."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from support.live.domains import EVEN, ResultCollector, asked, batch, domain_of, settled
from support.live.in_process_domain import make_plan, run_plan
from support.metrics.exporting import HOST, exporting, scraped, value

import actors.metrics.exporter as exporter_module
import dsms
from actors.checkpoints.status import DurabilityStatus
from actors.deployment.launch import check_ports
from actors.metrics.exporter import Exporter, build_families
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.measure.metric_names import HISTOGRAM, METRICS

ADAPTIVE = "adaptive:candidates=fifo+chain"


class FakeComponent:
    """Gives a fixed answer, and counts calls."""

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.asked, self.gate = answer, 0, threading.Event()
        self.gate.set()

    def metrics(self) -> Any:
        self.asked += 1
        self.gate.wait(10)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_scrape_has_every_metric_of_the_table_and_no_other() -> None:
    with exporting() as address:
        found = scraped(address)
    wanted = {(metric.name, metric.kind, metric.help) for metric in METRICS}
    assert {(name, family.type, family.documentation) for name, family in found.items()} == wanted
    assert value(found, "dsms_build_info", deployment="d", version="1.2") == 1


def test_a_name_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(DsmsError, match=r"no metric 'dsms_queue_tupels' \(did you mean 'dsms_queue_tuples'"):
        list(build_families({"dsms_queue_tupels": []}))


def test_a_busy_deployment_has_a_sample_of_every_metric(tmp_path: Any) -> None:
    """All but those of a recording."""
    results, durability = ResultCollector(), DurabilityStatus("d")
    durability.record_checkpoint({"number": 1, "bytes": 99}, {"0": 0.004}, 0.1)
    with (
        domain_of(asked(even=EVEN), results, policy=ADAPTIVE) as domain,
        run_plan(make_plan({"s": {"x": "int64"}}, all="SELECT x FROM s"), durable=str(tmp_path)) as (_, gateway, door),
        dsms.connect(door) as client,
        exporting(domain=domain, gateway=gateway, deployment=durability) as address,
    ):
        client.push("s", batch(1, 2, 3))
        client.flush(10)
        domain.admit([("s", batch(*range(10)))])
        results.of("even", 5)
        settled(domain)
        domain.pause()
        domain.admit([("s", batch(*range(10)))])
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


def test_simultaneous_scrapes_share_one_collection() -> None:
    part = FakeComponent({})
    with exporting(one=part) as address:
        threads = [threading.Thread(target=scraped, args=(address,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert part.asked == 1


def test_after_half_a_second_samples_are_collected_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_module, "SAMPLES_TTL_S", 0.0)
    part = FakeComponent({"dsms_memory_tuples": [(("0",), 1.0)]})
    with exporting(one=part) as address:
        assert value(scraped(address), "dsms_memory_tuples") == 1
        part.answer = {"dsms_memory_tuples": [(("0",), 2.0)]}
        assert value(scraped(address), "dsms_memory_tuples") == 2


def test_actors_that_fail_or_do_not_answer_are_reported_as_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_module, "SCRAPE_TIMEOUT_S", 0.2)
    well, broken, slow = (
        FakeComponent({"dsms_memory_tuples": [(("0",), 7.0)]}),
        FakeComponent(DsmsError("no")),
        FakeComponent({}),
    )
    slow.gate.clear()
    with exporting(well=well, broken=broken, slow=slow) as address:
        found = scraped(address)
        slow.gate.set()
    ups = {sample.labels["part"]: sample.value for sample in found["dsms_part_up"].samples}
    assert ups == {"well": 1, "broken": 0, "slow": 0}
    assert value(found, "dsms_memory_tuples") == 7


def test_an_unusable_metrics_port_is_refused_before_anything_is_started() -> None:
    with pytest.raises(DsmsError, match="metrics: 80 cannot be the port: 10002 to 19999 are Ray's, below 1024 the"):
        LiveConfig.read({"metrics": 80})
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            DsmsError, match=f"metrics cannot be served at {HOST}:{port}: .*; `metrics` in .live. takes"
        ):
            check_ports(LiveConfig(port=0, metrics=port))


def test_a_port_in_use_is_an_error_and_a_closed_one_is_free_again() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DsmsError, match=f"metrics cannot be served at {HOST}:{port}: Address already in use"):
            Exporter("d", "1", []).listen(HOST, port)
    for _ in range(2):
        exporter = Exporter("d", "1", [])
        assert exporter.listen(HOST, port) == (HOST, port)
        exporter.close()
