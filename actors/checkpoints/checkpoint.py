"""The content of a deployment's checkpoint, and how it is split into the sections of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from actors.hosts.state_copy import StateCopy
from actors.results.release import ReleaseRecord
from actors.rpc.messages import PlanTable, deserialize, serialize
from actors.scheduler.scheduler import DomainCheckpoint
from dsms.live.query_set import QuerySet


@dataclass(frozen=True)
class DeploymentCheckpoint:
    """A deployment without its domains."""

    epoch: float
    table: PlanTable  # the plan that it was started with
    query_set: QuerySet  # all queries at the checkpoint
    where: dict[str, str]  # by query: its domain
    folders: dict[str, str]  # by query: the folder that its files are relative to
    gateway_addresses: list[tuple[str, int]]
    release_records: dict[str, ReleaseRecord]  # by query: its results
    numbers: dict[str, int]  # by query: the number of its last result
    incarnation: int  # the highest of all domains so far
    recoveries: int


@dataclass(frozen=True)
class DomainCheckpoints:
    """The snapshot of each domain, and the state copies of its hosts."""

    by_domain: dict[str, DomainCheckpoint] = field(default_factory=dict)
    state_copies: dict[str, list[StateCopy]] = field(default_factory=dict)

    def sections(self) -> dict[str, bytes | memoryview]:
        """Return the sections of a file."""
        sections: dict[str, bytes | memoryview] = {}
        for name, domain_checkpoint in self.by_domain.items():
            sections[f"domain-{name}"] = serialize((domain_checkpoint, len(self.state_copies[name])))
            for place, state_copy in enumerate(self.state_copies[name]):
                sections.update(state_copy.sections(f"domain-{name}/host-{place}"))
        return sections

    @classmethod
    def read(cls, sections: Mapping[str, bytearray], names: Sequence[str]) -> DomainCheckpoints:
        """Read these domains from the sections of a file."""
        domains = cls()
        for name in names:
            domains.by_domain[name], count = deserialize(bytes(sections[f"domain-{name}"]))
            domains.state_copies[name] = [
                StateCopy.read(sections, f"domain-{name}/host-{place}") for place in range(count)
            ]
        return domains

    @classmethod
    def positions(cls, sections: Mapping[str, bytearray]) -> dict[str, list[int]]:
        """By gateway: the offset of its log that each domain of a file has applied."""
        names = [name for name in sections if name.startswith("domain-") and "/" not in name]
        by_domain = [deserialize(bytes(sections[name]))[0].positions for name in names]
        return {gateway: [each.get(gateway, 0) for each in by_domain] for each in by_domain for gateway in each}
