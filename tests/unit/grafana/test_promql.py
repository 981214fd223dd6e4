"""That the check of expressions finds what no series would answer to."""

from __future__ import annotations

import pytest
import support.live.promql as promql
from support.live.promql import FaultError


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("dsms_memory_tuples", {"domain", "instance", "job"}),
        ("sum by (domain) (dsms_queue_tuples)", {"domain"}),
        ("sum without (operator) (dsms_queue_tuples)", {"domain", "instance", "job"}),
        ("sum(dsms_queue_tuples)", set()),
        ("histogram_quantile(0.5, sum by (query, le) (rate(dsms_tuple_latency_seconds_bucket[1m])))", {"query"}),
        ("query:dsms_tuple_latency_seconds:p99_1m", {"instance", "domain", "query"}),
        ("count(ALERTS) or vector(0)", set()),
        ("-(up offset $__interval)", {"instance", "job"}),
        ("dsms_domain_paused == 1 and on (domain) dsms_memory_tuples > 0", {"domain", "instance", "job"}),
    ],
)
def test_the_labels_of_a_result_follow_from_the_expression(expression, expected):
    assert promql.labels(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("dsms_memory_tupels", "no metric 'dsms_memory_tupels'"),
        ("rate(dsms_late_rows_total[1m]) + dsms_qeue_tuples", "no metric 'dsms_qeue_tuples'"),
        ("node_cpu_seconds_total", "no metric 'node_cpu_seconds_total'"),
        ('dsms_memory_tuples{operator="a"}', r"no label \['operator'\] in dsms_memory_tuples"),
        ("sum by (query) (dsms_queue_tuples)", r"no label \['query'\]"),
        ("dsms_tuple_latency_seconds", "is a histogram: only its _bucket"),
        ("histogram_quantile(0.5, sum by (query) (rate(dsms_tuple_latency_seconds_bucket[1m])))", r"no label \['le'\]"),
        ("dsms_memory_tuples and on (part) dsms_part_up", r"no label \['part'\]"),
        ("domain:dsms_memory_tuples:growth_1h", "no metric 'domain:dsms_memory_tuples:growth_1h'"),
    ],
)
def test_a_name_or_a_label_that_is_not_there_is_found(expression, message):
    with pytest.raises(FaultError, match=message):
        promql.labels(expression)


@pytest.mark.parametrize("expression", ["sum by domain (up)", "rate(up)", ""])
def test_what_is_no_promql_is_found(expression):
    with pytest.raises(ValueError, match=r"\S"):
        promql.labels(expression)
