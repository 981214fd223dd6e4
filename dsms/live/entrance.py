"""How rows get into a domain: at once while it has room, else when it has some again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from dsms.live.gate import Gate, Rows
from dsms.live.occupancy import Occupancy
from dsms.live.setup import Setup
from dsms.plan import Plan

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.live.watch import Watch

T = TypeVar("T")


class Entrance:
    """A gate before an engine, which may be another one later; belongs to the thread of a domain."""

    def __init__(self, setup: Setup, at_work: Callable[[], tuple[Watch, Engine]]) -> None:
        self._at_work = at_work
        self._occupancy = Occupancy(setup)
        self._gate = Gate(self._occupancy.limits, self._admit)
        self._readers: dict[str, int] = {}  # of each stream

    @property
    def busy(self) -> bool:
        """Whether somebody waits."""
        return self._gate.busy

    @property
    def stuck(self) -> bool:
        """Whether somebody waits, and nothing can come to pass inside that would let them in."""
        return self._gate.stuck

    def survey(self, plan: Plan) -> None:
        """Look at who reads what."""
        self._readers = {stream.name: len(stream.consumers) for stream in plan.streams}
        self._gate.expect(s.name for s in plan.streams if s.timestamp is not None and s.consumers)

    def come(self, goods: Sequence[tuple[str, Rows]]) -> Future[None]:
        """Rows have come; the answer is there once all of them are in."""
        answer = self._gate.come(goods)
        self.let_in()
        return answer

    def together(self, goods: Sequence[tuple[str, Rows]], job: Callable[[], T]) -> Future[T]:
        """The same for rows that are admitted all at once, by this job; the answer is what it answers."""
        answer = self._gate.together(goods, job)
        self.let_in()
        return answer

    def let_in(self) -> None:
        """Let in what there is room for."""
        if self._gate.busy:
            self._gate.open(self._occupancy.part(*self._at_work()))

    def relieve(self) -> bool:
        """Nothing can run: if no window is to close either, only those that wait can change that; whether one may."""
        _, engine = self._at_work()
        waits = self._gate.busy and not engine.runner.deadlines
        return waits and self._gate.open(self._occupancy.part(*self._at_work()), idle=True)

    def refuse(self, error: Exception) -> None:
        """Let nobody in of those that wait."""
        self._gate.refuse(error)

    def state(self) -> Mapping[str, float]:
        """By station: the bytes that its operator keeps."""
        return self._occupancy.state(self._at_work()[1])

    def status(self) -> dict[str, Any]:
        """How things stand, as plain data."""
        return self._gate.status()

    def why_stuck(self) -> str:
        """What keeps those outside that wait."""
        behind = self._gate.behind()
        waits = f"; it waits for rows of {', '.join(map(repr, behind))}" if behind else ""
        return f"it is full, nothing inside can run, and rows wait outside; {self._occupancy.largest()}{waits}"

    def _admit(self, stream: str, rows: Rows, push: bool) -> float:
        """Admit rows, unless they are; answers the bytes that they take."""
        if push:
            self._at_work()[1].push(stream, rows)
        size = rows.memory()
        self._occupancy.came(size)
        return size * self._readers.get(stream, 0)
