"""A plan at work that outlives its processes: checkpoints on a period, and whatever dies is rebuilt from the last."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from actors.cluster import PREFIX, deployment
from actors.deployment import ACTOR, announced
from actors.exporter import Source
from actors.launch import Wanted, launched, sources
from actors.messages import CONTROL, send
from actors.parts import Parts, settled, sweep
from actors.replacing import everyone, kill, members, replaced
from actors.saved import Domains, Saved
from actors.saved_deployment import SavedDeployment
from actors.steering import OPENING
from actors.succession import plain, succession
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.division import home
from dsms.live.domain import measured
from dsms.live.roster import Roster

log = logging.getLogger("dsms")
LOOK = 0.2  # seconds between two looks at who is there
OVERDUE = 60  # checkpoints that could not be saved before nothing is read any more
AGAIN = 1.0  # seconds until what could not be begun again is tried again
ASKED = 2.0  # seconds that a scheduler has to say why it has failed


class DurableDeployment(SavedDeployment):
    """Steers parts as the other does; what it has answered, and what gateways have acknowledged, is never lost."""

    def __init__(
        self, name: str, table: Mapping[str, Any], folder: str, file: str, wanted: Wanted, parts: Parts
    ) -> None:
        super().__init__(name, table, folder, file, wanted, parts)
        self._hung: dict[str, str] = {}  # by domain that is rebuilt: the station that is to blame
        self._broken: set[str] = set()  # what is to be rebuilt, though it may have been started already
        if ray.is_initialized() and ray.get_runtime_context().was_current_actor_reconstructed:
            threading.Thread(target=self._revive, name="revival", daemon=True).start()

    def begin(self, queries: Mapping[str, list[str]], resume: bool = False) -> list[tuple[str, int]]:
        """Bring all queries, by domain, to work, or go on from the last checkpoint."""
        with self._changing:
            if resume:
                self._restore(list(self._parts.crews), everything=True)
            else:
                super().begin(queries)
                self._folders = dict.fromkeys(self._where, self._folder)
                self._show()
            self._save()
            self._keep_watch()
            return self._doors

    def _keep_watch(self) -> None:
        threading.Thread(target=self._watch, name="checkpoints", daemon=True).start()

    def _watch(self) -> None:
        """Save on a period, and rebuild what is gone, until it all ends."""
        due = stopwatch() + self._setup.checkpoint
        while not self._ended.wait(LOOK):
            with self._changing:
                if self._ended.is_set():
                    return
                try:
                    if dead := self._lookout.dead(everyone(self._parts)) | self._broken:
                        self._recover(dead)
                    if stopwatch() >= due:
                        due = stopwatch() + self._setup.checkpoint
                        self._save()
                except Exception as error:  # it is tried again: nobody else is there to see to it
                    log.warning("%s: a checkpoint or a recovery has failed: %s", self._name, error)
                    self._safety.failed(error)
                    if self._safety.overdue > OVERDUE * self._setup.checkpoint:
                        self._brake(True)  # also those that were started meanwhile

    def _recover(self, dead: Collection[str]) -> None:
        """Rebuild what is dead and what cannot go on without it."""
        begun, parts = stopwatch(), self._parts
        log.warning("%s: %s ended unexpectedly", self._name, ", ".join(sorted(dead)))
        everything = self._unsaved or "outlet" in dead
        domains = [name for name in parts.crews if everything or set(dead) & set(members(parts, name))]
        rebuilt = {*dead, *(one for name in domains for one in members(parts, name))}
        if everything:
            rebuilt.add("outlet")
        self._hung.update((name, station) for name in domains if (station := self._ended_in(name)) is not None)
        self._broken = rebuilt  # until all is done: should this fail, it is begun again
        kill(self._name, rebuilt)
        living = [one for name, one in everyone(parts).items() if name.startswith("gateway") and name not in rebuilt]
        settled([send(gateway.halt, group=CONTROL) for gateway in living], "halting gateways")
        self._parts = replaced(parts, self._wanted, rebuilt, self._life)
        self._life = max(self._life, *(crew.life for crew in self._parts.crews.values()))
        self._restore(domains, everything, [parts.crews[name].life for name in domains], rebuilt)
        self._broken, self._hung = set(), {}
        self._safety.recovered(seconds := stopwatch() - begun)
        log.warning("%s: rebuilt %s in %.2f s", self._name, ", ".join(sorted(rebuilt)), seconds)

    def _restore(
        self,
        domains: Collection[str],
        everything: bool = False,
        over: Collection[int] = (),
        rebuilt: Collection[str] | None = None,
    ) -> None:
        """Let parts that are new go on from the last checkpoint; None: all parts are."""
        saved, sections = self._archive.latest()
        parts, outlet = self._parts, self._parts.outlet
        if everything:
            self._resume(saved)
        else:
            numbers = {query: number for query, number in saved.numbers.items() if saved.where.get(query) in domains}
            self._settled(outlet.rewind, numbers, over)
        self._reopen(Domains.read(sections, list(domains)), saved)
        self._serve()  # first the ways: who connects must be told of streams
        for place, gateway in enumerate(parts.gateways):
            if rebuilt is None or f"gateway-{place}" in rebuilt:
                self._listen(place, saved)
            elif everything:
                settled(send(gateway.attach, outlet, group=CONTROL), "telling a gateway of the new outlet")
        if parts.exporter is not None and (rebuilt is None or "exporter" in rebuilt):
            told = self._settled(parts.exporter.listen, self._setup.metrics_host, self._setup.metrics)
            self._metrics = "http://{}:{}/metrics".format(*told)
        self._show()

    def _show(self) -> None:
        """Have metrics asked of all that there is now, and of this one too."""
        if (exporter := self._parts.exporter) is not None:
            own = Source("deployment", deployment(self._name), "metrics", None)
            self._settled(exporter.follow, [*sources(self._parts), own])

    def _resume(self, saved: Saved) -> None:
        """Be as it was saved, with an outlet that is new; what the plan says now counts if it says something else."""
        self._epoch, self._safety.recoveries = saved.epoch, max(self._safety.recoveries, saved.recoveries)
        self._life = max(self._life, saved.life)
        if plain(saved.table) == plain(self._table):
            self._roster, self._where, self._folders = saved.roster, dict(saved.where), dict(saved.folders)
        else:
            self._roster = Roster(self._table, Path(self._folder), self._wanted.file)
            self._where = self._placed(saved.where)
            self._folders = dict.fromkeys(self._where, self._folder)
        queries = {q.name: (announced(q), self._folders[q.name]) for q in self._roster.plan.queries}
        outlet = self._parts.outlet
        past, beyond = self._archive.past()
        self._settled(outlet.restore, saved.accounts, past, queries, beyond)
        self._settled(outlet.release, saved.numbers)
        self._unsaved = False

    def _placed(self, before: Mapping[str, str]) -> dict[str, str]:
        """By query: its domain, the one it was in before, else of those it shares with, else where the fewest are."""
        plan = self._roster.plan
        found = {query.name: before[query.name] for query in plan.queries if query.name in before}
        for query in plan.queries:
            if query.name not in found:
                found[query.name] = home(plan, [query.name], found, self._parts.crews)
        return found

    def _reopen(self, domains: Domains, saved: Saved) -> None:
        """Let the new parts of domains go on as they stood."""
        crews = {name: self._parts.crews[name] for name in domains.stood}
        outlet, opening, restoring = self._parts.outlet, list[Any](), list[Any]()
        for crew in crews.values():
            opening.append(send(crew.scheduler.reopen, list(crew.hosts), outlet, self._epoch, crew.life, group=CONTROL))
        settled(opening, "opening the domains", OPENING)
        for name, crew in crews.items():
            given = domains.stood[name], domains.kept[name], *self._instead(name, saved), self._hung.get(name)
            restoring.append(send(crew.scheduler.restore, *given, group=CONTROL))
        settled(restoring, "bringing back what the domains held", OPENING)

    def _ended_in(self, domain: str) -> str | None:
        """The station that hung, if a domain has to be rebuilt for that: its scheduler may be there to say so."""
        station: str | None = None
        with suppress(DsmsError):
            told = settled(send(self._parts.crews[domain].scheduler.status, group=CONTROL), "who hung", ASKED)
            station = told["watchdog"]["ended"]
        return station

    def _instead(self, domain: str, saved: Saved) -> tuple[Any, ...]:
        """Where the plan is another now: a domain's queries by it, and the stations that go on as they are."""
        if plain(saved.table) == plain(self._table):
            return None, ()
        queries = [query for query, home in self._where.items() if home == domain]
        table, folder = measured(self._table, self._setup), Path(self._folder)
        staying = succession(saved.roster.plan, self._roster.plan).keeping
        return Roster(table, folder, self._wanted.file, queries), staying

    def _listen(self, place: int, saved: Saved) -> None:
        """Open a gateway's door where it was before."""
        before = saved.doors[place][1] if place < len(saved.doors) else 0
        port = self._setup.port + place if self._setup.port else before
        found = self._settled(self._parts.gateways[place].listen, self._setup.host, port)
        self._doors = [*self._doors[:place], (str(found[0]), int(found[1])), *self._doors[place + 1 :]]

    def _revive(self) -> None:
        """This process has died and was started again: nobody knows what became of the others since, so all are new."""
        with self._changing:
            while not self._ended.is_set():
                try:
                    sweep(self._name, spare=[f"{PREFIX}{self._name}"])
                    self._parts = launched(replace(self._wanted, resumed=True), lambda _: None)
                    self._restore(list(self._parts.crews), everything=True)
                    break
                except Exception as error:
                    log.warning("%s cannot go on yet: %s", self._name, error)
                    self._safety.failed(error)
                    self._ended.wait(AGAIN)
            self._safety.recovered()
        self._keep_watch()


DurableDeploymentActor: Any = ray.remote(**ACTOR)(DurableDeployment)
