"""The control actor of a deployment: carries out control verbs, changes queries, reports status, and ends it all."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from actors.cluster.cluster import PREFIX
from actors.cluster.malloc_trim import start_malloc_trim
from actors.deployment.actor_handles import DeploymentActors, DomainActors, close_all, tear_down
from actors.deployment.launch import DeploymentSpec, check_sinks
from actors.deployment.running_system import RunningSystem, describe_method, describe_output
from actors.ingest.gateway import Gateway
from actors.recovery.checkpointer import Checkpointer
from actors.recovery.supervisor import Supervisor
from actors.rpc.answers import await_answer
from actors.rpc.messages import (
    CONTROL,
    JsonObject,
    PlanTable,
    get_own_handle,
    is_restarted_actor,
    kill,
    make_actor_class,
    send,
)
from actors.scheduler.verbs import VERBS, Verb, VerbScope
from dsms.build_id import build_id
from dsms.clock import monotonic_s, wall_time_s
from dsms.errors import DsmsError
from dsms.live.monitor.metrics import Samples
from dsms.live.monitor.status import DeploymentStatus, DomainStatus, GatewayStatus, RecoveryStatus, ResultHubStatus
from dsms.live.query_placement import choose_domain, find_colocated
from dsms.net.tokens import READ

log = logging.getLogger("dsms")
EXIT_DELAY_S = 0.2  # for the last answer to be sent


def _make_method(name: str) -> Callable[..., Any]:
    """The method that carries out this verb; its arguments are the verb's."""
    verb = VERBS[name]

    def carry_out(self: Deployment, *arguments: object, **named: object) -> object:
        return self._carry_out(verb, *arguments, **named)

    carry_out.__name__, carry_out.__doc__ = verb.name, verb.help
    return carry_out


