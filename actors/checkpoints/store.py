"""Stores a deployment's checkpoints, and the results released with each, in the folder of `durable`."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from actors.checkpoints.checkpoint import DeploymentCheckpoint, DomainCheckpoints
from actors.results.release import ReleaseRecord
from actors.rpc.messages import JsonObject, deserialize, serialize
from dsms.errors import DsmsError
from dsms.net.private_file import check_private_folder
from dsms.storage import Checkpoint, CheckpointFolder, SqliteLog

log = logging.getLogger("dsms")
RESULT_FILES_KEPT = 128  # checkpoints whose results are kept for subscribers that reconnect
DEPLOYMENT_SECTION = "deployment"
ReleaseRecords = dict[str, ReleaseRecord]


class CheckpointStore:
    """The folder that `durable` names, on the node of the gateways and the result hub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store, self._past = (
            CheckpointFolder(folder / "checkpoints"),
            CheckpointFolder(folder / "results", RESULT_FILES_KEPT),
        )
        self._taken = 0  # the number of the checkpoint last restored
        self._positions: dict[
            int, dict[str, int]
        ] = {}  # by checkpoint: by gateway: the offset of its log that all domains have applied

    @property
    def is_empty(self) -> bool:
        """Whether the folder has no checkpoint and no log."""
        return not self._store.numbers() and not list(self.folder.glob("*.log"))

    def save(self, saved: DeploymentCheckpoint, domains: DomainCheckpoints) -> JsonObject:
        """Save a checkpoint, durable on return; returns its number and size."""
        if any(record.results for record in saved.release_records.values()):
            self._past.save({DEPLOYMENT_SECTION: serialize((self._store.next_number, saved.release_records))})
        number = self._store.save({DEPLOYMENT_SECTION: serialize(saved), **domains.sections()})
        by_domain = domains.by_domain.values()
        gateways = {name for domain in by_domain for name in domain.positions}
        self._positions[number] = {
            name: min(domain.positions.get(name, 0) for domain in by_domain) for name in gateways
        }
        return {"number": number, "bytes": self._store.size(number)}

    def latest(self) -> tuple[DeploymentCheckpoint, dict[str, bytearray]]:
        """The newest checkpoint that can be read, and its sections; damaged ones are skipped with a warning."""
        for folder in (self.folder, self._store.folder, self._past.folder):  # their files are unpickled
            check_private_folder(folder, "the checkpoints in")
        latest = self._store.latest()
        if latest is None:
            raise DsmsError(f"there is no checkpoint in {str(self.folder)!r} to resume from")
        for damage in latest.damaged:
            log.warning("%s; recovery uses checkpoint %d instead", damage, latest.number)
        self._check_logs(latest)
        self._taken = latest.number
        checkpoint: DeploymentCheckpoint = deserialize(bytes(latest.sections[DEPLOYMENT_SECTION]))
        return checkpoint, latest.sections

    def _check_logs(self, latest: Checkpoint) -> None:
        """Raise an error if a gateway's log does not continue a checkpoint: rows between them would be lost."""
        for gateway, positions in DomainCheckpoints.positions(latest.sections).items():
            path = self.folder / f"{gateway}.log"
            first, last = _read_log_range(path)
            if min(positions) < first or max(positions) > last:
                raise DsmsError(
                    f"the log {str(path)!r} {f'has entries {first + 1} to {last}' if last else 'does not exist'}, "
                    f"but checkpoint {latest.number} covers entries up to {max(positions)}, in some domains up to "
                    f"{min(positions)}: they do not belong together. Bring back the matching log or checkpoint, "
                    "or start in another folder"
                )

    def past(self) -> tuple[list[ReleaseRecords], list[ReleaseRecords]]:
        """The results released with the last checkpoints, the oldest first; damaged files are skipped.

        The second list has those released after the restored checkpoint, by checkpoints that can no longer be read.
        """
        before, beyond = list[ReleaseRecords](), list[ReleaseRecords]()
        for place in self._past.numbers():
            try:
                number, release_records = deserialize(bytes(self._past.read(place)[DEPLOYMENT_SECTION]))
            except DsmsError as error:
                log.warning("%s; subscribers that reconnect may miss its results", error)
                continue
            if number >= self._store.next_number:  # of a checkpoint that was never completed; its number is used again
                self._past.discard([place])
            else:
                (before if number <= self._taken else beyond).append(release_records)
        return before, beyond

    def domains(self, names: Collection[str]) -> DomainCheckpoints:
        """These domains as of the last checkpoint."""
        return DomainCheckpoints.read(self.latest()[1], list(names))

    def find_truncation_offsets(self) -> dict[str, int]:
        """By gateway: the offset up to which its log is covered by every kept checkpoint."""
        kept = set(self._store.numbers())
        self._positions = {number: positions for number, positions in self._positions.items() if number in kept}
        if kept > self._positions.keys():  # an earlier process wrote some: they are soon deleted
            return {}
        gateways = {name for positions in self._positions.values() for name in positions}
        return {name: min(positions.get(name, 0) for positions in self._positions.values()) for name in gateways}


def _read_log_range(path: Path) -> tuple[int, int]:
    """The offsets after which a log has entries, and of its end; zeros if it does not exist."""
    if not path.exists():
        return 0, 0
    log = SqliteLog(path)
    try:
        return log.truncated_offset(), log.last()
    finally:
        log.close()
