"""A plan at work on a cluster: the one that all commands go to; it knows every part and how they hang together."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ray

from actors.cluster import PREFIX
from actors.edition import edition
from actors.heap import keep_small
from actors.launch import Tell, Wanted, check_durable, check_ports, here, launched, places_for
from actors.messages import CONTROL, myself, send
from actors.parts import Parts, closed, settled, sweep, wait_for
from actors.predecessor import make_room
from actors.steering import OPENING, Steering
from actors.ways import routes_of, streams_read
from dsms.clock import epoch, stopwatch
from dsms.errors import DsmsError
from dsms.live.division import divided, home, together
from dsms.live.roster import Roster
from dsms.live.setup import Setup
from dsms.outlets import appends
from dsms.plan import Query
from dsms.tokens import Tokens

NAME = re.compile(r"[A-Za-z0-9_-]+")
UNDER_WAY = 10.0  # seconds that results may take from a host to the outlet
FAREWELL = 0.2  # seconds for the last answer to be on its way


class Deployment(Steering):
    """Steers the parts that it is given; they are actors, or plain objects in tests."""

    def __init__(self, name: str, table: Mapping[str, Any], folder: str, file: str, setup: Setup, parts: Parts) -> None:
        keep_small()
        super().__init__(parts)
        self._name, self._folder, self._setup, self._epoch = name, folder, setup, epoch()
        self._roster = Roster(table, Path(folder), file)
        self._doors: list[tuple[str, int]] = []
        self._metrics: str | None = None  # where they are served
        self._since: float | None = epoch()  # None: it is going down
        self._edition = edition()
        self._changing = threading.RLock()  # one change at a time; questions are answered meanwhile

    def begin(self, queries: Mapping[str, list[str]]) -> list[tuple[str, int]]:
        """Bring all queries, by domain, to work and open the doors; answers where those are."""
        with self._changing:
            self._epoch = epoch()  # what took time until now is none of the plan's
            self._where = {query: domain for domain, names in queries.items() for query in names}
            outlet = self._parts.outlet
            self._settled(outlet.open, {q.name: announced(q) for q in self._roster.plan.queries}, self._folder)
            crews = self._parts.crews.values()
            opening = [send(c.scheduler.open, list(c.hosts), outlet, self._epoch, c.life) for c in crews]
            settled(opening, "opening the domains", OPENING)
            for place, gateway in enumerate(self._parts.gateways):
                port = self._setup.port + place if self._setup.port else 0
                self._doors.append(tuple(self._settled(gateway.listen, self._setup.host, port)))
            if self._parts.exporter is not None:
                told = self._settled(self._parts.exporter.listen, self._setup.metrics_host, self._setup.metrics)
                self._metrics = "http://{}:{}/metrics".format(*told)
            self._serve()
            return self._doors

    def identity(self) -> dict[str, Any]:
        """Who this is, without asking anybody else."""
        if self._since is None:
            raise DsmsError(f"deployment {self._name!r} is going down")
        doors = [f"{host}:{port}" for host, port in self._doors]
        return {"name": self._name, "since": self._since, "version": self._edition, "gateways": doors}

    def status(self) -> dict[str, Any]:
        """How everything stands, as plain data; a part that does not answer says why instead."""
        crews = self._parts.crews.values()
        return {
            **self.identity(),
            "gateways": [self._or_error(gateway.status, {"address": None}) for gateway in self._parts.gateways],
            "outlet": self._or_error(self._parts.outlet.status, {}),
            "metrics": self._metrics,
            "domains": [self._or_error(c.scheduler.status, _silent(c.name), CONTROL) for c in crews],
        }

    def checkpoint(self) -> dict[str, Any]:
        """Save everything now; only one that is durable can."""
        raise DsmsError(f"deployment {self._name!r} is not durable: `dsms up --durable DIR` starts one that is")

    def add(self, table: Mapping[str, Any], folder: str, file: str) -> list[str]:
        """Take queries in while others run: where those are that they read or share with, or where least is to do."""
        with self._changing:
            after = self._roster.adding(table, Path(folder), file)
            fresh = [query for query in after.plan.queries if query.name not in self._where]
            coming = [query.name for query in fresh]
            crew = self._parts.crews[home(after.plan, coming, self._where, self._parts.crews)]
            self._settled(self._parts.outlet.open, {query.name: announced(query) for query in fresh}, folder)
            with self._holding(coming, after):
                try:
                    names: list[str] = self._control(crew.scheduler.add, table, folder, file)
                except DsmsError:
                    for query in fresh:
                        self._settled(self._parts.outlet.shut, query.name, False)
                    raise
                self._roster = after
                self._where.update(dict.fromkeys(names, crew.name))
            return names

    def remove(self, query: str) -> None:
        """Let a query go while others run; its file is finished."""
        with self._changing:
            after = self._roster.removing(query)
            with self._holding([query]):
                number = self._control(self._home(query).scheduler.remove, query)
                self._roster = after
                del self._where[query]
            self._come({query: number})
            self._finish(query, number)

    def move(self, query: str, domain: str) -> dict[str, Any]:
        """Bring a query, and those that must be where it is, to another domain with all that is theirs."""
        with self._changing:
            begun = stopwatch()
            source, target = self._home(query), self._chosen(domain)[0]
            if source is target:
                raise DsmsError(f"query {query!r} is in domain {domain!r} already")
            going = [name for name in together(self._roster.plan, query) if self._where[name] == source.name]
            with self._holding(going, level=True):  # what has come before is admitted, and moves with its queue
                goods = self._control(source.scheduler.release, going)
                try:
                    self._control(target.scheduler.adopt, goods)
                except DsmsError:
                    self._control(source.scheduler.adopt, goods)
                    raise
                self._where.update(dict.fromkeys(going, target.name))
            return {"queries": going, "from": source.name, "to": target.name, "seconds": stopwatch() - begun}

    def down(self) -> None:
        """End everything: first what lets rows in, then what works, then what writes; parts may be dead already."""
        self._since = None
        parts = self._parts
        closed([*parts.gateways, *([] if parts.exporter is None else [parts.exporter])])
        numbers = closed([crew.scheduler for crew in parts.crews.values()])
        with suppress(DsmsError):
            self._come({query: number for told in numbers for query, number in (told or {}).items()})
        closed([parts.outlet])
        if (me := myself()) is not None:
            sweep(self._name, spare=[f"{PREFIX}{self._name}"])
            threading.Timer(FAREWELL, lambda: ray.kill(me)).start()

    def _finish(self, query: str, number: int) -> None:
        """All results of a query that has gone, up to this number, have come."""
        self._settled(self._parts.outlet.shut, query)

    def _come(self, numbers: Mapping[str, int]) -> None:
        """Wait until all results that hosts have sent are with the outlet."""
        wait_for(lambda: not self._settled(self._parts.outlet.lacks, numbers), UNDER_WAY)

    @contextmanager
    def _holding(self, queries: Collection[str], roster: Roster | None = None, level: bool = False) -> Iterator[None]:
        """Keep back what these queries read while they come, go or move; then it goes by the new ways.

        Else rows would be announced to a scheduler whose stations are at hosts that do not get them. With `level` all
        domains have the same rows then, also where these are stored and one is behind.
        """
        streams = streams_read((roster or self._roster).plan, queries)
        try:
            held = [send(gateway.hold, streams, level, group=CONTROL) for gateway in self._parts.gateways]
            settled(held, "holding rows back", OPENING)
            yield
        finally:
            self._serve()

    def _serve(self) -> None:
        """Let the gateways know who reads what: every domain that reads a stream gets it once."""
        crews = self._parts.crews.values()
        routes = routes_of(
            self._roster.plan, [(crew, self._control(crew.scheduler.routes)) for crew in crews], self._epoch
        )
        settled([send(gateway.serve, routes) for gateway in self._parts.gateways], "telling the gateways the ways")


def announced(query: Query) -> tuple[Any, Any, bool]:
    """What the outlet has to know of a query: its sink, its columns if they are known, whether rows only come."""
    return query.sink, None if query.node is None else query.node.schema, appends(query)


def _silent(domain: str) -> dict[str, Any]:
    """The status of a domain that does not answer."""
    return {"domain": domain, "streams": [], "queries": [], "stations": [], "phases": []}


# Several threads: questions are answered while a change is under way.
ACTOR: dict[str, Any] = {"num_cpus": 0, "max_concurrency": 8}
DeploymentActor: Any = ray.remote(**ACTOR)(Deployment)


def up(
    table: Mapping[str, Any],
    folder: str,
    file: str,
    name: str = "dsms",
    setup: Setup | None = None,
    replace: bool = False,
    tokens: Tokens | None = None,
    progress: Tell = lambda _: None,
    resume: bool = False,
) -> Any:
    """Deploy a plan on the cluster that this process is part of; answers the handle of its Deployment.

    With `resume` it goes on from the last checkpoint in the folder that the setup names.
    """
    if not NAME.fullmatch(name):
        raise DsmsError(f"{name!r} cannot be the name of a deployment: letters, digits, _ and - are wanted")
    setup = setup or Setup.read(table.get("live", {}))
    plan = Roster(table, Path(folder), file).plan  # what is wrong with it is found before anything is started
    check_durable(setup, plan, folder, resume)
    places_for(setup.domains, instead=name)  # before anything is ended for it
    make_room(name, replace, progress)
    check_ports(setup)
    queries = divided(plan, setup.domains)
    working = [sum(station.query.name in names for station in plan.stations) for names in queries]
    hosts = [max(1, min(setup.actors, count)) for count in working]
    wanted = Wanted(name, table, folder, file, setup, queries, hosts, tokens, resumed=resume)
    try:
        parts = launched(wanted, progress)
        handle = _steered(wanted, parts)
        begin = {str(domain): names for domain, names in enumerate(queries)}, *((True,) if resume else ())
        settled(handle.begin.remote(*begin), f"deployment {name!r}", OPENING)
    except BaseException:  # a Ctrl-C too leaves nothing half-started behind
        if swept := sweep(name):
            progress(f"{len(swept)} that were started have been ended")
        raise
    return handle


def _steered(wanted: Wanted, parts: Parts) -> Any:
    """The actor that steers these parts; one that rebuilds them is itself started again, should it die."""
    given = wanted.name, wanted.table, wanted.folder, wanted.file
    if not wanted.durable:
        return here(DeploymentActor, wanted.name).remote(*given, wanted.setup, parts)
    from actors.durable_deployment import DurableDeploymentActor

    return here(DurableDeploymentActor, wanted.name, restarts=-1).remote(*given, wanted, parts)
