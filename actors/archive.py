"""A deployment's checkpoints on disk: what is saved, what was given out with those before, and what is too old."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

from actors.durable_outlet import Account
from actors.messages import pickled, unpickled
from actors.saved import Domains, Saved
from dsms.durable import Checkpoint, Checkpoints, SqliteLog
from dsms.errors import DsmsError
from dsms.private_file import check_folder

log = logging.getLogger("dsms")
PAST = 128  # checkpoints whose results are kept for subscribers that were away
WHOLE = "deployment"
Accounts = dict[str, Account]


class Archive:
    """The folder that `durable` names, on the node where gateways and the outlet are too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store, self._past = Checkpoints(folder / "checkpoints"), Checkpoints(folder / "results", PAST)
        self._taken = 0  # the number of the checkpoint that was last gone on from
        self._positions: dict[
            int, dict[str, int]
        ] = {}  # by checkpoint: up to where all domains have each gateway's log

    @property
    def empty(self) -> bool:
        """Whether nothing was ever kept here."""
        return not self._store.numbers() and not list(self.folder.glob("*.log"))

    def save(self, saved: Saved, domains: Domains) -> dict[str, Any]:
        """A new checkpoint, durable on return; its number and size."""
        if any(account.results for account in saved.accounts.values()):
            self._past.save({WHOLE: pickled((self._store.following, saved.accounts))})
        number = self._store.save({WHOLE: pickled(saved), **domains.sections()})
        stood = domains.stood.values()
        gateways = {name for one in stood for name in one.positions}
        self._positions[number] = {name: min(one.positions.get(name, 0) for one in stood) for name in gateways}
        return {"number": number, "bytes": self._store.size(number)}

    def latest(self) -> tuple[Saved, dict[str, bytearray]]:
        """The newest that can be read, and its sections; those that cannot are passed over, and that is said."""
        for folder in (self.folder, self._store.folder, self._past.folder):  # what is in them is unpickled
            check_folder(folder, "the checkpoints in")
        latest = self._store.latest()
        if latest is None:
            raise DsmsError(f"there is no checkpoint in {str(self.folder)!r} to go on from")
        for said in latest.damaged:
            log.warning("%s; checkpoint %d is taken instead", said, latest.number)
        self._check_logs(latest)
        self._taken = latest.number
        found: Saved = unpickled(bytes(latest.sections[WHOLE]))
        return found, latest.sections

    def _check_logs(self, latest: Checkpoint) -> None:
        """Refuse a checkpoint that a log does not go on from: what came in between would be lost without a word."""
        for gateway, positions in Domains.positions(latest.sections).items():
            path = self.folder / f"{gateway}.log"
            first, last = _extent(path)
            if min(positions) < first or max(positions) > last:
                raise DsmsError(
                    f"the log {str(path)!r} {f'has what came from {first + 1} to {last}' if last else 'is not there'}, "
                    f"and checkpoint {latest.number} was made of all up to {max(positions)}, of some domains up to "
                    f"{min(positions)}: they do not belong together. Bring back the one or the other, "
                    "or begin in another folder"
                )

    def past(self) -> tuple[list[Accounts], list[Accounts]]:
        """What was given out with the last checkpoints, the oldest first; one that is damaged is only missing.

        Besides, the same of those after the one that is gone on from: they were there, and cannot be read any more.
        """
        before, beyond = list[Accounts](), list[Accounts]()
        for place in self._past.numbers():
            try:
                number, accounts = unpickled(bytes(self._past.read(place)[WHOLE]))
            except DsmsError as error:
                log.warning("%s; subscribers that were away may miss what was in it", error)
                continue
            if number >= self._store.following:  # of a checkpoint that never was, and whose number is used again
                self._past.discard([place])
            else:
                (before if number <= self._taken else beyond).append(accounts)
        return before, beyond

    def domains(self, names: Collection[str]) -> Domains:
        """How these stood at the last checkpoint."""
        return Domains.read(self.latest()[1], list(names))

    def forgettable(self) -> dict[str, int]:
        """By gateway: up to where its log cannot be wanted by any checkpoint that is kept."""
        kept = set(self._store.numbers())
        self._positions = {number: found for number, found in self._positions.items() if number in kept}
        if kept > self._positions.keys():  # those of an earlier process: they are soon gone
            return {}
        gateways = {name for found in self._positions.values() for name in found}
        return {name: min(found.get(name, 0) for found in self._positions.values()) for name in gateways}


def _extent(path: Path) -> tuple[int, int]:
    """The offset after which a log has everything, and that of its end; one that is not there has nothing."""
    if not path.exists():
        return 0, 0
    log = SqliteLog(path)
    try:
        return log.forgotten(), log.last()
    finally:
        log.close()
