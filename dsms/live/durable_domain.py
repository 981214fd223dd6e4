"""A domain that can be gone on with elsewhere: it knows how much of every gateway's log it has taken in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple

from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.goods import Goods
from dsms.live.delivery import Delivery
from dsms.live.domain import Domain
from dsms.live.handover import standing
from dsms.live.roster import Roster
from dsms.live.snapshot import Snapshot
from dsms.policies.registry import policy_named
from dsms.selection.gatherer import text_of

log = logging.getLogger("dsms")


class Taken(NamedTuple):
    """A snapshot, and how long turns had to wait for it."""

    snapshot: Snapshot
    pause: float  # seconds


class DurableDomain(Domain):
    """Rows come by deliveries; a snapshot is consistent with all of those before it, and none after."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._positions: dict[str, int] = {}

    def position(self, gateway: str) -> int:
        """Up to where it has taken in this gateway's log."""
        return self.ask(lambda: self._positions.get(gateway, 0)).result()

    def take_in(self, delivery: Delivery) -> float:
        """Admit all of it at once when there is room, or nothing if it does not follow what was taken in.

        Answers how many are held.
        """
        rows = [(stream, what) for stream, what in delivery.contents if not isinstance(what, int)]

        def admit() -> float:
            self._check()
            stands = self._positions.get(delivery.gateway, 0)
            if stands != delivery.after:
                raise DsmsError(
                    f"domain {self.name!r} has the log of {delivery.gateway!r} up to {stands}: "
                    f"what follows {delivery.after} does not fit"
                )
            for stream, what in delivery.contents:
                try:
                    self.engine.advance(stream, what) if isinstance(what, int) else self.engine.push(stream, what)
                except DsmsError as error:  # it is acknowledged, and the others of this delivery must not come twice
                    log.error("domain %s cannot take in what has come by %r: %s", self.name, stream, error)
            if delivery.ends:
                self.engine.end()
            self._positions[delivery.gateway] = delivery.upto
            return self.engine.ledger.held

        def come() -> Future[float]:
            self._check()
            return self._entrance.together(rows, admit)

        return self.ask(come).result().result()

    def decline(self) -> None:
        """Send deliveries back that there is no room for yet; they will come again."""
        self.ask(lambda: self._entrance.refuse(DsmsError(f"domain {self.name!r} is full"))).result()

    def snapshot(self, keep: Callable[[], object]) -> Taken:
        """How it stands between two turns; `keep` has the goods kept as they are then."""

        def look() -> Taken:
            self._check()
            begun = stopwatch()
            keep()
            engine = self.engine
            taken = Snapshot(
                self.roster,
                standing(engine),
                text_of(engine.chosen),
                engine.qos,
                dict(self._positions),
                self.state == "paused",
                engine.chosen.learnt(),
                engine.statistics.learnt(),
                self.watch.counted(engine),
                self._quarantine.resting(engine),
            )
            return Taken(taken, stopwatch() - begun)

        return self.ask(look).result()

    def restore(self, snapshot: Snapshot, goods: Mapping[str, Goods], hung: str | None = None) -> None:
        """Go on from a snapshot; only one who has no queries yet can.

        The queries of a station that has hung rest: it would get the same rows again.
        """
        inventory, policy = replace(snapshot.inventory, goods=goods), policy_named(snapshot.policy)

        def go_on(roster: Roster) -> None:
            self._become(roster, inventory)
            engine = self.engine
            engine.statistics.recall(snapshot.statistics)
            engine.require(snapshot.qos)
            engine.swap(policy)
            policy.recall(snapshot.learnt)
            engine.rerank()
            self.watch.recall(snapshot.counted, engine)
            self._quarantine.recall(engine, snapshot.resting)
            if hung is not None:
                self._quarantine.bar(engine, hung, f"operator {hung!r} did not come back, so its process was ended")
            self._positions = dict(snapshot.positions)
            if snapshot.paused:
                self._turn_to("running", "paused")

        with self._changing:
            after = self.roster.adopting(snapshot.roster)
            self.ask(lambda: go_on(after)).result()
