"""Calls to actors, or to plain objects in their place: asked for now, answered some time."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import ray

from actors.messages import GOODS, LARGE, is_remote, send
from dsms.batch import Batch

Goods = dict[str, Batch]


class Calls:
    """Carries calls: to an actor by Ray, to a plain object by one thread, so that these too come in order."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "calls")  # begins with the first call of a plain object

    def __call__(self, method: Any, *arguments: Any, group: str | None = None) -> Future[Any]:
        """Call a method, in a concurrency group of its actor."""
        if not is_remote(method):
            return self._thread.submit(method, *arguments)
        future: Future[Any] = send(method, *arguments, group=group).future()
        return future

    def put(self, goods: Iterable[tuple[tuple[Any, ...], str, Batch]]) -> list[Future[Any]]:
        """Put batches under their keys into all hosts of each; what several hosts read is sent into the store once."""
        together: dict[tuple[Any, ...], Goods] = {}
        for hosts, key, batch in goods:
            together.setdefault(hosts, {})[key] = batch
        calls = []
        for hosts, part in together.items():
            shared = part if len(hosts) < 2 else _shared(part, hosts[0])
            calls += [self(host.put, shared, group=GOODS) for host in hosts]
        return calls

    def close(self) -> None:
        """Take no more calls."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _shared(goods: Goods, host: Any) -> Any:
    if not is_remote(host.put) or sum(batch.memory() for batch in goods.values()) < LARGE:
        return goods
    return ray.put(goods)
