"""The actors that a gateway calls or is called by, as protocols: schedulers, the result hub, and itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from actors.rpc.messages import Result
from dsms.data.batch import Batch
from dsms.live.log_batch import LogBatch

NumberedBatch = tuple[int, Batch]


class SchedulerHandle(Protocol):
    """A domain's scheduler, as a gateway sees it."""

    def ping(self) -> bool:
        """Answer True."""

    def position(self, gateway: str) -> int:
        """The offset up to which it has applied a gateway's log."""

    def apply_log_batch(self, log_batch: LogBatch) -> dict[int, str]:
        """Admit a part of a gateway's log; returns, when all is admitted, why entries were refused, by offset."""

    def reject_waiting(self) -> None:
        """Send back a part of a log that waits for admission."""


class ResultReceiver(Protocol):
    """A gateway, as the result hub sees it."""

    def results(self, results: Sequence[Result]) -> None:
        """Take results for subscribers."""


class ResultSource(Protocol):
    """The result hub, as a gateway sees it."""

    def subscribe(
        self, query: str, gateway: ResultReceiver, name: str, after: int | None = None
    ) -> tuple[int, list[NumberedBatch]]:
        """Send a query's results to a gateway; returns the last number, and kept results after `after`."""

    def unsubscribe(self, query: str, name: str) -> None:
        """Send no more results of a query to a gateway."""

    def status(self) -> object:
        """Open the connection to the actor, before the first result; the answer is ignored."""
