"""Where results wait until the checkpoint that covers them is committed: then each is given out, once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.messages import Result
from actors.outlet import Course, Outlet, Told
from actors.redone import Row, counted, taken_back, without
from dsms.batch import Batch
from dsms.errors import DsmsError, PlanError
from dsms.live.in_order import InOrder

log = logging.getLogger("dsms")
BATCHES, BYTES = 4096, 64 * 1024 * 1024  # that are kept for subscribers who have to connect again
Numbered = tuple[int, Batch]


@dataclass
class Account:
    """What a checkpoint says of one query's results."""

    since: int  # they are numbered after this
    given: int  # the number of the last that was given out before it, counted from there
    results: list[Numbered] = field(default_factory=list)  # those that are given out with it
    at: int = 0  # bytes of its file before it
    rows: int = 0
    surplus: Counter[Row] = field(default_factory=Counter)  # rows that were given out before and are made again

    @property
    def count(self) -> int:
        """How many are given out once it is committed."""
        return self.given + len(self.results)

    def given_out(self) -> list[Numbered]:
        """Its results as they are given out."""
        left = Counter(self.surplus)
        return [(place, without(batch, left)) for place, batch in self.results]


@dataclass
class Held:
    """What has come of one query's results and is not given out yet."""

    order: InOrder
    waiting: list[Numbered] = field(default_factory=list)
    surplus: Counter[Row] = field(default_factory=Counter)  # rows that are left out, as they were given out before


