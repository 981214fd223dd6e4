"""The actors of a deployment and what runs on them, as its control actor knows them; calls of the actors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from actors.deployment.actor_handles import DeploymentActors, DomainActors, wait_until
from actors.deployment.launch import DeploymentSpec
from actors.deployment.routing import build_routes, find_streams_read
from actors.deployment.start_wait import STALL_LIMIT_S
from actors.results.result_hub import QueryOutput
from actors.rpc.answers import ANSWER_TIMEOUT_S, await_answer, await_answers
from actors.rpc.messages import CONTROL, Arguments, R, send
from actors.transport.handle import use_socket
from dsms.clock import wall_time_s
from dsms.errors import DsmsError, PlanError, existing
from dsms.live.query_set import QuerySet
from dsms.plan.graph import Query, is_append_only

MIGRATION_TIMEOUT_S = 120.0  # for moving stations to their hosts
RESULT_WAIT_S = 10.0  # for results to get from a host to the result hub


class RunningSystem:
    """Shared by the parts of the control actor; only the holder of `change_lock` changes it, and anyone reads it."""

    def __init__(self, spec: DeploymentSpec, actors: DeploymentActors) -> None:
        self.spec, self.actors = spec, actors
        self.change_lock = threading.RLock()
        self.query_set = QuerySet(spec.table, Path(spec.folder), spec.file)
        self.domain_by_query: dict[str, str] = {}
        self.folders: dict[str, str] = {}  # by query: the folder that its files are relative to
        self.epoch = wall_time_s()
        self.gateway_addresses: list[tuple[str, int]] = []
        self.metrics_url: str | None = None
        self.incarnation = max(domain_actors.incarnation for domain_actors in actors.actors_by_domain.values())
        self.broken: set[str] = set()  # actors to be rebuilt: not empty while a recovery runs or after it failed
        self.starting_step: str | None = "starting its actors"  # None: it has started
        self._answer_timeout_s = ANSWER_TIMEOUT_S

    @contextmanager
    def start(self, step: str) -> Iterator[None]:
        """Wait long for answers while actors start, which takes minutes on a busy machine; `step` is what is done."""
        self.starting_step, self._answer_timeout_s = step, STALL_LIMIT_S
        try:
            yield
        finally:
            self.starting_step, self._answer_timeout_s = None, ANSWER_TIMEOUT_S

    def open_domains(self, domains: Collection[str], resumed: bool) -> None:
        """Open the engines of these domains; `resumed` ones have no queries yet."""
        result_hub = self.actors.result_hub
        result_hub = use_socket(result_hub, self.call(result_hub.listen_address))
        opening = [
            send(one.scheduler.open, list(one.hosts), result_hub, self.epoch, one.incarnation, resumed)
            for one in (self.actors.actors_by_domain[domain] for domain in domains)
        ]
        await_answers(opening, "opening the domains", max(MIGRATION_TIMEOUT_S, self._answer_timeout_s))

    def listen(self, place: int, port: int = 0) -> None:
        """Open a gateway, at the port of the plan if it names one."""
        if self.spec.setup.port:
            port = self.spec.setup.port + place
        address = self.call(self.actors.gateways[place].listen, self.spec.setup.host, port)
        self.gateway_addresses[place : place + 1] = [address]

    def serve_metrics(self) -> None:
        """Open the metrics endpoint, if the plan asks for one."""
        exporter, setup = self.actors.exporter, self.spec.setup
        if exporter is not None and setup.metrics is not None:
            address = self.call(exporter.listen, setup.metrics_host, setup.metrics)
            self.metrics_url = "http://{}:{}/metrics".format(*address)

    def find_domain(self, query: str) -> DomainActors:
        """The actors of the domain that runs a query."""
        if query not in self.domain_by_query:
            raise PlanError(f"no query {query!r}{existing(query, self.domain_by_query)}")
        return self.actors.actors_by_domain[self.domain_by_query[query]]

    def select_domains(self, domain: str | None) -> list[DomainActors]:
        """The actors of a domain, or of all."""
        actors_by_domain = self.actors.actors_by_domain
        if domain is not None and domain not in actors_by_domain:
            raise DsmsError(f"no domain {domain!r}{existing(domain, actors_by_domain)}")
        return list(actors_by_domain.values()) if domain is None else [actors_by_domain[domain]]

    @contextmanager
    def hold_streams(
        self, queries: Collection[str], query_set: QuerySet | None = None, align: bool = False
    ) -> Iterator[None]:
        """Hold rows of the streams that these queries read, until routes to their new places are published.

        Else rows would be announced to a scheduler whose hosts do not get them. With `align`, all domains have
        applied the same rows of gateways' logs then.
        """
        streams = find_streams_read((query_set or self.query_set).plan, queries)
        try:
            held = [send(gateway.hold, streams, align, group=CONTROL) for gateway in self.actors.gateways]
            await_answers(held, "holding rows back", MIGRATION_TIMEOUT_S)
            yield
        finally:
            self.publish_routes()

    def publish_routes(self) -> None:
        """Send routes to the gateways: every domain that reads a stream gets it once."""
        domains = [
            (self._use_sockets(one), self.call_control(one.scheduler.routes))
            for one in self.actors.actors_by_domain.values()
        ]
        routes = build_routes(self.query_set.plan, domains, self.epoch)
        serving = [send(gateway.serve, routes) for gateway in self.actors.gateways]
        await_answers(serving, "sending routes to the gateways", self._answer_timeout_s)

    def _use_sockets(self, domain_actors: DomainActors) -> DomainActors:
        """Handles of a domain's actors that gateways on its machine call through sockets."""
        scheduler, hosts = self.call_control(domain_actors.scheduler.addresses)
        if not hosts:
            return domain_actors  # plain objects in this process
        return replace(
            domain_actors,
            scheduler=use_socket(domain_actors.scheduler, scheduler),
            hosts=tuple(map(use_socket, domain_actors.hosts, hosts)),
        )

    def wait_for_results(self, numbers: Mapping[str, int]) -> bool:
        """Wait until all results that hosts have sent are at the result hub; returns whether they came in time."""
        return wait_until(lambda: not self.call(self.actors.result_hub.find_incomplete, numbers), RESULT_WAIT_S)

    def call_control(self, method: Callable[[*Arguments], R], *arguments: *Arguments) -> R:
        """Call a method of a scheduler for a change, and wait long."""
        timeout = max(MIGRATION_TIMEOUT_S, self._answer_timeout_s)
        return await_answer(send(method, *arguments, group=CONTROL), describe_method(method), timeout)

    def call(self, method: Callable[[*Arguments], R], *arguments: *Arguments) -> R:
        """Call a method of an actor, and wait for its answer."""
        return await_answer(send(method, *arguments), describe_method(method), self._answer_timeout_s)


def describe_output(query: Query) -> QueryOutput:
    """A query's sink, its columns if they are known, and whether rows are only added: for the result hub."""
    return query.sink, None if query.node is None else query.node.schema, is_append_only(query)


def describe_method(method: object) -> str:
    """What a call is named in a message."""
    return str(getattr(method, "_method_name", getattr(method, "__name__", method)))