class Deployment:
    """Controls the actors of a deployment; in tests they are plain objects.

    With a folder for checkpoints it has two more parts: a checkpointer makes each change permanent before it is
    answered, and a supervisor rebuilds actors that have ended.
    """

    why = _make_method("why")
    swap = _make_method("swap")
    require = _make_method("require")
    weigh = _make_method("weigh")
    pause = _make_method("pause")
    resume = _make_method("resume")
    lift = _make_method("lift")

    def __init__(self, spec: DeploymentSpec, actors: DeploymentActors) -> None:
        start_malloc_trim()
        self._system = RunningSystem(spec, actors)
        self._checkpointer = Checkpointer(self._system) if spec.durable else None
        self._supervisor = None if self._checkpointer is None else Supervisor(self._system, self._checkpointer)
        self._since: float | None = wall_time_s()  # None: the deployment is ending
        self._build_id = build_id()
        if self._supervisor is not None and is_restarted_actor():
            self._system.starting_step = None  # it answers while it rebuilds the rest
            threading.Thread(target=self._supervisor.restart, name="restart", daemon=True).start()

    def begin(self) -> list[tuple[str, int]]:
        """Start all queries, or resume from the last checkpoint, and open the gateways; returns their addresses."""
        system, supervisor = self._system, self._supervisor
        with system.change_lock:
            if supervisor is not None and system.spec.resumed:
                with system.start("restoring the last checkpoint"):
                    supervisor.restore(list(system.actors.actors_by_domain), everything=True)
            else:
                with system.start("moving operators to their hosts"):
                    self._open()
            if self._checkpointer is not None and supervisor is not None:
                supervisor.publish_sources()
                self._checkpointer.save()
                supervisor.start()
            return system.gateway_addresses

    def _open(self) -> None:
        """Open all parts for the queries of the plan."""
        system, spec = self._system, self._system.spec
        system.epoch = wall_time_s()  # the time before this is not the plan's
        system.domain_by_query = {query: str(domain) for domain, names in enumerate(spec.queries) for query in names}
        system.folders = dict.fromkeys(system.domain_by_query, spec.folder)
        outputs = {query.name: describe_output(query) for query in system.query_set.plan.queries}
        system.call(system.actors.result_hub.open, outputs, spec.folder)
        system.open_domains(list(system.actors.actors_by_domain), resumed=False)
        system.starting_step = "opening the gateways"
        system.publish_routes()  # before gateways listen: a client that connects receives the schemas
        for place in range(len(system.actors.gateways)):
            system.listen(place)
        system.serve_metrics()

    def starting_step(self) -> str | None:
        """What is done to start; None once it has started."""
        return self._system.starting_step

    def identity(self) -> JsonObject:
        """Its name, start, version and gateways; calls no other actor."""
        system, name = self._system, self._system.spec.name
        if self._since is None:
            raise DsmsError(f"deployment {name!r} is going down")
        if system.starting_step is not None:
            raise DsmsError(f"deployment {name!r} is being started: {system.starting_step}")
        gateway_addresses = [f"{host}:{port}" for host, port in system.gateway_addresses]
        return {"name": name, "since": self._since, "version": self._build_id, "gateways": gateway_addresses}

    def status(self) -> DeploymentStatus:
        """The status of all parts; a part that does not answer has an error instead of figures."""
        identity, actors = self.identity(), self._system.actors
        return DeploymentStatus(
            name=identity["name"],
            since=identity["since"],
            version=identity["version"],
            gateways=[self._gateway_status(gateway) for gateway in actors.gateways],
            outlet=self._result_hub_status(),
            metrics=self._system.metrics_url,
            domains=[self._domain_status(domain_actors) for domain_actors in actors.actors_by_domain.values()],
            durable=None if self._checkpointer is None else RecoveryStatus.of(self.durability()),
        )

    def checkpoint(self) -> JsonObject:
        """Save a checkpoint; returns its number, size and duration."""
        checkpointer = self._get_checkpointer()
        with self._system.change_lock:
            checkpointer.save()
            return checkpointer.durability.checkpoint

    def durability(self) -> JsonObject:
        """The last checkpoint and the recoveries; calls no other actor."""
        return self._get_checkpointer().durability.status()

    def metrics(self) -> Samples:
        """Checkpoints and recoveries as samples."""
        return self._get_checkpointer().durability.metrics()

    def add(self, table: PlanTable, folder: str, file: str) -> list[str]:
        """Add queries to a running plan: to the domain they read from or share with, else to the least loaded one."""
        system = self._system
        with system.change_lock:
            after = system.query_set.add(table, Path(folder), file)
            if self._checkpointer is not None:
                check_sinks(after.plan)
            self._begin_query_change()
            new = [query for query in after.plan.queries if query.name not in system.domain_by_query]
            coming = [query.name for query in new]
            actors_by_domain, result_hub = system.actors.actors_by_domain, system.actors.result_hub
            domain_actors = actors_by_domain[
                choose_domain(after.plan, coming, system.domain_by_query, actors_by_domain)
            ]
            system.call(result_hub.open, {query.name: describe_output(query) for query in new}, folder)
            with system.hold_streams(coming, after):
                try:
                    names = system.call_control(domain_actors.scheduler.add, table, folder, file)
                except DsmsError:
                    for query in new:
                        system.call(result_hub.close_query, query.name, False)
                    raise
                system.query_set = after
                system.domain_by_query.update(dict.fromkeys(names, domain_actors.name))
                system.folders.update(dict.fromkeys(names, folder))
            self._save()
            return names

    def remove(self, query: str) -> None:
        """Remove a query from a running plan and finish its file."""
        system = self._system
        with system.change_lock:
            self._begin_query_change()
            after = system.query_set.remove(query)
            with system.hold_streams([query]):
                number = system.call_control(system.find_domain(query).scheduler.remove, query)
                system.query_set = after
                del system.domain_by_query[query], system.folders[query]
            system.wait_for_results({query: number})
            self._save({query: number})
            system.call(system.actors.result_hub.close_query, query)

    def move(self, query: str, domain: str) -> JsonObject:
        """Move a query to another domain with its state, and all queries that must be in the same domain."""
        system = self._system
        with system.change_lock:
            self._begin_query_change()
            started = monotonic_s()
            source, target = system.find_domain(query), system.select_domains(domain)[0]
            if source is target:
                raise DsmsError(f"query {query!r} is in domain {domain!r} already")
            colocated = find_colocated(system.query_set.plan, query)
            going = [name for name in colocated if system.domain_by_query[name] == source.name]
            with system.hold_streams(going, align=True):  # earlier rows are admitted, and move with their queue
                transfer = system.call_control(source.scheduler.release, going)
                try:
                    system.call_control(target.scheduler.adopt, transfer)
                except DsmsError:
                    system.call_control(source.scheduler.adopt, transfer)
                    raise
                system.domain_by_query.update(dict.fromkeys(going, target.name))
            self._save()
            return {"queries": going, "from": source.name, "to": target.name, "seconds": monotonic_s() - started}

    def down(self) -> str | None:
        """End all actors, after a last checkpoint if they have any; returns why there is none, if there should be."""
        if self._checkpointer is None or self._supervisor is None:
            self._end()
            return None
        self._supervisor.end()
        unsaved: str | None = None
        with self._system.change_lock:
            try:
                self._checkpointer.save()
            except DsmsError as error:
                unsaved = f"{self._system.spec.name!r} ends without a last checkpoint: {error}"
                log.warning("%s", unsaved)
            self._end()
        return unsaved

    def _end(self) -> None:
        """End all actors: gateways first, then schedulers, then the result hub; some may have ended already."""
        self._since = None
        actors, name = self._system.actors, self._system.spec.name
        close_all(actors.gateways)
        close_all([] if actors.exporter is None else [actors.exporter])
        numbers = close_all([domain_actors.scheduler for domain_actors in actors.actors_by_domain.values()])
        with suppress(DsmsError):
            last = {query: number for each in numbers for query, number in (each or {}).items()}
            self._system.wait_for_results(last)
        close_all([actors.result_hub])
        if (me := get_own_handle(self)) is not None:
            tear_down(name, spare=[f"{PREFIX}{name}"])
            threading.Timer(EXIT_DELAY_S, lambda: kill(me)).start()

    def _get_checkpointer(self) -> Checkpointer:
        if self._checkpointer is None:
            raise DsmsError(
                f"deployment {self._system.spec.name!r} is not durable: `dsms up --durable DIR` starts one that is"
            )
        return self._checkpointer

    def _begin_query_change(self) -> None:
        """Refuse a change while actors are rebuilt; until the next checkpoint, a rebuilt system would not have it."""
        if self._checkpointer is not None:
            self._checkpointer.check_recovered()
            self._checkpointer.unsaved = True

    def _save(self, gone: Mapping[str, int] | None = None) -> None:
        """Make a change permanent; `gone`: removed queries, with the number of their last result."""
        if self._checkpointer is not None:
            self._checkpointer.save(gone)

    def _carry_out(self, verb: Verb, *arguments: object, **named: object) -> object:
        """Have the domains in a verb's scope carry it out; answers what they answer."""
        bound = verb.bind(*arguments, **named)
        if verb.role == READ:
            return self._ask_domains(verb, bound)
        with self._control_change():
            return self._ask_domains(verb, bound)

    def _ask_domains(self, verb: Verb, bound: dict[str, object]) -> object:
        system, values = self._system, [bound[argument.name] for argument in verb.arguments]
        if verb.scope is VerbScope.QUERY_DOMAIN:
            return system.call_control(system.find_domain(str(values[0])).scheduler.control, verb.name, *values)
        selected = system.select_domains(None if bound["domain"] is None else str(bound["domain"]))
        answers, refusals = list[object](), list[DsmsError]()
        for domain_actors in selected:
            try:
                answers.append(system.call_control(domain_actors.scheduler.control, verb.name, *values))
            except DsmsError as error:
                refusals.append(error)
                if not verb.is_tolerant:
                    raise
        if len(refusals) == len(selected):
            raise refusals[0]
        return verb.collect(answers)

    @contextmanager
    def _control_change(self) -> Iterator[None]:
        """Surround a change of a domain's settings; a checkpointer makes it permanent before it is answered."""
        if self._checkpointer is None:
            yield
            return
        with self._system.change_lock:
            self._checkpointer.check_recovered()
            yield
            self._checkpointer.save()

    def _gateway_status(self, gateway: Gateway) -> GatewayStatus:
        try:
            return GatewayStatus.of(self._system.call(gateway.status))
        except DsmsError as error:
            return GatewayStatus(None, error=str(error))

    def _result_hub_status(self) -> ResultHubStatus:
        try:
            return ResultHubStatus.of(self._system.call(self._system.actors.result_hub.status))
        except DsmsError as error:
            return ResultHubStatus(error=str(error))

    def _domain_status(self, domain_actors: DomainActors) -> DomainStatus:
        method = domain_actors.scheduler.status
        try:
            return await_answer(send(method, group=CONTROL), describe_method(method))
        except DsmsError as error:
            return DomainStatus.silent(domain_actors.name, str(error))


# Several threads: it answers status calls while a change is under way.
DEPLOYMENT_THREADS = 8
DeploymentActor = make_actor_class(Deployment, max_concurrency=DEPLOYMENT_THREADS)
