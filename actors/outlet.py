"""Where all results come together: in order, into the plan's files, and on to the gateways whose clients want them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from actors.calls import Calls
from actors.heap import keep_small
from actors.messages import Result
from dsms.batch import Batch
from dsms.errors import DsmsError, PlanError, existing
from dsms.files import Sink, sink_from
from dsms.live.in_order import InOrder
from dsms.outlets import STDOUT, schema_like
from dsms.schema import Schema, conformed

log = logging.getLogger("dsms")

# How it is made an actor: `ray.remote(**ACTOR)(Outlet)`; one thread, so that nothing here is locked.
ACTOR: dict[str, Any] = {"num_cpus": 0}

Told = tuple[Any, Schema | None, bool]  # a query's sink as in its plan, its columns if known, whether rows only come


@dataclass
class Course:
    """What has become of one query's results."""

    target: Any  # None: they are for subscribers only
    schema: Schema | None
    appends: bool
    folder: Path
    order: InOrder
    sink: Sink | None = None
    rows: int = 0
    error: str | None = None  # why its file is no longer written
    at: int = 0  # bytes of its file that are there already
    unwritten: list[Batch] = field(default_factory=list)  # where it is durable: what the file's disk did not take yet


class Outlet:
    """Takes each query's numbered batches from wherever they are made, and gives them out 1, 2, 3 …"""

    def __init__(self) -> None:
        keep_small()
        self._courses: dict[str, Course] = {}
        self._gateways: defaultdict[str, dict[str, Any]] = defaultdict(dict)  # by query: those that want it, by name
        self._ended: dict[str, int] = {}  # queries that were shut: should they come again, their numbers go on
        self._gone: list[tuple[str, Any]] = []  # gateways that did not answer; another thread finds out
        self._calls = Calls()

    def open(self, queries: Mapping[str, Told], folder: str, at: Mapping[str, int] | None = None) -> None:
        """Results of these queries will come, besides those of others; files are relative to the folder.

        `at`: of files that are gone on with, how many bytes are there already.
        """
        made: dict[str, Course] = {}
        try:
            for name, (target, schema, appends) in queries.items():
                if name in self._courses:
                    raise DsmsError(f"query {name!r} has an outlet already")
                target = None if target == STDOUT else target
                order = InOrder(self._ended.get(name, 0))
                made[name] = course = Course(target, schema, appends, Path(folder), order)
                course.at = (at or {}).get(name, 0)
                if target is not None and schema is not None:
                    course.sink = self._sink(name, course, schema)
        except DsmsError:
            for course in made.values():
                if course.sink is not None:
                    course.sink.abandon()
            raise
        self._courses.update(made)

    def take(self, results: Iterable[Result]) -> None:
        """Results of queries; those of one that was shut meanwhile are not wanted any more."""
        while self._gone:
            self._forget(*self._gone.pop())
        self._give(results)

    def subscribe(self, query: str, gateway: Any, name: str, after: int | None = None) -> tuple[int, list[Any]]:
        """Send a query's results to a gateway from now on.

        Answers the number of the last one so far, and those after `after` that are still kept, each with its number.
        """
        course = self._courses.get(query)
        if course is None:
            raise DsmsError(f"no query {query!r}{existing(query, self._courses)}")
        self._calls(gateway.results, [], group="results")  # the first call takes long: better before there are any
        past = course.order.latest, course.order.after(after)
        self._gateways[query][name] = gateway  # last: whoever sees it there may count on the next result
        return past

    def unsubscribe(self, query: str, name: str) -> None:
        """No more of them to this gateway."""
        self._gateways[query].pop(name, None)

    def lacks(self, numbers: Mapping[str, int]) -> list[str]:
        """The queries whose results up to these numbers have not all come."""
        behind = {name: numbers.get(name, 0) - course.order.count for name, course in self._courses.items()}
        return [name for name, missing in behind.items() if missing > 0]

    def shut(self, query: str, begun: bool = True) -> None:
        """No more results of a query will come: its file is finished, or as it was before if it has not begun.

        Subscribers stay, should it come again.
        """
        course = self._courses.pop(query, None)
        if course is not None:
            self._ended[query] = course.order.latest
            if course.sink is not None:
                (course.sink.close if begun else course.sink.abandon)()

    def status(self) -> dict[str, Any]:
        """What came of each query so far."""
        return {
            "queries": [
                {
                    "name": name,
                    "results": course.order.latest,
                    "rows": course.rows,
                    "held": course.order.held,
                    "gateways": len(self._gateways[name]),
                    "error": course.error,
                }
                for name, course in self._courses.items()
            ]
        }

    def there(self) -> None:
        """It is: whoever only wants to know that need not be told the rest."""

    def close(self) -> None:
        """Finish all files."""
        for query in list(self._courses):
            self.shut(query)
        self._calls.close()

    def _give(self, results: Iterable[Result]) -> None:
        """Put results out: into files, and to the gateways that want them."""
        wanted: dict[str, tuple[Any, list[Result]]] = {}  # by gateway
        for query, number, batch in results:
            if (course := self._courses.get(query)) is None:
                continue
            for place, found in course.order.take(number, batch):
                course.rows += found.rows
                self._write(query, course, found)
                for name, gateway in self._gateways[query].items():
                    wanted.setdefault(name, (gateway, []))[1].append((query, place, found))
        for name, (gateway, part) in wanted.items():
            call = self._calls(gateway.results, part, group="results")
            call.add_done_callback(partial(self._sent, name, gateway))

    def _write(self, query: str, course: Course, batch: Batch) -> None:
        """Into the file; if that fails the results still go to subscribers, and the status says why."""
        if course.target is None or course.error is not None:
            return
        try:
            self._put(query, course, batch)
        except Exception as error:  # of a format's library too: subscribers still get them
            course.error = str(error)
            log.error("the results of %r are no longer written: %s", query, error)

    def _put(self, query: str, course: Course, batch: Batch) -> Sink:
        """Into the file, which is opened if it is not."""
        if course.schema is None:
            course.schema = schema_like(batch)
        if course.sink is None:
            course.sink = self._sink(query, course, course.schema)
        course.sink.write(conformed(batch, course.schema, query))
        return course.sink

    def _sink(self, query: str, course: Course, schema: Schema) -> Sink:
        try:
            return sink_from(course.target, schema, course.appends, course.folder, live=True, at=course.at)
        except PlanError as error:
            raise error.within(f"queries.{query}.sink") from None

    def _sent(self, name: str, gateway: Any, done: Future[Any]) -> None:
        if not done.cancelled() and done.exception() is not None:
            self._gone.append((name, gateway))

    def _forget(self, name: str, gone: Any) -> None:
        """A gateway is gone; another may have come in its place."""
        for gateways in self._gateways.values():
            if gateways.get(name) == gone:
                del gateways[name]
