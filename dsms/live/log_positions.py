"""Keeps the offset up to which a domain has applied each gateway's log, and applies log batches item by item."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from dsms.errors import DsmsError
from dsms.live.admission import AdmissionStep
from dsms.live.log_batch import LogBatch, LogItem

if TYPE_CHECKING:
    from dsms.engine.engine import Engine

log = logging.getLogger("dsms")


class LogPositions:
    """Only the domain's thread calls it; a snapshot has all items before it and none after."""

    def __init__(self, domain: str, get_engine: Callable[[], Engine]) -> None:
        self._domain, self._get_engine = domain, get_engine
        self._applied: dict[str, int] = {}  # by gateway

    def get(self, gateway: str) -> int:
        """The last offset of this gateway's log that was applied."""
        return self._applied.get(gateway, 0)

    def snapshot(self) -> dict[str, int]:
        """All offsets, by gateway."""
        return dict(self._applied)

    def restore(self, applied: Mapping[str, int]) -> None:
        """Continue from these offsets."""
        self._applied = dict(applied)

    def make_steps(self, batch: LogBatch, refused: dict[int, str]) -> list[AdmissionStep]:
        """The steps that apply a batch; each fails unless the one before it was the last that was applied.

        They write into `refused`, by offset, why rows could not be admitted.
        """
        steps, after = list[AdmissionStep](), batch.after_offset
        for item in batch.items:
            rows = None if isinstance(item.content, int) else item.content
            steps.append(AdmissionStep(partial(self._apply, batch.gateway, after, item, refused), item.stream, rows))
            after = item.offset
        return [*steps, AdmissionStep(partial(self._finish, batch, after))]

    def _apply(self, gateway: str, after: int, item: LogItem, refused: dict[int, str]) -> None:
        self._advance(gateway, after, item.offset)
        engine = self._get_engine()
        try:
            if isinstance(item.content, int):
                engine.advance(item.stream, item.content)
            else:
                engine.push(item.stream, item.content)
        except DsmsError as error:  # go on: other rows of the batch must not be applied twice
            log.error("domain %s cannot admit rows of stream %r: %s", self._domain, item.stream, error)
            refused[item.offset] = str(error)

    def _finish(self, batch: LogBatch, after: int) -> None:
        self._advance(batch.gateway, after, batch.last_offset)
        if batch.ends:
            self._get_engine().end()

    def _advance(self, gateway: str, after: int, upto: int) -> None:
        if (applied := self.get(gateway)) != after:
            raise DsmsError(
                f"domain {self._domain!r} has applied the log of {gateway!r} up to {applied}: "
                f"a batch after {after} does not follow"
            )
        self._applied[gateway] = upto
