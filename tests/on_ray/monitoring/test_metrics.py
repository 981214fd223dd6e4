"""The metrics of a deployment on Ray agree with its status and the pushed rows."""

from __future__ import annotations

import urllib.error
import urllib.request
from bisect import bisect_left

import numpy as np
import pytest
from support.metrics.exporting import scraped, value

import dsms
from actors.control.deploy import up
from actors.deployment.actor_handles import list_actor_names, wait_until
from actors.rpc.messages import get_result, send
from dsms.config.live import LiveConfig
from dsms.measure.histogram import BUCKETS_PER_DECADE
from dsms.measure.metric_names import LATENCY

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]
TABLE = {
    "streams": {"s": {"schema": {"k": "int64"}}},
    "queries": {
        "even": {"cql": "SELECT k FROM s WHERE k % 2 = 0"},
        "groups": {"cql": "SELECT RSTREAM(k, count(*) AS n) FROM s [ROWS 10] GROUP BY k"},
    },
}
FRAMES, ROWS = 20, 100
BUCKET = 10 ** (1 / BUCKETS_PER_DECADE)  # factor by which the status may differ


def samples(found, name):
    """The values by the last label that is not the domain."""
    return {tuple(s.labels.values())[-1]: s.value for s in found[name].samples}


def test_values_agree_with_the_status_of_the_run(ray_cluster, tmp_path):
    setup = LiveConfig(port=0, actors=2, metrics=0)
    handle = up(TABLE, str(tmp_path), "p.toml", "metered", setup)
    address = get_result(send(handle.status)).metrics
    door = get_result(send(handle.identity))["gateways"][0]
    with dsms.connect(door) as client:
        for number in range(FRAMES):
            client.push("s", {"k": np.arange(ROWS) + number})
        client.flush(30)
        assert wait_until(lambda: not get_result(send(handle.status)).domains[0].held, 30)
        get_result(send(handle.pause))
        client.push("s", {"k": np.arange(ROWS)})
        client.flush(30)
        [domain] = get_result(send(handle.status)).domains
        found = scraped(address)
        assert value(found, "dsms_ingest_connections") == 1
    stations = {station.name: station for station in domain.stations}
    assert samples(found, "dsms_queue_tuples") == {name: told.queue for name, told in stations.items()}
    assert value(found, "dsms_memory_tuples") == domain.held >= ROWS
    assert value(found, "dsms_memory_bytes") == domain.held_bytes
    assert value(found, "dsms_scheduler_decisions_total") == domain.turns
    assert value(found, "dsms_ingest_rows_total", stream="s") == (FRAMES + 1) * ROWS
    assert value(found, "dsms_stream_rows_total", stream="s") == (FRAMES + 1) * ROWS
    assert value(found, "dsms_domain_paused") == 1
    assert value(found, "dsms_policy_active", policy="fifo") == 1
    assert {s.labels["part"]: s.value for s in found["dsms_part_up"].samples} == dict.fromkeys(
        ["scheduler-0", "gateway-0", "outlet"], 1
    )
    places = {s.labels["operator"]: s.labels["actor"] for s in found["dsms_operator_info"].samples}
    assert places == {name: str(told.actor) for name, told in stations.items()}
    assert samples(found, "dsms_state_bytes")[next(name for name in stations if "group" in name)] > 0
    sums = counted = 0.0
    for query in domain.queries:
        name = query.name
        assert value(found, "dsms_result_rows_total", query=name) == query.results > 0
        series = [s for s in found["dsms_tuple_latency_seconds"].samples if s.labels["query"] == name]
        counts = [s.value for s in series if s.name.endswith("_bucket")]
        assert counts[-1] == query.results
        # The status has the median of the last seconds, which include all results, in its own buckets.
        near = [bisect_left(LATENCY, query.latency.p50 * off) for off in (1 / BUCKET, BUCKET)]
        assert near[0] <= bisect_left(counts, counts[-1] / 2) <= near[1]
        sums, counted = sums + next(s.value for s in series if s.name.endswith("_sum")), counted + counts[-1]
    assert sums / counted == pytest.approx(domain.phases[0].latency_mean)
    get_result(send(handle.down))
    assert wait_until(lambda: not list_actor_names("metered"), 10)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=2)
