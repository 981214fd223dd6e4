"""A scripted load on Ray, scraped by a real Prometheus: every expression shown has data, and the data are right."""

from __future__ import annotations

import re
import shutil
from bisect import bisect_left

import numpy as np
import promql
import pytest
from watched_run import watched

from dsms.metric_names import LATENCY
from dsms.recording import read
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
SCRAPE = 1.0  # seconds that what was scraped may be from where it is drawn


def asked():
    """All expressions of panels, annotations, variables and rules."""
    for page in PAGES:
        for panel in page["panels"]:
            yield from (target["expr"] for target in panel.get("targets", ()))
        yield from (annotation["expr"] for annotation in page["annotations"]["list"])
        for variable in page["templating"]["list"][1:]:
            yield re.fullmatch(r"label_values\((.+), \w+\)", variable["query"]["query"])[1]
    for rule in promql.rules():
        # An alert's expression has data only when it fires: whether it holds can be asked for at any time.
        yield re.sub(r" (==|>|<) ", r" \1 bool ", rule["expr"]) if "alert" in rule else rule["expr"]
        yield from [rule["record"]] if "record" in rule else []


def filled(expression, system):
    """With what a person may have chosen in the place of variables."""
    for variable, value in {**STANDS_FOR, "$system": system}.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


@pytest.fixture(scope="module")
def live(ray_cluster, tmp_path_factory):
    """After a burst under one policy, some seconds under the adaptive one, and three refusals; all is worked off."""
    with watched(tmp_path_factory.mktemp("watched") / "run") as found:
        found.push(0.0, 2.4)
        found.ask("swap", "adaptive", "to see scores")
        found.push(2.4, 7.0)
        for _ in range(REJECTED):
            found.refuse()
        found.drain()
        found.scraped()
        yield found


def test_every_expression_that_is_shown_or_watched_has_data(live):
    expressions = dict.fromkeys(filled(expression, live.system) for expression in asked())
    assert len(expressions) > 80
    assert [expression for expression in expressions if not live.over(expression)] == []
    assert live.over("dsms_memory_tuples > 1e9") == []  # as one that has none


def test_prometheus_can_work_out_every_rule(live):
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
    assert by(now("dsms_result_rows_total"), "query") == {q["name"]: q["results"] for q in domain["queries"]}
    assert live.prometheus.value("dsms_scheduler_decisions_total") == domain["turns"]
    assert live.prometheus.value("dsms_policy_switches_total") == domain["swaps"] == 1
    assert live.prometheus.value("dsms_ingest_rejected_total") == REJECTED
    assert by(now("dsms_policy_active"), "policy") == {"fifo": 0, domain["policy"]: 1}


def test_the_times_of_an_operator_add_up_to_the_time_there_is(live):
    found = live.over(" + ".join(f"dsms_operator_{state}_seconds_total" for state in STATES))
    assert len(found) == len(live.domain()["stations"])
    for series in found:
        (since, first), (until, last) = series["values"][0], series["values"][-1]
        assert float(last) - float(first) == pytest.approx(until - since, abs=SCRAPE)


def test_what_is_held_is_the_bound_and_the_gap_to_it_at_every_scrape(live):
    """That the bound is not above what is held shows nothing here: it is served as at most that."""
    assert live.over("dsms_memory_bound_tuples > 0") != []
    assert live.over("abs(dsms_memory_tuples - dsms_memory_bound_tuples - dsms_memory_gap_tuples) > 1e-6") == []


def test_queues_are_as_long_as_they_are_while_nothing_moves(live):
    live.ask("pause")
    live.push(0.0, 0.5)
    live.scraped()
    domain = live.domain()
    assert by(live.prometheus.now("dsms_queue_tuples"), "operator") == {
        station["name"]: station["queue"] for station in domain["stations"]
    }
    assert live.prometheus.value("dsms_memory_tuples") == domain["held"] > 100
    assert live.prometheus.value("dsms_memory_bytes") == domain["held_bytes"]
    live.ask("resume")
    live.drain()


@pytest.fixture(scope="module")
def recorded(live):
    """By query, what Prometheus makes of its buckets, and how late all results were by the run's own record."""
    live.scraped()
    quantiles = {
        share: by(live.prometheus.now(f"histogram_quantile({share}, dsms_tuple_latency_seconds_bucket)"), "query")
        for share in (0.5, 0.99)
    }
    live.down()
    late: dict[str, list[float]] = {}
    [recording] = read(live.folder)
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
