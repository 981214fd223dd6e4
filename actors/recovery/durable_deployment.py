"""The control actor of a durable deployment: saves periodic checkpoints and rebuilds actors that have ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from actors.checkpoints.checkpoint import DeploymentCheckpoint, DomainCheckpoints
from actors.checkpoints.plan_diff import diff_plans, strip_live_table
from actors.cluster.cluster import PREFIX, get_deployment
from actors.deployment.actor_handles import DeploymentActors, tear_down
from actors.deployment.control import MIGRATION_TIMEOUT_S
from actors.deployment.deployment import DEPLOYMENT_THREADS, describe_output
from actors.deployment.launch import DeploymentSpec, launch_actors, list_metric_sources
from actors.metrics.exporter import MetricSource
from actors.recovery.replace import kill_actors, list_actors, list_domain_actors, replace_actors
from actors.recovery.saved_deployment import SavedDeployment
from actors.rpc.answers import await_answer, await_answers
from actors.rpc.messages import CONTROL, Call, PlanTable, is_restarted_actor, make_actor_class, send
from dsms.clock import monotonic_s
from dsms.errors import DsmsError
from dsms.live.domain import apply_live_defaults
from dsms.live.query_placement import choose_domain
from dsms.live.query_set import QuerySet

log = logging.getLogger("dsms")
WATCH_INTERVAL_S = 0.2  # between two checks for dead actors
OVERDUE_CHECKPOINTS = 60  # failed ones before clients are no longer read
RESTART_RETRY_S = 1.0
STATUS_TIMEOUT_S = 2.0  # for a scheduler to name the station that hung


class DurableDeployment(SavedDeployment):
    """A saved deployment that loses neither what it has answered nor what gateways have acknowledged."""

    def __init__(
        self, name: str, table: PlanTable, folder: str, file: str, spec: DeploymentSpec, parts: DeploymentActors
    ) -> None:
        super().__init__(name, table, folder, file, spec, parts)
        self._hung: dict[str, str] = {}  # by domain that is rebuilt: the station that hung
        if is_restarted_actor():
            self._starting_step = None  # it answers while it rebuilds the rest
            threading.Thread(target=self._restart, name="restart", daemon=True).start()

    def begin(self, queries: Mapping[str, list[str]], resume: bool = False) -> list[tuple[str, int]]:
        """Start all queries, by domain, or resume from the last checkpoint."""
        with self._change_lock:
            if resume:
                with self._start("restoring the last checkpoint"):
                    self._restore(list(self._parts.actors_by_domain), everything=True)
            else:
                super().begin(queries)
                self._folders = dict.fromkeys(self._domain_by_query, self._folder)
                self._publish_sources()
            self._save()
            self._start_watch()
            return self._gateway_addresses

    def _start_watch(self) -> None:
        threading.Thread(target=self._watch, name="checkpoints", daemon=True).start()

    def _watch(self) -> None:
        """Save checkpoints and rebuild dead actors, until the deployment ends."""
        due = monotonic_s() + self._setup.checkpoint
        while not self._ended.wait(WATCH_INTERVAL_S):
            with self._change_lock:
                if self._ended.is_set():
                    return
                try:
                    if dead := self._failure_detector.find_dead(list_actors(self._parts)) | self._broken:
                        self._recover(dead)
                    if monotonic_s() >= due:
                        due = monotonic_s() + self._setup.checkpoint
                        self._save()
                except Exception as error:  # the next round tries again
                    log.warning("%s: a checkpoint or a recovery has failed: %s", self._name, error)
                    self._durability.record_failure(error)
                    if self._durability.overdue_s > OVERDUE_CHECKPOINTS * self._setup.checkpoint:
                        self._stop_ingest(True)  # again each time: gateways may have been rebuilt meanwhile

    def _recover(self, dead: Collection[str]) -> None:
        """Rebuild dead actors and all that cannot continue without them."""
        started, parts = monotonic_s(), self._parts
        log.warning("%s: %s ended unexpectedly", self._name, ", ".join(sorted(dead)))
        everything = self._unsaved or "outlet" in dead
        domains = [
            name for name in parts.actors_by_domain if everything or set(dead) & set(list_domain_actors(parts, name))
        ]
        rebuilt = {*dead, *(one for name in domains for one in list_domain_actors(parts, name))}
        if everything:
            rebuilt.add("outlet")
        self._hung.update((name, station) for name in domains if (station := self._find_hung_station(name)) is not None)
        self._broken = rebuilt  # until all is done: after an error, the next attempt starts from here
        kill_actors(self._name, rebuilt)
        living = [gateway for n, gateway in enumerate(parts.gateways) if f"gateway-{n}" not in rebuilt]
        await_answers([send(gateway.halt, group=CONTROL) for gateway in living], "halting gateways")
        self._parts = replace_actors(parts, self._spec, rebuilt, self._incarnation)
        self._incarnation = max(
            self._incarnation, *(domain_actors.incarnation for domain_actors in self._parts.actors_by_domain.values())
        )
        self._restore(domains, everything, [parts.actors_by_domain[name].incarnation for name in domains], rebuilt)
        self._broken, self._hung = set(), {}
        self._durability.record_recovery(seconds := monotonic_s() - started)
        log.warning("%s: rebuilt %s in %.2f s", self._name, ", ".join(sorted(rebuilt)), seconds)

    def _restore(
        self,
        domains: Collection[str],
        everything: bool = False,
        over: Collection[int] = (),
        rebuilt: Collection[str] | None = None,
    ) -> None:
        """Restore new actors from the last checkpoint; `rebuilt` None: all are new."""
        saved, sections = self._checkpoint_store.latest()
        parts, result_hub = self._parts, self._result_hub
        if everything:
            self._resume(saved)
        else:
            numbers = {query: number for query, number in saved.numbers.items() if saved.where.get(query) in domains}
            self._call(result_hub.rewind, numbers, over)
        self._reopen(DomainCheckpoints.read(sections, list(domains)), saved)
        self._publish_routes()  # before gateways listen: a client that connects receives the schemas
        for place, gateway in enumerate(parts.gateways):
            if rebuilt is None or f"gateway-{place}" in rebuilt:
                self._listen(place, saved)
            elif everything:
                await_answer(
                    send(gateway.attach, result_hub, group=CONTROL), "attaching a gateway to the new result hub"
                )
        if parts.exporter is not None and (rebuilt is None or "exporter" in rebuilt):
            self._serve_metrics()
        self._publish_sources()

    def _publish_sources(self) -> None:
        """Have the exporter collect from all current actors, and from this one."""
        if (exporter := self._parts.exporter) is not None:
            own = MetricSource("deployment", get_deployment(self._name), "metrics", None)
            self._call(exporter.set_sources, [*list_metric_sources(self._parts), own])

    def _resume(self, saved: DeploymentCheckpoint) -> None:
        """Restore the control state and a new result hub; a changed plan replaces the saved one."""
        self._epoch, self._durability.recoveries = saved.epoch, max(self._durability.recoveries, saved.recoveries)
        self._incarnation = max(self._incarnation, saved.incarnation)
        if strip_live_table(saved.table) == strip_live_table(self._table):
            self._query_set, self._domain_by_query, self._folders = (
                saved.query_set,
                dict(saved.where),
                dict(saved.folders),
            )
        else:
            self._query_set = QuerySet(self._table, Path(self._folder), self._spec.file)
            self._domain_by_query = self._place_queries(saved.where)
            self._folders = dict.fromkeys(self._domain_by_query, self._folder)
        queries = {q.name: (describe_output(q), self._folders[q.name]) for q in self._query_set.plan.queries}
        result_hub = self._result_hub
        past, beyond = self._checkpoint_store.past()
        self._call(result_hub.restore, saved.release_records, past, queries, beyond)
        self._call(result_hub.release, saved.numbers)
        self._unsaved = False

    def _place_queries(self, before: Mapping[str, str]) -> dict[str, str]:
        """By query: its former domain, else the one it shares with, else the one with the fewest queries."""
        plan = self._query_set.plan
        placed = {query.name: before[query.name] for query in plan.queries if query.name in before}
        for query in plan.queries:
            if query.name not in placed:
                placed[query.name] = choose_domain(plan, [query.name], placed, self._parts.actors_by_domain)
        return placed

    def _reopen(self, domains: DomainCheckpoints, saved: DeploymentCheckpoint) -> None:
        """Restore the new actors of domains."""
        actors_by_domain = {name: self._parts.actors_by_domain[name] for name in domains.by_domain}
        result_hub, opening, restoring = self._result_hub, list[Call[None]](), list[Call[None]]()
        for domain_actors in actors_by_domain.values():
            opening.append(
                send(
                    self._scheduler(domain_actors.name).reopen,
                    list(domain_actors.hosts),
                    result_hub,
                    self._epoch,
                    domain_actors.incarnation,
                    group=CONTROL,
                )
            )
        await_answers(opening, "opening the domains", MIGRATION_TIMEOUT_S)
        for name in actors_by_domain:
            snapshot, state_copies = domains.by_domain[name], domains.state_copies[name]
            query_set, staying = self._find_plan_override(name, saved)
            restore = self._scheduler(name).restore
            restoring.append(
                send(restore, snapshot, state_copies, query_set, staying, self._hung.get(name), group=CONTROL)
            )
        await_answers(restoring, "restoring the domains", MIGRATION_TIMEOUT_S)

    def _find_hung_station(self, domain: str) -> str | None:
        """The station that hung, if a domain is rebuilt for that; its scheduler may still answer."""
        station: str | None = None
        with suppress(DsmsError):
            status = await_answer(
                send(self._parts.actors_by_domain[domain].scheduler.status, group=CONTROL), "status", STATUS_TIMEOUT_S
            )
            station = status.watchdog.ended
        return station

    def _find_plan_override(self, domain: str, saved: DeploymentCheckpoint) -> tuple[QuerySet | None, Collection[str]]:
        """With a changed plan: a domain's queries by it, and the stations that keep their state."""
        if strip_live_table(saved.table) == strip_live_table(self._table):
            return None, ()
        queries = [query for query, home in self._domain_by_query.items() if home == domain]
        table, folder = apply_live_defaults(self._table, self._setup), Path(self._folder)
        staying = diff_plans(saved.query_set.plan, self._query_set.plan).kept_stations
        return QuerySet(table, folder, self._spec.file, queries), staying

    def _listen(self, place: int, saved: DeploymentCheckpoint) -> None:
        """Open a gateway at its former address."""
        before = saved.gateway_addresses[place][1] if place < len(saved.gateway_addresses) else 0
        port = self._setup.port + place if self._setup.port else before
        address = self._call(self._parts.gateways[place].listen, self._setup.host, port)
        self._gateway_addresses = [
            *self._gateway_addresses[:place],
            address,
            *self._gateway_addresses[place + 1 :],
        ]

    def _restart(self) -> None:
        """Rebuild everything: this process was restarted, and the state of other actors is unknown."""
        with self._change_lock:
            self._broken = set(list_actors(self._parts))
            while not self._ended.is_set():
                try:
                    tear_down(self._name, spare=[f"{PREFIX}{self._name}"])
                    self._parts = launch_actors(replace(self._spec, resumed=True))
                    self._restore(list(self._parts.actors_by_domain), everything=True)
                    self._broken = set()
                    self._durability.record_recovery()
                    break
                except Exception as error:
                    log.warning("%s cannot be restored yet: %s", self._name, error)
                    self._durability.record_failure(error)
                    self._ended.wait(RESTART_RETRY_S)
        self._start_watch()


DurableDeploymentActor = make_actor_class(DurableDeployment, max_concurrency=DEPLOYMENT_THREADS)
