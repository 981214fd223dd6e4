"""The abstract operator: simulates work by a declared cost and selectivity, as in the scheduling papers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.outcomes import Counts, Identities, child_identities, draw_outputs, hash_name, spread_outputs_evenly
from dsms.operators.base import Operator


@dataclass(eq=False)
class AbstractOperator(Operator):
    """Passes on some of its input: at random, evenly spread, or as a fraction of each tuple."""

    name: str = ""  # part of every random draw, so that operators decide independently
    model: str = "random"  # or "spread", or "fractional"
    seed: int = 0
    seen: int = 0  # tuples processed so far: the "spread" model continues from here

    def fresh(self, settings: Settings) -> AbstractOperator:
        return replace(self, model=settings.selectivity_model, seed=settings.seed, seen=0)

    def outputs(self, identity: Identities) -> Counts:
        """Return the number of output tuples for each input tuple, in arrival order."""
        if self.model == "spread":
            counts = spread_outputs_evenly(self.seen, len(identity), self.selectivity)
        else:
            counts = draw_outputs(identity, self.selectivity, hash_name(self.name), self.seed)
        self.seen += len(identity)
        return counts

    def child_identities(
        self, identity: Identities, counts: Counts, ports: Counts | int = 0
    ) -> tuple[Counts, Identities]:
        """Return the parent index and the identity of each output tuple."""
        parent = np.repeat(np.arange(len(identity)), counts)
        copy = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
        children = identity[parent]
        # Copies of one tuple, or one tuple that enters by two ports, must draw independently further down.
        salt = copy * 65536 + (ports[parent] if isinstance(ports, np.ndarray) else ports)
        is_copy = salt > 0
        children[is_copy] = child_identities(children[is_copy], salt[is_copy])
        return parent, children

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if self.model == "fractional":
            return replace(batch, size=batch.size * self.selectivity)
        identity = batch.each("identity").astype(np.uint64)
        parent, children = self.child_identities(identity, self.outputs(identity), port)
        passed = replace(batch.pick(parent), identity=children)
        return passed if self.size is None else replace(passed, size=self.size)
