"""Metrics of a deployment for Prometheus: asked for at every scrape, from all parts at once, served over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from actors.calls import Calls
from actors.heap import keep_small
from actors.messages import CONTROL
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.metrics import Samples
from dsms.metric_names import COUNTER, HISTOGRAM, METRICS, Metric, by_name

ANSWER = 2.0  # seconds for a part to say how it stands: a scrape must not take much longer
FRESH = 0.5  # seconds for which an answer serves whoever else asks
CLOSING = 5.0  # seconds

# How it is made an actor: `ray.remote(**ACTOR)(Exporter)`.
ACTOR: dict[str, Any] = {"num_cpus": 0}


class Source(NamedTuple):
    """A part and what it is asked for."""

    part: str
    actor: Any
    method: str  # answers samples, or nothing: then all that counts is that it answers
    group: str | None = CONTROL


class Exporter:
    """Serves `/metrics`, in threads of its own; several who ask at once cost as much as one."""

    def __init__(self, deployment: str, version: str, sources: Sequence[Source]) -> None:
        keep_small()
        self._sources, self._calls = tuple(sources), Calls()
        self._build = deployment, version
        self._asking = threading.Lock()
        self._known: Samples = {}
        self._asked: float | None = None
        self._server: Any = None

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Serve at this address; with port 0 at any that is free. Answers which it is."""
        registry = CollectorRegistry()
        registry.register(_Families(self))
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as error:
            raise DsmsError(f"metrics cannot be served at {host}:{port}: {error.strerror or error}") from None
        return host, int(self._server.server_port)

    def follow(self, sources: Sequence[Source]) -> None:
        """Ask these from now on: some have taken the place of others."""
        with self._asking:
            self._sources = tuple(sources)

    def samples(self) -> Samples:
        """Those of all parts, at most half a second old; of a part that does not answer in time there are none."""
        with self._asking:
            if self._asked is None or stopwatch() - self._asked > FRESH:
                self._known = self._collected()
                self._asked = stopwatch()
            return self._known

    def close(self) -> None:
        """Serve no more; nothing if that is done."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(CLOSING)
            self._server = None
        self._calls.close()

    def _collected(self) -> Samples:
        asked = {part: self._calls(getattr(one, method), group=group) for part, one, method, group in self._sources}
        wait(asked.values(), ANSWER)
        found: Samples = {"dsms_build_info": [(self._build, 1.0)]}
        for part, answer in asked.items():
            up = answer.done() and answer.exception() is None
            found.setdefault("dsms_part_up", []).append(((part,), float(up)))
            if up:
                for name, samples in (answer.result() or {}).items():
                    found.setdefault(name, []).extend(samples)
        return found


class _Families(Collector):
    """An exporter's samples as Prometheus' library wants them: all metrics of the table, in its order."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def describe(self) -> Iterable[Family]:
        """Nothing: else all parts would be asked before there are any."""
        return ()

    def collect(self) -> Iterator[Family]:
        yield from families(self._exporter.samples())


def families(samples: Mapping[str, Any]) -> Iterator[Family]:
    """One for every metric of the table; a sample of a metric that is not in it is refused."""
    for name in samples:
        by_name(name)
    for metric in METRICS:
        yield _family(metric, samples.get(metric.name, ()))


def _family(metric: Metric, samples: Iterable[tuple[tuple[str, ...], Any]]) -> Family:
    if metric.kind == HISTOGRAM:
        edges = [*map(str, metric.buckets), "+Inf"]
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, (counts, total) in samples:
            histogram.add_metric(labels, list(zip(edges, accumulate(counts), strict=True)), total)
        return histogram
    kind = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family
