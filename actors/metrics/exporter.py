"""The exporter actor: collects metrics from all actors of a deployment at each scrape and serves them to Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import wait
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from actors.cluster.malloc_trim import start_malloc_trim
from actors.rpc.calls import Calls
from actors.rpc.messages import CONTROL, make_actor_class
from dsms.clock import monotonic_s
from dsms.errors import DsmsError
from dsms.live.monitor.metrics import Samples
from dsms.measure.metric_names import COUNTER, HISTOGRAM, METRICS, Metric, by_name

SCRAPE_TIMEOUT_S = 2.0  # for an actor to answer
SAMPLES_TTL_S = 0.5  # for which samples serve other scrapes
CLOSE_TIMEOUT_S = 5.0

Sample = tuple[tuple[str, ...], Any]  # the values of the labels, and the value


class MetricSource(NamedTuple):
    """An actor, and the method that returns its samples."""

    part: str
    actor: object
    method: str  # returns samples, or None: then only the answer counts
    group: str | None = CONTROL


class Exporter:
    """Serves `/metrics` in threads of its own; simultaneous scrapes share one collection."""

    def __init__(self, deployment: str, version: str, sources: Sequence[MetricSource]) -> None:
        start_malloc_trim()
        self._sources, self._calls = tuple(sources), Calls()
        self._build = deployment, version
        self._lock = threading.Lock()
        self._known: Samples = {}
        self._asked: float | None = None
        self._server: Any = None

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Serve at this address; port 0 takes a free one. Returns the address."""
        registry = CollectorRegistry()
        registry.register(_Families(self))
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as error:
            raise DsmsError(f"metrics cannot be served at {host}:{port}: {error.strerror or error}") from None
        return host, int(self._server.server_port)

    def set_sources(self, sources: Sequence[MetricSource]) -> None:
        """Collect from these actors from now on."""
        with self._lock:
            self._sources = tuple(sources)

    def samples(self) -> Samples:
        """The samples of all actors, at most half a second old; an actor that does not answer in time has none."""
        with self._lock:
            if self._asked is None or monotonic_s() - self._asked > SAMPLES_TTL_S:
                self._known = self._collect()
                self._asked = monotonic_s()
            return self._known

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(CLOSE_TIMEOUT_S)
            self._server = None
        self._calls.close()

    def _collect(self) -> Samples:
        calls = {part: self._calls(getattr(actor, method), group=group) for part, actor, method, group in self._sources}
        wait(calls.values(), SCRAPE_TIMEOUT_S)
        collected: Samples = {"dsms_build_info": [(self._build, 1.0)]}
        for part, answer in calls.items():
            up = answer.done() and answer.exception() is None
            collected.setdefault("dsms_part_up", []).append(((part,), float(up)))
            if up:
                for name, samples in (answer.result() or {}).items():
                    collected.setdefault(name, []).extend(samples)
        return collected


class _Families(Collector):
    """The exporter's samples for the Prometheus library: every metric of the table, in its order."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def describe(self) -> Iterable[Family]:
        """Return nothing: else the library would collect samples at registration."""
        return ()

    def collect(self) -> Iterator[Family]:
        yield from build_families(self._exporter.samples())


ExporterActor = make_actor_class(Exporter)


def build_families(samples: Samples) -> Iterator[Family]:
    """One family for every metric of the table; a sample of an unknown metric is an error."""
    for name in samples:
        by_name(name)
    for metric in METRICS:
        yield _family(metric, samples.get(metric.name, ()))


def _family(metric: Metric, samples: Iterable[Sample]) -> Family:
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
