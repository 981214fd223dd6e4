"""A plan at work that is saved: on demand, and before anything that changes what runs is answered."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from actors.archive import Archive
from actors.deployment import UNDER_WAY, Deployment
from actors.launch import Wanted, check_sinks
from actors.lookout import Lookout
from actors.messages import CONTROL, KEPT, send
from actors.parts import Parts, settled, wait_for
from actors.replacing import everyone, members
from actors.safety import Safety
from actors.saved import Domains, Saved
from actors.steering import OPENING
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.metrics import Samples


class SavedDeployment(Deployment):
    """Whoever was answered can count on it: what dies later is rebuilt from a checkpoint with that in it."""

    def __init__(
        self, name: str, table: Mapping[str, Any], folder: str, file: str, wanted: Wanted, parts: Parts
    ) -> None:
        super().__init__(name, table, folder, file, wanted.setup, parts)
        self._table, self._wanted = table, wanted
        self._archive = Archive(Path(wanted.durable))
        self._folders: dict[str, str] = {}  # by query: what its files are relative to
        self._life = max(crew.life for crew in parts.crews.values())
        self._unsaved = False  # whether queries have come, gone or moved since the last checkpoint
        self._safety, self._braked = Safety(wanted.durable), False
        self._lookout, self._ended = Lookout(), threading.Event()

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
        if self._braked:
            self._brake(False)

    def _brake(self, on: bool) -> None:
        """Have gateways read, or not, which they may do in vain: their rows' results wait for a checkpoint."""
        for gateway in self._parts.gateways:
            send(gateway.brake, on, group=CONTROL)
        self._braked = on

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
