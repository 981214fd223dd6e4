"""Calls actors, by socket or through Ray, and plain objects without waiting: every answer is a future."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, cast

import ray

from actors.rpc.messages import BATCHES, SHARED_OBJECT_MIN_BYTES, Arguments, R, is_remote, send
from actors.transport.handle import SocketMethod
from dsms.data.batch import Batch

BatchesByKey = Mapping[str, Batch]


class BatchHost(Protocol):
    """A host, as a gateway sees it."""

    def put(self, batches: BatchesByKey) -> None:
        """Take batches under keys that grants will name."""

    def ping(self) -> bool:
        """Answer True."""


class Calls:
    """Calls actors through Ray, and plain objects in one thread, so that those calls keep their order too."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "calls")  # starts with the first call of a plain object

    def __call__(
        self, method: Callable[[*Arguments], R], *arguments: *Arguments, group: str | None = None
    ) -> Future[R]:
        """Call a method, through Ray in a concurrency group of its actor."""
        if isinstance(method, SocketMethod):
            answer: Future[R] = method.call(*arguments)
            return answer
        if not is_remote(method):
            return self._thread.submit(method, *arguments)
        call: Any = send(method, *arguments, group=group)
        future: Future[R] = call.future()
        return future

    def put(self, batches: Iterable[tuple[tuple[BatchHost, ...], str, Batch]]) -> list[Future[None]]:
        """Put batches under their keys into all hosts of each; a batch for several hosts goes once into the store."""
        by_hosts: dict[tuple[BatchHost, ...], dict[str, Batch]] = {}
        for hosts, key, batch in batches:
            by_hosts.setdefault(hosts, {})[key] = batch
        calls: list[Future[None]] = []
        for hosts, part in by_hosts.items():
            shared = part if len(hosts) < 2 else _share_through_store(part, hosts[0])
            calls += [self(host.put, shared, group=BATCHES) for host in hosts]
        return calls

    def close(self) -> None:
        """Take no more calls."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _share_through_store(batches: BatchesByKey, host: BatchHost) -> BatchesByKey:
    """A reference to large batches: Ray replaces it by the batches in the called actor."""
    if not is_remote(host.put) or sum(batch.memory() for batch in batches.values()) < SHARED_OBJECT_MIN_BYTES:
        return batches
    return cast(BatchesByKey, ray.put(batches))
