"""Serves the metrics of a deployment in this process, and scrapes them."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from actors.metrics.exporter import Exporter, MetricSource
from dsms.measure.metric_names import COUNTER

HOST = "127.0.0.1"


@contextmanager
def exporting(**parts: Any) -> Iterator[str]:
    """Serve the metrics of these parts, and yield the address."""
    exporter = Exporter("d", "1.2", [MetricSource(name, part, "metrics") for name, part in parts.items()])
    try:
        yield "http://{}:{}/metrics".format(*exporter.listen(HOST, 0))
    finally:
        exporter.close()


def scraped(address: str) -> dict[str, Any]:
    """Scrape an exporter; return the metric families by name."""
    with urllib.request.urlopen(address, timeout=20) as answer:
        found = list(text_string_to_metric_families(answer.read().decode()))
    return {family.name + ("_total" if family.type == COUNTER else ""): family for family in found}


def value(found: dict[str, Any], metric: str, **labels: str) -> float:
    """Return the value of the only sample with these labels."""
    [sample] = [s for s in found[metric].samples if labels.items() <= s.labels.items()]
    return float(sample.value)
