"""The abstract operator: a declared cost and selectivity instead of work, as the papers have it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsms.batch import Batch
from dsms.fates import Counts, Identities, descendants, name_hash, random_outputs, spread_outputs
from dsms.operators.base import Operator
from dsms.settings import Settings


@dataclass(eq=False)
class Abstract(Operator):
    """Passes some of its input on: by chance, evenly spread, or a fraction of each tuple."""

    name: str = ""  # part of every fate, so that operators decide independently
    model: str = "random"  # or "spread", or "fractional"
    seed: int = 0
    seen: int = 0  # tuples so far: a spread goes on where it stopped

    def fresh(self, settings: Settings) -> Abstract:
        return replace(self, model=settings.fate, seed=settings.seed, seen=0)

    def outputs(self, identity: Identities) -> Counts:
        """How many tuples each of these gives, in the order they came."""
        if self.model == "spread":
            counts = spread_outputs(self.seen, len(identity), self.selectivity)
        else:
            counts = random_outputs(identity, self.selectivity, name_hash(self.name), self.seed)
        self.seen += len(identity)
        return counts

    def offspring(self, identity: Identities, counts: Counts, ports: Counts | int = 0) -> tuple[Counts, Identities]:
        """Which input each output stems from, and the outputs' identities."""
        parent = np.repeat(np.arange(len(identity)), counts)
        copy = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
        born = identity[parent]
        # Copies of one tuple, or one tuple come in by two ports, must not share their fates further down.
        salt = copy * 65536 + (ports[parent] if isinstance(ports, np.ndarray) else ports)
        other = salt > 0
        born[other] = descendants(born[other], salt[other])
        return parent, born

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if self.model == "fractional":
            return replace(batch, size=batch.size * self.selectivity)
        identity = batch.each("identity").astype(np.uint64)
        parent, born = self.offspring(identity, self.outputs(identity), port)
        passed = replace(batch.pick(parent), identity=born)
        return passed if self.size is None else replace(passed, size=self.size)
