"""Which stations share an actor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dsms.plan import Station


def packed(stations: Sequence[Station], most: int) -> list[list[str]]:
    """The names of stations by actor: one in each up to `most` actors, beyond that evenly, queries kept together."""
    ordered = sorted(stations, key=lambda station: (station.query.index, station.index))
    actors = min(most, len(ordered))
    bounds = [place * len(ordered) // actors for place in range(actors + 1)]
    return [[s.name for s in ordered[a:b]] for a, b in pairwise(bounds)]
