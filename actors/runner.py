"""The runner that carries grants to actors: the engine of `dsms` decides, stations work in processes of their own."""

from __future__ import annotations

import os
from typing import Any

import ray

from actors.station import StationActor
from dsms.batch import Batch
from dsms.clock import Clock
from dsms.goods import Goods, Outcome
from dsms.ledger import Ledger, Queue
from dsms.plan import Plan
from dsms.runners import BatchRunner

# A Ray of our own for one run: small, silent, and gone with it.
LOCAL: dict[str, Any] = {
    "address": "local",
    "include_dashboard": False,
    "log_to_driver": False,
    "logging_level": "error",
    "object_store_memory": 256 * 1024**2,
}


class ActorRunner(BatchRunner):
    """One actor per operator. One grant is in flight at a time: the single simulated CPU.

    The scheduler is the only one that calls the actors, and Ray keeps the order of one caller's calls: a batch put
    before a grant is there when the grant is carried out, without waiting for an answer.
    """

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        self._started_ray = not ray.is_initialized()
        if self._started_ray:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(**LOCAL)
        self._actors: list[Any] = []
        super().__init__(plan, ledger, clock)

    def host(self, goods: Goods) -> Any:
        actor = StationActor.remote(goods)
        self._actors.append(actor)
        return actor

    def deliver(self, queue: Queue, batch: Any, since: float) -> None:
        self._hosts[queue.station.index].put.remote(queue.port, batch, since)

    def outcome(self, queue: Queue, startup: float, most: float) -> tuple[Outcome, Any]:
        work = self._hosts[queue.station.index].work.options(num_returns=2)
        outcome, made = work.remote(queue.port, startup, most)
        return ray.get(outcome), made

    def fetched(self, batch: Any) -> Batch:
        here: Batch = ray.get(batch)
        return here

    def waiting_since(self) -> float:
        return float(min(ray.get([actor.waiting_since.remote() for actor in self._actors])))

    def close(self) -> None:
        """End the actors, and Ray too if it was started for this run."""
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        if self._started_ray:
            ray.shutdown()
            self._started_ray = False
