"""The table of metrics keeps to what Prometheus' users expect, and grafana/README.md shows it as it is."""

from __future__ import annotations

import re

import pytest
from support.paths import ROOT

from dsms.errors import DsmsError
from dsms.measure.metric_names import COUNTER, GAUGE, HISTOGRAM, METRICS, Metric, by_name, table

GUIDE = ROOT / "grafana/README.md"
SAID = {"seconds", "bytes", "tuples"}  # units that a name says


def test_the_guide_shows_the_table_as_it_is() -> None:
    assert table() in GUIDE.read_text(encoding="utf-8")  # `python -m dsms.measure.metric_names` prints it


def test_names_are_those_of_one_system_each_once() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"dsms(_[a-z]+)+", name) for name in names)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_says_its_kind_and_its_unit_in_its_name(metric: Metric) -> None:
    assert metric.kind in (COUNTER, GAUGE, HISTOGRAM)
    assert metric.name.endswith("_total") == (metric.kind == COUNTER)
    assert metric.unit not in SAID or metric.unit in metric.name
    assert (metric.kind == HISTOGRAM) == bool(metric.buckets)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metric.help.endswith(".")
    assert "|" not in metric.help
    assert len(metric.labels) <= 2 or metric.name.endswith("_info")


@pytest.mark.parametrize("name", ["dsms_queue_wait_seconds", "dsms_queue_wait_seconds_bucket"])
def test_a_histogram_is_found_by_its_name_and_by_those_of_its_series(name: str) -> None:
    assert by_name(name).name == "dsms_queue_wait_seconds"


def test_what_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(DsmsError, match=r"no metric 'dsms_memory_tuples_sum' .did you mean"):
        by_name("dsms_memory_tuples_sum")
