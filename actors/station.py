"""An operator as an actor: a station's goods behind messages, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import ray

from dsms.batch import Batch
from dsms.goods import Goods, Outcome


class Station:
    """Holds one station's goods in its own process; the plain class is tested without a cluster."""

    def __init__(self, goods: Goods) -> None:
        self._goods = copy.deepcopy(goods)  # what Ray has brought here cannot be written to

    def put(self, port: int, batch: Batch, since: float) -> None:
        self._goods.put(port, batch, since)

    def work(self, port: int, startup: float, most: float) -> tuple[Outcome, Batch]:
        return self._goods.work(port, startup, most)

    def waiting_since(self) -> float:
        return self._goods.waiting_since()


# No CPU of Ray's: the one simulated CPU is what the scheduler grants. Two returns, so that a batch goes from actor to
# actor while only its outcome comes back to the scheduler.
StationActor: Any = ray.remote(num_cpus=0)(Station)
