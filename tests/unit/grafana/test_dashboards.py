"""Dashboards as Grafana loads them: generated, complete, and asking only for what is there."""

from __future__ import annotations

import json
import re

import pytest
import support.live.promql as promql
import yaml
from support.paths import ROOT

from dsms.errors import DsmsError
from dsms.measure.metric_names import METRICS, by_name
from grafana.expressions import find_metrics, quantile, rate, select
from grafana.generate import DASHBOARDS, FOLDER, dashboard_path, render_dashboard
from grafana.panels import describe, find_unit

GRAFANA = FOLDER.parent
PAGES = {dashboard.uid: dashboard.to_json() for dashboard in DASHBOARDS}
PANELS = [
    pytest.param(uid, panel, id=f"{uid}: {panel['title']}")
    for uid, page in PAGES.items()
    for panel in page["panels"]
    if panel["type"] != "row"
]
pages = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())


def test_the_dashboards_are_those_that_are_wanted():
    assert [page["title"] for page in PAGES.values()] == [
        f"dsms / {title}" for title in ("Overview", "Operators", "Scheduler and selector", "Load and ingest")
    ]
    assert list(PAGES) == ["dsms-overview", "dsms-operators", "dsms-scheduler", "dsms-load"]  # others link to these


def test_what_is_committed_is_what_is_generated():
    written = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir()}
    assert written == {dashboard_path(each).name: render_dashboard(each) for each in DASHBOARDS}  # make dashboards


@pytest.mark.parametrize(("uid", "panel"), PANELS)
def test_every_panel_asks_for_what_is_there_and_names_series_by_labels_they_have(uid, panel):
    for target in panel["targets"]:
        found = promql.labels(target["expr"])
        if target["legendFormat"] != "__auto":
            assert promql.legend(target["legendFormat"]) <= found


@pytest.mark.parametrize(("uid", "panel"), PANELS)
def test_every_panel_has_a_title_a_unit_and_the_metrics_help_as_description(uid, panel):
    expressions = [target["expr"] for target in panel["targets"]]
    assert panel["title"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    for metric in find_metrics(expressions):
        assert metric.help in panel["description"]
    assert panel["description"] or not any("dsms_" in text for text in expressions)


@pytest.mark.parametrize(("uid", "panel"), PANELS)
def test_every_expression_goes_by_the_choices_that_its_metrics_have(uid, panel):
    """Else a variable would be shown and do nothing."""
    for target in panel["targets"]:
        for selector in re.findall(r"\b(dsms_\w+)\{(.*?)\}", target["expr"]):
            choices = {"domain", "query", "operator"} & set(by_name(selector[0]).labels)
            assert set(re.findall(r'(\w+)=~"\$\1"', selector[1])) == choices
            assert 'instance="$system"' in selector[1]


def test_every_metric_is_shown_on_some_dashboard():
    shown = find_metrics([target["expr"] for param in PANELS for target in param.values[1]["targets"]])
    assert {metric.name for metric in METRICS} - {metric.name for metric in shown} == set()


@pages
def test_variables_come_before_those_that_depend_on_them_and_are_values_of_labels_that_are_there(page):
    source, *others = page["templating"]["list"]
    known = {source["name"]}
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    for variable in others:
        expression, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
        assert label in promql.labels(expression)
        assert set(re.findall(r"\$(\w+)", expression)) <= known
        known.add(variable["name"])
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps([page["panels"], page["annotations"]])))
    assert used <= known
    assert known - used <= {"query"}  # which operators are to be chosen from depends on it


def test_the_operators_dashboard_has_all_variables():
    names = [variable["name"] for variable in PAGES["dsms-operators"]["templating"]["list"]]
    assert names == ["datasource", "system", "domain", "query", "operator"]


@pages
def test_switches_are_annotations_named_by_policy(page):
    [annotation] = page["annotations"]["list"]
    assert promql.names(annotation["expr"]) == {"dsms_policy_active"}
    texts = annotation["titleFormat"] + annotation["textFormat"]
    assert promql.legend(texts) == {"policy", "domain"} <= promql.labels(annotation["expr"])


@pages
def test_the_datasource_is_a_variable_everywhere(page):
    found = re.findall(r'"datasource": (\{.*?\}"\})', json.dumps(page))
    assert set(found) == {'{"type": "prometheus", "uid": "${datasource}"}'}
    assert len(found) == json.dumps(page).count('"datasource": ')


@pages
def test_panels_stand_side_by_side_and_have_numbers_of_their_own(page):
    cells = [
        (x, y)
        for panel in page["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert {x for x, _ in cells} == set(range(24))
    assert [panel["id"] for panel in page["panels"]] == list(range(1, len(page["panels"]) + 1))


def test_the_overview_has_what_a_policy_is_chosen_by():
    panels = {panel["title"]: panel for panel in PAGES["dsms-overview"]["panels"]}
    memory = panels["Memory and its lower bound"]
    assert [promql.names(target["expr"]) for target in memory["targets"]] == [
        {"dsms_memory_tuples"},
        {"dsms_memory_bound_tuples"},
    ]
    assert [target["legendFormat"] for target in panels["Latency p50 and p99"]["targets"]] == ["p50", "p99"]
    assert panels["Active policy"]["type"] == "state-timeline"


def test_expressions_are_made_of_the_metric_s_own_labels():
    assert select("dsms_memory_tuples") == 'dsms_memory_tuples{instance="$system",domain=~"$domain"}'
    assert rate("dsms_ingest_bytes_total", "1m") == 'rate(dsms_ingest_bytes_total{instance="$system"}[1m])'
    with pytest.raises(DsmsError, match="'dsms_memory_tuples' is a gauge; a rate needs a counter"):
        rate("dsms_memory_tuples")
    with pytest.raises(DsmsError, match="'dsms_late_rows_total' is a counter, but a quantile needs a histogram"):
        quantile(0.5, "dsms_late_rows_total")


@pytest.mark.parametrize(
    ("expression", "unit"),
    [
        ("dsms_memory_bytes", "bytes"),
        ("rate(dsms_ingest_bytes_total[1m])", "Bps"),
        ("rate(dsms_operator_idle_seconds_total[1m])", "percentunit"),
        ("histogram_quantile(0.5, rate(dsms_queue_wait_seconds_bucket[1m]))", "s"),
        ("rate(dsms_scheduler_decisions_total[1m])", "cps"),
        ("dsms_queue_tuples", "short"),
        ("up", "short"),
    ],
)
def test_units_follow_from_the_metric_and_what_is_made_of_it(expression, unit):
    assert find_unit(expression) == unit


def test_a_description_names_metrics_where_there_are_several():
    assert describe(["sum(dsms_queue_tuples)"]) == "Tuples that wait for an operator."
    assert describe(["dsms_queue_tuples", "dsms_query_weight"]) == (
        "`dsms_queue_tuples`: Tuples that wait for an operator.\n\n"
        "`dsms_query_weight`: Weight of the query in the policy's priorities."
    )


def test_provisioning_loads_the_dashboards_from_one_prometheus_scraped_as_often_as_it_says():
    [source] = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    [provider] = yaml.safe_load((GRAFANA / "provisioning/dashboards/dsms.yml").read_text())["providers"]
    scraped = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())
    assert (source["type"], source["url"]) == ("prometheus", "$PROMETHEUS_URL")
    assert source["jsonData"]["timeInterval"] == scraped["global"]["scrape_interval"]
    assert (provider["type"], provider["options"]["path"]) == ("file", "$DSMS_DASHBOARDS")
