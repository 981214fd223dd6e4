"""The control actor of a deployment: changes queries, moves them between domains, reports status, and ends it all."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from actors.cluster.cluster import PREFIX
from actors.cluster.malloc_trim import start_malloc_trim
from actors.deployment.actor_handles import DeploymentActors, close_all, tear_down, wait_until
from actors.deployment.control import MIGRATION_TIMEOUT_S, DeploymentControl
from actors.deployment.routing import build_routes, find_streams_read
from actors.deployment.start_wait import STALL_LIMIT_S
from actors.results.result_hub import QueryOutput
from actors.rpc.answers import ANSWER_TIMEOUT_S, await_answers
from actors.rpc.messages import CONTROL, JsonObject, PlanTable, get_own_handle, kill, make_actor_class, send
from dsms.build_id import build_id
from dsms.clock import monotonic_s, wall_time_s
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.live.monitor.status import DeploymentStatus
from dsms.live.query_placement import choose_domain, find_colocated
from dsms.live.query_set import QuerySet
from dsms.plan.graph import Query, is_append_only

RESULT_WAIT_S = 10.0  # for results to get from a host to the result hub
EXIT_DELAY_S = 0.2  # for the last answer to be sent


class Deployment(DeploymentControl):
    """Controls the actors of a deployment; in tests they are plain objects."""

    def __init__(
        self, name: str, table: PlanTable, folder: str, file: str, setup: LiveConfig, parts: DeploymentActors
    ) -> None:
        start_malloc_trim()
        super().__init__(parts)
        self._name, self._folder, self._setup, self._epoch = name, folder, setup, wall_time_s()
        self._query_set = QuerySet(table, Path(folder), file)
        self._gateway_addresses: list[tuple[str, int]] = []
        self._metrics: str | None = None  # the URL that serves them
        self._since: float | None = wall_time_s()  # None: the deployment is ending
        self._starting_step: str | None = "starting its actors"  # None: it has started
        self._build_id = build_id()
        self._change_lock = threading.RLock()  # one change at a time; status calls do not take it

    def begin(self, queries: Mapping[str, list[str]]) -> list[tuple[str, int]]:
        """Start all queries, by domain, and open the gateways; returns their addresses."""
        with self._change_lock, self._start("moving operators to their hosts"):
            self._epoch = wall_time_s()  # the time before this is not the plan's
            self._domain_by_query = {query: domain for domain, names in queries.items() for query in names}
            result_hub, actors_by_domain = self._parts.result_hub, self._parts.actors_by_domain.values()
            outputs = {q.name: describe_output(q) for q in self._query_set.plan.queries}
            opening = [send(result_hub.open, outputs, self._folder)]
            opening += [
                send(c.scheduler.open, list(c.hosts), result_hub, self._epoch, c.incarnation) for c in actors_by_domain
            ]
            await_answers(opening, "opening the domains", self._answer_timeout_s)
            self._starting_step = "opening the gateways"
            self._publish_routes()  # before gateways listen: a client that connects receives the schemas
            for place, gateway in enumerate(self._parts.gateways):
                port = self._setup.port + place if self._setup.port else 0
                self._gateway_addresses.append(self._call(gateway.listen, self._setup.host, port))
            self._serve_metrics()
            return self._gateway_addresses

    @contextmanager
    def _start(self, step: str) -> Iterator[None]:
        """Wait long for answers while actors start, which takes minutes on a busy machine; `step` is what is done."""
        self._starting_step, self._answer_timeout_s = step, STALL_LIMIT_S
        try:
            yield
        finally:
            self._starting_step, self._answer_timeout_s = None, ANSWER_TIMEOUT_S

    def starting_step(self) -> str | None:
        """What is done to start; None once it has started."""
        return self._starting_step

    def _serve_metrics(self) -> None:
        exporter, port = self._parts.exporter, self._setup.metrics
        if exporter is not None and port is not None:
            address = self._call(exporter.listen, self._setup.metrics_host, port)
            self._metrics = "http://{}:{}/metrics".format(*address)

    def identity(self) -> JsonObject:
        """Its name, start, version and gateways; calls no other actor."""
        if self._since is None:
            raise DsmsError(f"deployment {self._name!r} is going down")
        if self._starting_step is not None:
            raise DsmsError(f"deployment {self._name!r} is being started: {self._starting_step}")
        gateway_addresses = [f"{host}:{port}" for host, port in self._gateway_addresses]
        return {"name": self._name, "since": self._since, "version": self._build_id, "gateways": gateway_addresses}

    def status(self) -> DeploymentStatus:
        """The status of all parts; a part that does not answer has an error instead of figures."""
        identity = self.identity()
        return DeploymentStatus(
            name=identity["name"],
            since=identity["since"],
            version=identity["version"],
            gateways=[self._gateway_status(gateway.status) for gateway in self._parts.gateways],
            outlet=self._result_hub_status(self._parts.result_hub.status),
            metrics=self._metrics,
            domains=[self._domain_status(domain_actors) for domain_actors in self._parts.actors_by_domain.values()],
        )

    def checkpoint(self) -> JsonObject:
        """Save a checkpoint; only a durable deployment can."""
        raise DsmsError(f"deployment {self._name!r} is not durable: `dsms up --durable DIR` starts one that is")

    def add(self, table: PlanTable, folder: str, file: str) -> list[str]:
        """Add queries to a running plan: to the domain they read from or share with, else to the least loaded one."""
        with self._change_lock:
            after = self._query_set.add(table, Path(folder), file)
            new = [query for query in after.plan.queries if query.name not in self._domain_by_query]
            coming = [query.name for query in new]
            domain_actors = self._parts.actors_by_domain[
                choose_domain(after.plan, coming, self._domain_by_query, self._parts.actors_by_domain)
            ]
            self._call(self._parts.result_hub.open, {query.name: describe_output(query) for query in new}, folder)
            with self._hold_streams(coming, after):
                try:
                    names = self._call_control(domain_actors.scheduler.add, table, folder, file)
                except DsmsError:
                    for query in new:
                        self._call(self._parts.result_hub.close_query, query.name, False)
                    raise
                self._query_set = after
                self._domain_by_query.update(dict.fromkeys(names, domain_actors.name))
            return names

    def remove(self, query: str) -> None:
        """Remove a query from a running plan and finish its file."""
        with self._change_lock:
            after = self._query_set.remove(query)
            with self._hold_streams([query]):
                number = self._call_control(self._find_domain(query).scheduler.remove, query)
                self._query_set = after
                del self._domain_by_query[query]
            self._wait_for_results({query: number})
            self._finish(query, number)

    def move(self, query: str, domain: str) -> JsonObject:
        """Move a query to another domain with its state, and all queries that must be in the same domain."""
        with self._change_lock:
            started = monotonic_s()
            source, target = self._find_domain(query), self._select_domains(domain)[0]
            if source is target:
                raise DsmsError(f"query {query!r} is in domain {domain!r} already")
            going = [
                name
                for name in find_colocated(self._query_set.plan, query)
                if self._domain_by_query[name] == source.name
            ]
            with self._hold_streams(going, align=True):  # earlier rows are admitted, and move with their queue
                transfer = self._call_control(source.scheduler.release, going)
                try:
                    self._call_control(target.scheduler.adopt, transfer)
                except DsmsError:
                    self._call_control(source.scheduler.adopt, transfer)
                    raise
                self._domain_by_query.update(dict.fromkeys(going, target.name))
            return {"queries": going, "from": source.name, "to": target.name, "seconds": monotonic_s() - started}

    def down(self) -> str | None:
        """End all actors: gateways first, then schedulers, then the result hub; some may have ended already.

        Returns what was not saved, and why; None where nothing had to be.
        """
        self._since = None
        parts = self._parts
        close_all(parts.gateways)
        close_all([] if parts.exporter is None else [parts.exporter])
        numbers = close_all([domain_actors.scheduler for domain_actors in parts.actors_by_domain.values()])
        with suppress(DsmsError):
            self._wait_for_results({query: number for last in numbers for query, number in (last or {}).items()})
        close_all([parts.result_hub])
        if (me := get_own_handle(self)) is not None:
            tear_down(self._name, spare=[f"{PREFIX}{self._name}"])
            threading.Timer(EXIT_DELAY_S, lambda: kill(me)).start()
        return None

    def _finish(self, query: str, number: int) -> None:
        """Finish a removed query, whose results up to this number have all arrived."""
        self._call(self._parts.result_hub.close_query, query)

    def _wait_for_results(self, numbers: Mapping[str, int]) -> None:
        """Wait until all results that hosts have sent are at the result hub."""
        wait_until(lambda: not self._call(self._parts.result_hub.find_incomplete, numbers), RESULT_WAIT_S)

    @contextmanager
    def _hold_streams(
        self, queries: Collection[str], query_set: QuerySet | None = None, align: bool = False
    ) -> Iterator[None]:
        """Hold rows of the streams that these queries read, until routes to their new places are published.

        Else rows would be announced to a scheduler whose hosts do not get them. With `align`, all domains have
        applied the same rows of gateways' logs then.
        """
        streams = find_streams_read((query_set or self._query_set).plan, queries)
        try:
            held = [send(gateway.hold, streams, align, group=CONTROL) for gateway in self._parts.gateways]
            await_answers(held, "holding rows back", MIGRATION_TIMEOUT_S)
            yield
        finally:
            self._publish_routes()

    def _publish_routes(self) -> None:
        """Send routes to the gateways: every domain that reads a stream gets it once."""
        actors_by_domain = self._parts.actors_by_domain.values()
        routes = build_routes(
            self._query_set.plan,
            [(domain_actors, self._call_control(domain_actors.scheduler.routes)) for domain_actors in actors_by_domain],
            self._epoch,
        )
        serving = [send(gateway.serve, routes) for gateway in self._parts.gateways]
        await_answers(serving, "sending routes to the gateways", self._answer_timeout_s)


def describe_output(query: Query) -> QueryOutput:
    """A query's sink, its columns if they are known, and whether rows are only added: for the result hub."""
    return query.sink, None if query.node is None else query.node.schema, is_append_only(query)


# Several threads: it answers status calls while a change is under way.
DEPLOYMENT_THREADS = 8
DeploymentActor = make_actor_class(Deployment, max_concurrency=DEPLOYMENT_THREADS)
