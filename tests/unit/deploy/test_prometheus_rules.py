"""Prometheus' configuration and rules: names and labels of the table, checked by Prometheus' own tool where it is."""

from __future__ import annotations

import shutil
import subprocess
import urllib.request

import pytest
import support.live.promql as promql
import yaml
from support.live.domains import EVEN, ResultCollector, asked, batch, domain_of
from support.metrics.exporting import exporting
from support.paths import ROOT

CASES = ROOT / "tests/prometheus/alerts.yml"
RULES = promql.rules()
ALERTS = [rule for rule in RULES if "alert" in rule]
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's package prometheus")


def promtool(*words, **more):
    """What it says of a file; it must be content."""
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_every_rule_reads_metrics_that_are_there_by_labels_that_they_have(rule):
    found = promql.labels(rule["expr"])
    assert "instance" in found  # else systems are mixed up
    for text in rule.get("annotations", {}).values():
        assert promql.legend(text) <= found


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_says_how_bad_it_is_what_is_wrong_and_what_to_do(rule):
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert rule["annotations"]["description"].endswith(".")


def test_a_recording_rule_is_named_by_what_its_series_are_of():
    for name in promql.RECORDED:
        level, metric, _ = name.split(":")
        assert level in promql.labels(name)
        assert any(read.startswith(metric) for read in promql.names(promql.RECORDED[name]))


def test_every_recording_rule_is_read_somewhere():
    texts = [rule["expr"] for rule in ALERTS] + [file.read_text() for file in ROOT.glob("grafana/dashboards/*.json")]
    assert [name for name in promql.RECORDED if not any(name in text for text in texts)] == []


def test_every_alert_is_tested_firing_and_not_firing():
    firing: dict[str, set[bool]] = {rule["alert"]: set() for rule in ALERTS}
    for case in yaml.safe_load(CASES.read_text())["tests"]:
        for one in case["alert_rule_test"]:
            firing[one["alertname"]].add(bool(one["exp_alerts"]))
    assert firing == {rule["alert"]: {True, False} for rule in ALERTS}


@needs_promtool
def test_promtool_accepts_configuration_and_rules():
    said = promtool("check", "config", str(ROOT / "deploy/prometheus.yml"))
    assert f"{len(ALERTS)} rules found" in said
    assert "FAILED" not in said


@needs_promtool
def test_alerts_fire_when_they_must_and_only_then():
    assert "SUCCESS" in promtool("test", "rules", str(CASES))


@needs_promtool
def test_promtool_finds_nothing_wrong_with_what_is_served():
    results = ResultCollector()
    with domain_of(asked(even=EVEN), results) as domain, exporting(domain=domain) as address:
        domain.admit([("s", batch(*range(10)))])
        results.of("even", 5)
        with urllib.request.urlopen(address, timeout=20) as answer:
            served = answer.read().decode()
    assert "dsms_tuple_latency_seconds_bucket" in served
    assert promtool("check", "metrics", input=served) == ""