class DurableOutlet(Outlet):
    """Results come as at the other; they are kept until `release` says that they will never be made again."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, Held] = {}
        self._over: set[int] = set()  # lives of domains that have been rebuilt since

    def open(self, queries: Mapping[str, Told], folder: str, at: Mapping[str, int] | None = None) -> None:
        """Results of these queries will come, besides those of others."""
        super().open(queries, folder, at)
        for name in queries:
            course = self._courses[name]
            course.order = InOrder(course.order.since, BATCHES, BYTES)
            self._held[name] = Held(InOrder(course.order.since))

    def take(self, results: Iterable[Result], life: int = 0) -> None:
        """Results of queries; those that a domain made in an earlier life will be made again."""
        for query, number, batch in results if life not in self._over else ():
            if (held := self._held.get(query)) is not None:
                held.waiting += held.order.take(number, batch)

    def lacks(self, numbers: Mapping[str, int]) -> list[str]:
        """The queries whose results up to these numbers have not all come."""
        return [name for name, held in self._held.items() if numbers.get(name, 0) > held.order.count]

    def collect(self, numbers: Mapping[str, int]) -> dict[str, Account]:
        """What a checkpoint has to know, so that results up to these numbers can be given out whatever happens."""
        found: dict[str, Account] = {}
        self._write_on()
        for name, held in self._held.items():
            course, upto = self._courses[name], held.order.since + numbers.get(name, 0)
            waiting = [(place, batch) for place, batch in held.waiting if place <= upto]
            at = course.sink.position() if course.sink is not None else course.at
            order, surplus = course.order, Counter(held.surplus)
            found[name] = Account(order.since, order.count, waiting, at, course.rows, surplus)
        return found

    def release(self, numbers: Mapping[str, int]) -> None:
        """The checkpoint with results up to these numbers is committed: out with them."""
        while self._gone:
            self._forget(*self._gone.pop())
        ready: list[Result] = []
        for name, held in self._held.items():
            since = held.order.since
            upto = since + numbers.get(name, 0)
            due = [(place, batch) for place, batch in held.waiting if place <= upto]
            ready += [(name, place - since, without(batch, held.surplus)) for place, batch in due]
            held.waiting = [(place, batch) for place, batch in held.waiting if place > upto]
        self._give(ready)

    def rewind(self, numbers: Mapping[str, int], over: Iterable[int]) -> None:
        """Results of these queries after these numbers come again: the domains that made them are rebuilt."""
        self._over.update(over)
        for name, number in numbers.items():
            if (held := self._held.get(name)) is not None:
                upto = held.order.since + number
                held.waiting = [(place, batch) for place, batch in held.waiting if place <= upto]
                held.order = InOrder(held.order.since, given=number)
                self._redo(name, number, self._courses[name].order.after(upto))

    def restore(
        self,
        accounts: Mapping[str, Account],
        past: Iterable[Mapping[str, Account]],
        told: Mapping[str, tuple[Told, str]],
        beyond: Sequence[Mapping[str, Account]] = (),
    ) -> None:
        """Begin where a checkpoint was about to be released; `past`: what was released before it, the oldest first.

        `beyond`: what was released after it, though nothing else is left of that.
        """
        later = {
            name: [each[name] for each in beyond if name in each and each[name].since == account.since]
            for name, account in accounts.items()
        }
        for name, account in accounts.items():
            newest = (later[name] or [account])[-1]
            self._ended[name] = account.since
            if name in told:
                self._begin(name, *told[name], newest)
            else:
                self._ended[name] += newest.count
        for name, (known, folder) in told.items():
            if name not in accounts:
                self.open({name: known}, folder)
        for each in (*past, *beyond):
            self._recall({name: known for name, known in each.items() if name in told and name in accounts}, accounts)
        for name in told.keys() & later.keys():
            if again := later[name]:
                self.release({name: again[-1].count})  # as it was before: its file may lack them
                self._redo(name, accounts[name].count, [one for each in again for one in each.given_out()])

    def _recall(self, past: Mapping[str, Account], now: Mapping[str, Account]) -> None:
        """Keep what was given out with a checkpoint, for subscribers that have to connect again."""
        for name, account in past.items():
            order = self._courses[name].order
            if account.since == now[name].since:
                for place, batch in account.given_out():
                    if place <= order.latest:
                        order.recall(place, batch)

    def _begin(self, name: str, told: Told, folder: str, account: Account) -> None:
        """Go on with one query's results."""
        self.open({name: told}, folder, {name: account.at})
        course: Course = self._courses[name]
        course.order = InOrder(account.since, BATCHES, BYTES, account.given)
        course.rows = account.rows
        order = InOrder(account.since, given=account.count)
        self._held[name] = Held(order, list(account.results), Counter(account.surplus))

    def _redo(self, name: str, number: int, given: Sequence[Numbered]) -> None:
        """Results after this number are made again, though these of them were given out: that is made good.

        Turns are cut otherwise the second time, so it cannot be told by numbers. Where rows may be taken back, these
        are; where they only come, those that come again are left out. What is made goes on with new numbers.
        """
        if not given:
            return
        course, held, batches = self._courses[name], self._held[name], [batch for _, batch in given]
        if course.appends:
            held.surplus += counted(batches)
            batches = []
        last = given[-1][0]
        back = taken_back(batches)
        held.waiting += [(last + place, batch) for place, batch in enumerate(back, 1)]
        course.order.since = last + len(back) - number
        held.order = InOrder(course.order.since, given=number)
        log.warning("%d results of %r are made again: what was given out of them is made good", len(given), name)

    def _write(self, query: str, course: Course, batch: Batch) -> None:
        """Into the file; what its disk does not take waits, and the next checkpoint with it: the last one has it."""
        if course.target is not None and (course.error is None or course.unwritten):
            course.unwritten.append(batch)
            self._catch_up(query, course)

    def _write_on(self) -> None:
        """Write what waits for files; DsmsError while a disk has no room for it."""
        for query, course in self._courses.items():
            if course.unwritten:
                self._catch_up(query, course)
            if course.unwritten:
                raise DsmsError(f"the results of {query!r} cannot be written: {course.error}; it is tried again")

    def _catch_up(self, query: str, course: Course) -> None:
        """Write what waits for a file, from where that was whole: of what could not be written a part may be there."""
        course.error = None
        try:
            while course.unwritten:
                course.at = self._put(query, course, course.unwritten[0]).size
                del course.unwritten[0]
        except (OSError, PlanError) as error:
            course.error = str(error)
            if course.sink is not None:
                course.sink.discard()
                course.sink = None
        except Exception as error:  # of the rows themselves: these would fail again
            course.error = str(error)
            course.unwritten.clear()
            log.error("the results of %r are no longer written: %s", query, error)

    def shut(self, query: str, begun: bool = True) -> None:
        """No more results of a query will come."""
        super().shut(query, begun)
        self._held.pop(query, None)

    def status(self) -> dict[str, Any]:
        """What came of each query so far; `held` counts what waits for a checkpoint too."""
        told = super().status()
        for one in told["queries"]:
            held = self._held[one["name"]]
            one["held"] = held.order.held + len(held.waiting)
        return told
