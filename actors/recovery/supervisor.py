"""Watches a running system: rebuilds actors that have ended from the last checkpoint, and has checkpoints saved."""

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
from actors.deployment.actor_handles import tear_down
from actors.deployment.launch import launch_actors, list_metric_sources
from actors.deployment.running_system import MIGRATION_TIMEOUT_S, RunningSystem, describe_output
from actors.metrics.exporter import MetricSource
from actors.recovery.checkpointer import Checkpointer
from actors.recovery.replace import kill_actors, list_actors, list_domain_actors, replace_actors
from actors.rpc.answers import await_answer, await_answers
from actors.rpc.messages import CONTROL, Call, send
from dsms.clock import monotonic_s
from dsms.config.live import apply_live_defaults
from dsms.errors import DsmsError
from dsms.live.query_placement import choose_domain
from dsms.live.query_set import QuerySet

log = logging.getLogger("dsms")
WATCH_INTERVAL_S = 0.2  # between two checks for dead actors
OVERDUE_CHECKPOINTS = 60  # failed ones before clients are no longer read
RESTART_RETRY_S = 1.0
STATUS_TIMEOUT_S = 2.0  # for a scheduler to name the station that hung


class Supervisor:
    """Loses neither what the deployment has answered nor what gateways have acknowledged."""

    def __init__(self, system: RunningSystem, checkpointer: Checkpointer) -> None:
        self._system, self._checkpointer = system, checkpointer
        self._durability = checkpointer.durability
        self._hung: dict[str, str] = {}  # by domain that is rebuilt: the station that hung
        self._ended = threading.Event()

    def start(self) -> None:
        """Watch from now on, in a thread."""
        threading.Thread(target=self._watch, name="checkpoints", daemon=True).start()

    def end(self) -> None:
        """Watch no longer."""
        self._ended.set()

    def _watch(self) -> None:
        """Save checkpoints and rebuild dead actors, until the deployment ends."""
        system, checkpointer, period = self._system, self._checkpointer, self._system.spec.setup.checkpoint
        due = monotonic_s() + period
        while not self._ended.wait(WATCH_INTERVAL_S):
            with system.change_lock:
                if self._ended.is_set():
                    return
                try:
                    if dead := checkpointer.failure_detector.find_dead(list_actors(system.actors)) | system.broken:
                        self.recover(dead)
                    if monotonic_s() >= due:
                        due = monotonic_s() + period
                        checkpointer.save()
                except Exception as error:  # the next round tries again
                    log.warning("%s: a checkpoint or a recovery has failed: %s", system.spec.name, error)
                    self._durability.record_failure(error)
                    if self._durability.overdue_s > OVERDUE_CHECKPOINTS * period:
                        checkpointer.stop_ingest(True)  # again each time: gateways may have been rebuilt meanwhile

    def recover(self, dead: Collection[str]) -> None:
        """Rebuild dead actors and all that cannot continue without them."""
        started, system, before, name = monotonic_s(), self._system, self._system.actors, self._system.spec.name
        log.warning("%s: %s ended unexpectedly", name, ", ".join(sorted(dead)))
        everything = self._checkpointer.unsaved or "outlet" in dead
        domains = [
            domain
            for domain in before.actors_by_domain
            if everything or set(dead) & set(list_domain_actors(before, domain))
        ]
        rebuilt = {*dead, *(one for domain in domains for one in list_domain_actors(before, domain))}
        if everything:
            rebuilt.add("outlet")
        self._hung.update((one, station) for one in domains if (station := self._find_hung_station(one)) is not None)
        system.broken = rebuilt  # until all is done: after an error, the next attempt starts from here
        kill_actors(name, rebuilt)
        living = [gateway for n, gateway in enumerate(before.gateways) if f"gateway-{n}" not in rebuilt]
        await_answers([send(gateway.halt, group=CONTROL) for gateway in living], "halting gateways")
        system.actors = replace_actors(before, system.spec, rebuilt, system.incarnation)
        after = system.actors.actors_by_domain.values()
        system.incarnation = max(system.incarnation, *(domain_actors.incarnation for domain_actors in after))
        self.restore(domains, everything, [before.actors_by_domain[one].incarnation for one in domains], rebuilt)
        system.broken, self._hung = set(), {}
        self._durability.record_recovery(seconds := monotonic_s() - started)
        log.warning("%s: rebuilt %s in %.2f s", name, ", ".join(sorted(rebuilt)), seconds)

    def restore(
        self,
        domains: Collection[str],
        everything: bool = False,
        over: Collection[int] = (),
        rebuilt: Collection[str] | None = None,
    ) -> None:
        """Restore new actors from the last checkpoint; `rebuilt` None: all are new."""
        saved, sections = self._checkpointer.store.latest()
        system, actors = self._system, self._system.actors
        if everything:
            self._resume(saved)
        else:
            numbers = {query: number for query, number in saved.numbers.items() if saved.where.get(query) in domains}
            system.call(actors.result_hub.rewind, numbers, over)
        self._restore_domains(DomainCheckpoints.read(sections, list(domains)), saved)
        system.publish_routes()  # before gateways listen: a client that connects receives the schemas
        for place, gateway in enumerate(actors.gateways):
            if rebuilt is None or f"gateway-{place}" in rebuilt:
                system.listen(place, saved.gateway_addresses[place][1] if place < len(saved.gateway_addresses) else 0)
            elif everything:
                attaching = send(gateway.attach, actors.result_hub, group=CONTROL)
                await_answer(attaching, "attaching a gateway to the new result hub")
        if actors.exporter is not None and (rebuilt is None or "exporter" in rebuilt):
            system.serve_metrics()
        self.publish_sources()

    def publish_sources(self) -> None:
        """Have the exporter collect from all current actors, and from the control actor."""
        actors = self._system.actors
        if actors.exporter is not None:
            own = MetricSource("deployment", get_deployment(self._system.spec.name), "metrics", None)
            self._system.call(actors.exporter.set_sources, [*list_metric_sources(actors), own])

    def restart(self) -> None:
        """Rebuild everything: the control actor was restarted, and the state of other actors is unknown."""
        system, name = self._system, self._system.spec.name
        with system.change_lock:
            system.broken = set(list_actors(system.actors))
            while not self._ended.is_set():
                try:
                    tear_down(name, spare=[f"{PREFIX}{name}"])
                    system.actors = launch_actors(replace(system.spec, resumed=True))
                    self.restore(list(system.actors.actors_by_domain), everything=True)
                    system.broken = set()
                    self._durability.record_recovery()
                    break
                except Exception as error:
                    log.warning("%s cannot be restored yet: %s", name, error)
                    self._durability.record_failure(error)
                    self._ended.wait(RESTART_RETRY_S)
        self.start()

    def _resume(self, saved: DeploymentCheckpoint) -> None:
        """Restore the control state and a new result hub; a changed plan replaces the saved one."""
        system, spec = self._system, self._system.spec
        system.epoch, self._durability.recoveries = saved.epoch, max(self._durability.recoveries, saved.recoveries)
        system.incarnation = max(system.incarnation, saved.incarnation)
        if self._has_same_plan(saved):
            system.query_set, system.domain_by_query = saved.query_set, dict(saved.where)
            system.folders = dict(saved.folders)
        else:
            system.query_set = QuerySet(spec.table, Path(spec.folder), spec.file)
            system.domain_by_query = self._place_queries(saved.where)
            system.folders = dict.fromkeys(system.domain_by_query, spec.folder)
        queries = {q.name: (describe_output(q), system.folders[q.name]) for q in system.query_set.plan.queries}
        past, beyond = self._checkpointer.store.past()
        result_hub = system.actors.result_hub
        system.call(result_hub.restore, saved.release_records, past, queries, beyond)
        system.call(result_hub.release, saved.numbers)
        self._checkpointer.unsaved = False

    def _place_queries(self, before: Mapping[str, str]) -> dict[str, str]:
        """By query: its former domain, else the one it shares with, else the one with the fewest queries."""
        plan = self._system.query_set.plan
        placed = {query.name: before[query.name] for query in plan.queries if query.name in before}
        for query in plan.queries:
            if query.name not in placed:
                placed[query.name] = choose_domain(plan, [query.name], placed, self._system.actors.actors_by_domain)
        return placed

    def _restore_domains(self, domains: DomainCheckpoints, saved: DeploymentCheckpoint) -> None:
        """Restore the new actors of domains."""
        self._system.open_domains(list(domains.by_domain), resumed=True)
        restoring: list[Call[None]] = []
        for name, snapshot in domains.by_domain.items():
            query_set, staying = self._find_plan_override(name, saved)
            restore, stalled = self._system.actors.actors_by_domain[name].scheduler.restore, self._hung.get(name)
            state_copies = domains.state_copies[name]
            restoring.append(send(restore, snapshot, state_copies, query_set, staying, stalled, group=CONTROL))
        await_answers(restoring, "restoring the domains", MIGRATION_TIMEOUT_S)

    def _find_hung_station(self, domain: str) -> str | None:
        """The station that hung, if a domain is rebuilt for that; its scheduler may still answer."""
        station: str | None = None
        with suppress(DsmsError):
            asked = send(self._system.actors.actors_by_domain[domain].scheduler.status, group=CONTROL)
            station = await_answer(asked, "status", STATUS_TIMEOUT_S).watchdog.ended
        return station

    def _find_plan_override(self, domain: str, saved: DeploymentCheckpoint) -> tuple[QuerySet | None, Collection[str]]:
        """With a changed plan: a domain's queries by it, and the stations that keep their state."""
        if self._has_same_plan(saved):
            return None, ()
        system, spec = self._system, self._system.spec
        queries = [query for query, home in system.domain_by_query.items() if home == domain]
        staying = diff_plans(saved.query_set.plan, system.query_set.plan).kept_stations
        return QuerySet(apply_live_defaults(spec.table, spec.setup), Path(spec.folder), spec.file, queries), staying

    def _has_same_plan(self, saved: DeploymentCheckpoint) -> bool:
        return strip_live_table(saved.table) == strip_live_table(self._system.spec.table)
