"""A plan at work that outlives its processes: checkpoints on a period, and whatever dies is rebuilt from the last."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from actors.archive import Archive
from actors.cluster import PREFIX, deployment
from actors.deployment import ACTOR, UNDER_WAY, Deployment, announced
from actors.exporter import Source
from actors.launch import Wanted, check_sinks, launched, sources
from actors.lookout import Lookout
from actors.messages import CONTROL, KEPT, send
from actors.parts import Parts, settled, sweep, wait_for
from actors.replacing import everyone, kill, members, replaced
from actors.safety import Safety
from actors.saved import Domains, Saved
from actors.steering import OPENING
from actors.succession import plain, succession
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.division import home
from dsms.live.domain import measured
from dsms.live.metrics import Samples
from dsms.live.roster import Roster

log = logging.getLogger("dsms")
LOOK = 0.2  # seconds between two looks at who is there
AGAIN = 1.0  # seconds until what could not be begun again is tried again
ASKED = 2.0  # seconds that a scheduler has to say why it has failed


class DurableDeployment(Deployment):
    """Steers parts as the other does; what it has answered, and what gateways have acknowledged, is never lost."""

    def __init__(
        self, name: str, table: Mapping[str, Any], folder: str, file: str, wanted: Wanted, parts: Parts
    ) -> None:
        super().__init__(name, table, folder, file, wanted.setup, parts)
        self._table, self._wanted = table, wanted
        self._archive = Archive(Path(wanted.durable))
        self._folders: dict[str, str] = {}
        self._life = max(crew.life for crew in parts.crews.values())
        self._unsaved = False  # whether queries have come, gone or moved since the last checkpoint
        self._hung: dict[str, str] = {}  # by domain that is rebuilt: the station that is to blame
        self._broken: set[str] = set()  # what is to be rebuilt, though it may have been started already
        self._safety = Safety(wanted.durable)
        self._lookout, self._ended = Lookout(), threading.Event()
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

    def checkpoint(self) -> dict[str, Any]:
        """Save everything now; answers what that took."""
        with self._changing:
            self._save()
            return self._safety.checkpoint

    def status(self) -> dict[str, Any]:
        """How everything stands, and how safe it is."""
        return {**super().status(), "durable": self.safety()}

    def safety(self) -> dict[str, Any]:
        """How safe it is, without asking anybody else."""
        return self._safety.status()

    def metrics(self) -> Samples:
        """How safe it is, as samples."""
        return self._safety.metrics()

    def add(self, table: Mapping[str, Any], folder: str, file: str) -> list[str]:
        """Take queries in while others run; they are there after a crash too."""
        with self._changing:
            check_sinks(self._roster.adding(table, Path(folder), file).plan)
            self._unsaved = True
            names = super().add(table, folder, file)
            self._folders.update(dict.fromkeys(names, folder))
            self._save()
            return names

    def remove(self, query: str) -> None:
        """Let a query go while others run."""
        with self._changing:
            self._unsaved = True
            super().remove(query)

    def move(self, query: str, domain: str) -> dict[str, Any]:
        """Bring a query to another domain."""
        with self._changing:
            self._unsaved = True
            moved = super().move(query, domain)
            self._save()
            return moved

    def down(self) -> None:
        """End everything, after a last checkpoint from which it can be gone on with."""
        self._ended.set()
        with self._changing:
            with suppress(DsmsError):
                self._save()
            super().down()

    @contextmanager
    def _steering(self) -> Iterator[None]:
        """Not while something is rebuilt; and what is answered is in a checkpoint, from which it would be rebuilt."""
        with self._changing:
            yield
            self._save()

    def _finish(self, query: str, number: int) -> None:
        self._folders.pop(query, None)
        self._save({query: number})
        super()._finish(query, number)

    def _save(self, gone: Mapping[str, int] | None = None) -> None:
        """One checkpoint: all domains as they stand, then the results they have made, then it counts."""
        begun, outlet = stopwatch(), self._parts.outlet
        domains = self._stood()
        numbers = {query: n for stood in domains.stood.values() for query, n in stood.results.items()}
        numbers.update(gone or {})
        if not wait_for(lambda: not self._settled(outlet.lacks, numbers), UNDER_WAY):
            raise DsmsError(f"results of {self._settled(outlet.lacks, numbers)} did not come within {UNDER_WAY:g} s")
        done = self._archive.save(self._saved(numbers), domains)
        self._settled(outlet.release, numbers)
        self._unsaved = False
        for name, upto in self._archive.forgettable().items():
            send(everyone(self._parts)[name].forget, upto)
        pauses = {name: stood.pause for name, stood in domains.stood.items()}
        self._safety.saved(done, pauses, stopwatch() - begun)

    def _saved(self, numbers: dict[str, int]) -> Saved:
        return Saved(
            self._epoch,
            self._table,
            self._roster,
            dict(self._where),
            dict(self._folders),
            list(self._doors),
            self._settled(self._parts.outlet.collect, numbers),
            numbers,
            self._life,
            self._safety.recoveries,
        )

    def _stood(self) -> Domains:
        """How all domains stand; one that has failed by itself stays as it was saved last, and keeps nobody waiting."""
        asked = {name: send(c.scheduler.snapshot, group=CONTROL) for name, c in self._parts.crews.items()}
        found, failed = Domains(), list[str]()
        for name, call in asked.items():
            try:
                found.stood[name] = settled(call, f"how domain {name} stands", OPENING)
            except DsmsError:
                if not self._has_failed(name):
                    raise
                failed.append(name)
                continue
            kept = [send(host.kept, group=KEPT) for host in self._parts.crews[name].hosts]
            found.kept[name] = settled(kept, f"what hosts of domain {name} kept", OPENING)
        if failed:
            before = self._archive.domains(failed)
            found.stood.update(before.stood)
            found.kept.update(before.kept)
        return found

    def _has_failed(self, domain: str) -> bool:
        """Whether a domain is there and says that it has failed, and that not for want of one of its processes."""
        if self._lookout.dead(members(self._parts, domain)):
            return False
        status = self._or_error(self._parts.crews[domain].scheduler.status, {}, CONTROL)
        return status.get("state") == "failed" and "process is gone" not in str(status.get("error"))

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
