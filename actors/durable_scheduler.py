"""A domain as an actor that can be rebuilt: from what it said of itself, and what its hosts kept, at a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, NamedTuple

from actors.frozen import Frozen, thawed
from actors.messages import ARRIVALS, CONTROL, actor, pickled, unpickled
from actors.scheduler import Scheduler
from dsms.goods import Goods
from dsms.live.delivery import Delivery
from dsms.live.domain import Domain
from dsms.live.durable_domain import DurableDomain
from dsms.live.roster import Roster
from dsms.live.snapshot import Snapshot


class Stood(NamedTuple):
    """How a domain stood between two turns; what its hosts kept then is asked of them."""

    snapshot: bytes
    results: dict[str, int]  # by query: the number of the last
    positions: dict[str, int]  # by gateway: up to where its log is taken in
    letters: int  # bytes of rows put aside
    pause: float  # seconds that turns had to wait


class DurableScheduler(Scheduler):
    """A scheduler that takes deliveries in, tells how it stands, and goes on from where another one stood."""

    kind: ClassVar[type[Domain]] = DurableDomain

    def reopen(self, hosts: Sequence[Any], outlet: Any, epoch: float, life: int) -> None:
        """Open for `restore`: it is made without queries."""
        self.fresh = False
        self.open(hosts, outlet, epoch, life)

    def position(self, gateway: str) -> int:
        return self._durable.position(gateway)

    def take_in(self, delivery: Delivery) -> float:
        return self._durable.take_in(delivery)

    def decline(self) -> None:
        self._durable.decline()

    def snapshot(self) -> Stood:
        """How it stands; its hosts keep their goods as they are at that instant."""
        letters = 0

        def keep() -> None:
            nonlocal letters
            self._runner.keep()
            letters = self._letters.size

        found, pause = self._durable.snapshot(keep)
        return Stood(pickled(found), dict(found.inventory.results), dict(found.positions), letters, pause)

    def restore(
        self,
        stood: Stood,
        kept: Sequence[Frozen],
        roster: Roster | None = None,
        staying: Collection[str] = (),
        hung: str | None = None,
    ) -> None:
        """Go on from there, opened without queries; with another roster, these stations of it go on as they are."""
        found: Snapshot = unpickled(stood.snapshot)
        goods: dict[str, Goods] = {name: one for each in kept for name, one in thawed(each).items()}
        if roster is not None:
            found = found.fitted(roster, staying)
            goods = {name: one for name, one in goods.items() if name in staying}
        self._letters.go_on(stood.letters)
        self._durable.restore(found, goods, hung)

    @property
    def _durable(self) -> DurableDomain:
        domain: Any = self._at_work
        assert isinstance(domain, DurableDomain)
        return domain


DurableSchedulerActor = actor(DurableScheduler, **{ARRIVALS: 4, CONTROL: 4})
