"""A scripted load on Ray, scraped by a real Prometheus: every dashboard expression has data, and it is right."""

from __future__ import annotations

import re
import shutil
from bisect import bisect_left

import numpy as np
import pytest
import support.live.promql as promql
from support.live.watched_run import run_monitored

from dsms.measure.metric_names import LATENCY
from dsms.recording import read_recordings
from grafana.generate import DASHBOARDS
from grafana.operators import STATES

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Debian's package prometheus"),
]
PAGES = [dashboard.to_json() for dashboard in DASHBOARDS]
STANDS_FOR = {"$__rate_interval": "5s", "$__interval": "1s", "$domain": ".+", "$query": ".+", "$operator": ".+"}
REJECTED = 3
SCRAPE = 1.0  # seconds between a scrape and the point drawn for it


def asked():
    """All expressions of panels, annotations, variables and rules."""
    for page in PAGES:
        for panel in page["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()))
        yield from (annotation["expr"] for annotation in page["annotations"]["list"])
        for variable in page["templating"]["list"][1:]:
            yield re.fullmatch(r"label_values\((.+), \w+\)", variable["query"]["query"])[1]
    for rule in promql.rules():
        # An alert's expression has data only when it fires; as a truth value it always has.
        yield re.sub(r" (==|>|<) ", r" \1 bool ", rule["expr"]) if "alert" in rule else rule["expr"]
        yield from [rule["record"]] if "record" in rule else []


def filled(expression, system):
    """The expression with values for Grafana's variables."""
    for variable, value in {**STANDS_FOR, "$system": system}.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


@pytest.fixture(scope="module")
def live(ray_cluster, tmp_path_factory):
    """After a burst, some seconds under the adaptive policy, and three refused frames; queues are empty."""
    with run_monitored(tmp_path_factory.mktemp("watched") / "run") as found:
        found.push(0.0, 2.4)
        found.ask("swap", "adaptive", "to see scores")
        found.push(2.4, 7.0)
        for _ in range(REJECTED):
            found.refuse()
        found.drain()
        found.scraped()
        yield found


def test_every_expression_of_a_panel_or_rule_has_data(live):
    expressions = dict.fromkeys(filled(expression, live.system) for expression in asked())
    assert len(expressions) > 80
    assert [expression for expression in expressions if not live.over(expression)] == []
    assert live.over("dsms_memory_tuples > 1e9") == []  # an expression without data


def test_prometheus_evaluates_every_rule(live):
    assert {rule["name"]: rule.get("lastError", "") for rule in live.prometheus.rules()} == {
        rule.get("alert") or rule["record"]: "" for rule in promql.rules()
    }
    assert "DsmsFramesRejected" in {rule["name"] for rule in live.prometheus.rules() if rule.get("state") == "firing"}


def by(series, label):
    return {one["metric"][label]: float(one["value"][1]) for one in series}


def test_counts_are_those_of_the_run(live):
    now, domain = live.prometheus.now, live.domain()
    assert by(now("dsms_ingest_rows_total"), "stream") == live.pushed
    assert by(now("dsms_stream_rows_total"), "stream") == live.pushed
    assert by(now("dsms_result_rows_total"), "query") == {q.name: q.results for q in domain.queries}
    assert live.prometheus.value("dsms_scheduler_decisions_total") == domain.turns
    assert live.prometheus.value("dsms_policy_switches_total") == domain.swaps == 1
    assert live.prometheus.value("dsms_ingest_rejected_total") == REJECTED
    assert by(now("dsms_policy_active"), "policy") == {"fifo": 0, domain.policy: 1}


def test_the_times_of_an_operator_add_up_to_the_elapsed_time(live):
    found = live.over(" + ".join(f"dsms_operator_{state}_seconds_total" for state in STATES))
    assert len(found) == len(live.domain().stations)
    for series in found:
        (since, first), (until, last) = series["values"][0], series["values"][-1]
        assert float(last) - float(first) == pytest.approx(until - since, abs=SCRAPE)


def test_held_tuples_are_the_bound_plus_the_gap_at_every_scrape(live):
    """The bound is never above the held tuples by construction, so that is not checked."""
    assert live.over("dsms_memory_bound_tuples > 0") != []
    assert live.over("abs(dsms_memory_tuples - dsms_memory_bound_tuples - dsms_memory_gap_tuples) > 1e-6") == []


def test_queue_lengths_are_right_while_the_domain_is_paused(live):
    live.ask("pause")
    live.push(0.0, 0.5)
    live.scraped()
    domain = live.domain()
    assert by(live.prometheus.now("dsms_queue_tuples"), "operator") == {
        station.name: station.queue for station in domain.stations
    }
    assert live.prometheus.value("dsms_memory_tuples") == domain.held > 100
    assert live.prometheus.value("dsms_memory_bytes") == domain.held_bytes
    live.ask("resume")
    live.drain()


@pytest.fixture(scope="module")
def recorded(live):
    """By query: the latency quantiles of Prometheus, and the latencies of the run's own recording."""
    live.scraped()
    quantiles = {
        share: by(live.prometheus.now(f"histogram_quantile({share}, dsms_tuple_latency_seconds_bucket)"), "query")
        for share in (0.5, 0.99)
    }
    live.down()
    late: dict[str, list[float]] = {}
    [recording] = read_recordings(live.folder)
    for part in recording.table("outputs"):
        for query in part["query"].names:
            chosen = part["query"].each() == query
            late.setdefault(query, []).extend(np.repeat((part["at"] - part["arrived"])[chosen], part["rows"][chosen]))
    return quantiles, late


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_quantiles_of_latency_lie_in_the_bucket_of_the_recorded_one(recorded, share):
    quantiles, late = recorded
    assert set(quantiles[share]) == set(late) == {"trends", "carts", "fraud", "alarms"}
    for query, seen in late.items():
        exact = float(np.quantile(seen, share, method="inverted_cdf"))
        assert bisect_left(LATENCY, quantiles[share][query]) == bisect_left(LATENCY, exact), (query, exact)
