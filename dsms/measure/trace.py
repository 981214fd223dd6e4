"""TurnTrace: writes one JSON line per turn; the same seed writes the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.plan.segment import Segment


class TurnTrace(Observer):
    """Writes `{"t", "stations", "consumed", "produced", "cost"}` for every turn."""

    trusted = True  # a trace that cannot be written ends the run

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        inside = {id(station) for station in segment.stations}
        first, cost = steps[0].queue.station, 0.0
        consumed: float = 0  # an int unless tuples are fractional
        produced: float = 0
        names: dict[str, None] = {}  # in order of first run
        for queue, taken, made, spent, *_ in steps:
            station = queue.station
            names[station.name] = None
            cost += spent
            if station is first:
                consumed += taken
            if station.sink or any(id(consumer) not in inside for consumer in station.consumers):
                produced += made
        line = {
            "t": start,
            "stations": list(names),
            "consumed": consumed,
            "produced": produced,
            "cost": cost,
        }
        self._file.write(json.dumps(line) + "\n")
