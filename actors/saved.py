"""What a checkpoint of a deployment is made of, as the sections of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.durable_outlet import Account
from actors.durable_scheduler import Stood
from actors.frozen import Frozen
from actors.messages import pickled, unpickled
from dsms.live.roster import Roster


@dataclass(frozen=True)
class Saved:
    """All of a deployment but its domains."""

    epoch: float
    table: Mapping[str, Any]  # the plan that it was begun with
    roster: Roster  # all queries there are now
    where: dict[str, str]  # by query: its domain
    folders: dict[str, str]  # by query: what its files are relative to
    doors: list[tuple[str, int]]
    accounts: dict[str, Account]  # by query: its results
    numbers: dict[str, int]  # by query: the last of its results
    life: int  # no domain has had a higher one
    recoveries: int


@dataclass(frozen=True)
class Domains:
    """How each domain stood, and what its hosts kept then."""

    stood: dict[str, Stood] = field(default_factory=dict)
    kept: dict[str, list[Frozen]] = field(default_factory=dict)

    def sections(self) -> dict[str, bytes | memoryview]:
        """For a file."""
        found: dict[str, bytes | memoryview] = {}
        for name, stood in self.stood.items():
            found[f"domain-{name}"] = pickled((stood, len(self.kept[name])))
            for place, frozen in enumerate(self.kept[name]):
                found.update(frozen.sections(f"domain-{name}/host-{place}"))
        return found

    @classmethod
    def read(cls, sections: Mapping[str, bytearray], names: Sequence[str]) -> Domains:
        """These domains from a file."""
        found = cls()
        for name in names:
            found.stood[name], count = unpickled(bytes(sections[f"domain-{name}"]))
            found.kept[name] = [Frozen.read(sections, f"domain-{name}/host-{place}") for place in range(count)]
        return found

    @classmethod
    def positions(cls, sections: Mapping[str, bytearray]) -> dict[str, list[int]]:
        """By gateway: up to where each domain of a file has its log."""
        names = [name for name in sections if name.startswith("domain-") and "/" not in name]
        stood = [unpickled(bytes(sections[name]))[0].positions for name in names]
        return {gateway: [each.get(gateway, 0) for each in stood] for each in stood for gateway in each}
