"""Cuts trees of operators into pieces that run depth first, the steepest piece first.

Bai, Zaniolo (SSPS 2008), section 4, forks for latency and for memory; on a path it is the envelope of Chain.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar, get_args

from dsms.charts.envelope import gain_rate, reach_after

M = TypeVar("M")
Forks = Literal["split", "atomic", "shared", "private"]


class ChartPiece(NamedTuple, Generic[M]):
    """Operators that run as one, producers first, with their time and gain per tuple at the source."""

    members: tuple[M, ...]
    time: float
    gain: float

    @property
    def slope(self) -> float:
        return gain_rate(self.gain, self.time)


@dataclass(slots=True)
class OperatorTree(Generic[M]):
    """An operator and the operators that read its output."""

    member: M
    cost: float  # time per input tuple
    selectivity: float
    size: float = 1  # bytes of an output tuple
    sink: bool = False  # whether results leave here although other operators read them; without branches they always do
    branches: list[OperatorTree[M]] = field(default_factory=list)


def prepend(piece: ChartPiece[M], rest: Sequence[ChartPiece[M]]) -> list[ChartPiece[M]]:
    """Put a piece in front of a chart; it absorbs the pieces that follow while that makes it steeper.

    The rest's slopes do not increase, so this is the steepest prefix, the shortest of several, and pieces that were
    once put together stay together.
    """
    for taken, following in enumerate(rest):
        if not following.slope > piece.slope:
            return [piece, *rest[taken:]]
        members, time, gain = following
        piece = ChartPiece(piece.members + members, piece.time + time, piece.gain + gain)
    return [piece]


def partition(
    trees: Sequence[OperatorTree[M]],
    *,
    size: float = 1,
    memory: float = 0,
    outputs: float = 0,
    forks: Forks = "split",
) -> list[ChartPiece[M]]:
    """Return the pieces of one source's readers by non-increasing slope; none depends on a later one.

    Gain is `memory` for each byte freed and `outputs` for each result, expected for one tuple of `size` bytes at the
    source. Forks are "split" where their branches' slopes say so, 1/k of a tuple being credited to each of the k that
    read it, as the last reader is not known; "atomic": the first operators of all branches are one piece; or
    "private": every branch has a copy of its own, made by the producer and freed by the reader.
    """
    chart = _Chart(trees, size, memory, outputs, forks)
    return chart.pieces(chart.with_forks_whole() if forks == "atomic" else chart.with_forks_split())


def latency_partitions(trees: Sequence[OperatorTree[M]]) -> list[ChartPiece[M]]:
    """Return pieces by output rate, which minimise the total latency of any batch (Bai & Zaniolo, section 4).

    Branches are taken by non-increasing slope, where the paper prints "non-decreasing" against its own example.
    """
    return partition(trees, outputs=1)


def memory_partitions(trees: Sequence[OperatorTree[M]], size: float = 1, shared: bool = True) -> list[ChartPiece[M]]:
    """Return pieces by the rate at which they free memory (Bai & Zaniolo, section 4).

    In a shared buffer a tuple stays until its last reader took it, so a fork's first operators are one fork-segment,
    with S_in − Σ m_i to gain, and nested forks are serialised from the sinks up. With a buffer for each reader every
    branch is a Chain path of its own. The unit-segments behind a fork are taken by non-increasing rate, where the paper
    prints "non-decreasing" against its own example.
    """
    return partition(trees, size=size, memory=1, forks="atomic" if shared else "private")


def indices(
    trees: Sequence[OperatorTree[M]],
    *,
    size: float = 1,
    memory: float = 0,
    outputs: float = 0,
    forks: Forks = "split",
) -> dict[M, float]:
    """Return, for every operator, the slope of the first piece of the chart that starts with it.

    Gains are as for `partition`; that the chart's unit is a tuple at the source does not matter to a slope. Forks are
    "split", "private", or "shared": there the readers of a tuple have one slope in common, by what they gain together
    when the last of them frees it, except readers that do better alone and free nothing. Of an operator that is
    reached by several ways it is that of the way most of its tuples come along: a mean would part it from the others
    that read what it reads.
    """
    ways = weighted_indices(trees, size=size, memory=memory, outputs=outputs, forks=forks)
    return {member: -minus for member, (_, minus) in ways.items()}


def weighted_indices(
    trees: Sequence[OperatorTree[M]],
    *,
    size: float = 1,
    memory: float = 0,
    outputs: float = 0,
    forks: Forks = "split",
) -> dict[M, tuple[float, float]]:
    """The same, as (part of a source tuple that reaches the operator, minus the slope)."""
    if forks == "atomic":
        raise ValueError("forks are 'atomic': there an operator starts no chart of its own; use 'shared'")
    chart = _Chart(trees, size, memory, outputs, forks)
    if forks == "shared":
        chart.with_forks_shared()
    else:
        chart.with_forks_split()
    found: dict[M, tuple[float, float]] = {}
    for member, slope, reach in zip(chart.members, chart.slopes, chart.reaches, strict=True):
        found[member] = max((reach, -slope), found.get(member, (0, 0)))  # of equally frequent paths, the flatter one
    return found


# Of a piece: minus its slope, its first operator, its time and gain, its last operator. Operators are numbered so that
# a producer precedes its readers: of equal slopes the one upstream, or of an earlier branch, is the first in a heap.
_Entry = tuple[float, int, float, float, int]
_Heap = list[_Entry]


class _Chart(Generic[M]):
    """All operators in topological order, and the charts of everything downstream of each.

    A chart is a heap: pieces are only ever taken from its steep end, and the smaller of two can be poured into the
    larger. A piece's operators are a linked list, so that two pieces are put together at once, however long they are.
    """

    def __init__(
        self, trees: Sequence[OperatorTree[M]], size: float, memory: float, outputs: float, forks: Forks
    ) -> None:
        if forks not in get_args(Forks):
            raise ValueError(f"forks are {forks!r}; there are {list(get_args(Forks))}")
        self.members: list[M] = []
        self.times: list[float] = []
        self.gains: list[float] = []
        self.reaches: list[float] = []  # by operator: part of a source tuple that reaches it
        self.credits: list[float] = []  # by operator: the part of its gain that is for freeing its input
        self.readers: list[list[int]] = [[]]  # of the source, then by operator
        self.following: list[int] = []  # the next operator of the same piece; of the last one, itself
        ahead = _readers(0, trees, 1, size, forks)
        while ahead:
            producer, tree, reach, credited = ahead.pop()
            place = len(self.members)
            copies = len(tree.branches) if forks == "private" else min(len(tree.branches), 1)
            freed = credited - tree.selectivity * tree.size * copies
            results = 0 if tree.branches and not tree.sink else tree.selectivity
            self.readers[producer].append(place)
            self.readers.append([])
            self.members.append(tree.member)
            self.times.append(reach * tree.cost)
            self.gains.append(reach * (memory * freed + outputs * results))
            self.credits.append(reach * memory * credited)
            self.reaches.append(reach)
            self.following.append(place)
            ahead += _readers(place + 1, tree.branches, reach_after(reach, tree.selectivity), tree.size, forks)
        self.slopes: list[float] = [0] * len(self.members)  # by operator: slope of the first piece that starts with it

    def with_forks_split(self) -> _Heap:
        """Return the chart of all branches, with each operator in front of its readers' charts; record its slope."""
        charts: list[_Heap] = [[] for _ in self.members]
        for place in reversed(range(len(self.members))):
            charts[place] = self._in_front([place], self._merged(charts, self.readers[place + 1]))
            self.slopes[place] = -charts[place][0][0]
        return self._merged(charts, self.readers[0])

    def with_forks_whole(self) -> _Heap:
        """Return the chart of all branches, with the readers of one output as one piece."""
        behind: list[_Heap] = [[] for _ in self.members]
        for place in reversed(range(len(self.members))):
            readers = self.readers[place + 1]
            behind[place] = self._in_front(readers, self._merged(behind, readers))
        return self._in_front(self.readers[0], self._merged(behind, self.readers[0]))

    def with_forks_shared(self) -> _Heap:
        """Return the chart of all branches; the readers of one output are one piece, except those steeper alone."""
        behind: list[_Heap] = [[] for _ in self.members]
        for place in reversed(range(len(self.members))):
            behind[place] = self._shared(self.readers[place + 1], behind)
        return self._shared(self.readers[0], behind)

    def _shared(self, readers: Sequence[int], behind: list[_Heap]) -> _Heap:
        """Return the chart that readers of one output start; a reader that runs alone frees nothing."""
        if len(readers) < 2:
            chart = self._in_front(readers, self._merged(behind, readers))
            for reader in readers:
                self.slopes[reader] = -chart[0][0]
            return chart
        credit = sum(self.credits[reader] for reader in readers)
        alone = sorted(self._steepest(r, self.times[r], self.gains[r] - self.credits[r], behind[r]) for r in readers)
        time, gain = sum(piece[2] for piece in alone), credit + sum(piece[3] for piece in alone)
        ahead = 0
        while ahead < len(alone) - 1 and -alone[ahead][0] > gain_rate(gain, time):
            _, first, its_time, its_gain = alone[ahead]
            time, gain, self.slopes[first] = time - its_time, gain - its_gain, -alone[ahead][0]
            ahead += 1
        leaving, staying = [p[1] for p in alone[:ahead]], sorted(p[1] for p in alone[ahead:])
        for reader in leaving:
            behind[reader] = self._in_front([reader], behind[reader], -self.credits[reader])
        together = self._in_front(
            staying, self._merged(behind, staying), credit - sum(self.credits[r] for r in staying)
        )
        for reader in staying:
            self.slopes[reader] = -together[0][0]
        behind[staying[0]] = together
        return self._merged(behind, [*leaving, staying[0]])

    def pieces(self, chart: _Heap) -> list[ChartPiece[M]]:
        return [ChartPiece(tuple(self._run(first)), time, gain) for _, first, time, gain, _ in sorted(chart)]

    def _run(self, place: int) -> Iterable[M]:
        yield self.members[place]
        while self.following[place] != place:
            place = self.following[place]
            yield self.members[place]

    def _merged(self, charts: list[_Heap], places: Sequence[int]) -> _Heap:
        """Merge these charts into the largest of them."""
        if not places:
            return []
        largest = max(places, key=lambda place: len(charts[place]))
        merged = charts[largest]
        for place in places:
            if place != largest:
                for entry in charts[place]:
                    heapq.heappush(merged, entry)
        return merged

    def _steepest(self, place: int, time: float, gain: float, chart: _Heap) -> tuple[float, int, float, float]:
        """Return what an operator would absorb of the chart behind it, without changing that."""
        for minus, _, more_time, more_gain, _ in sorted(chart):
            if not -minus > gain_rate(gain, time):
                break
            time, gain = time + more_time, gain + more_gain
        return -gain_rate(gain, time), place, time, gain

    def _in_front(self, places: Sequence[int], chart: _Heap, credit: float = 0) -> _Heap:
        """Apply the rule of `prepend` to a piece of these operators, with extra credit."""
        if not places:
            return chart
        time: float = 0
        gain = credit
        for place, after in zip(places, (*places[1:], places[-1]), strict=True):
            time, gain = time + self.times[place], gain + self.gains[place]
            self.following[place] = after
        first, last = places[0], places[-1]
        while chart and -chart[0][0] > gain_rate(gain, time):
            _, taken, more_time, more_gain, end = heapq.heappop(chart)
            time, gain = time + more_time, gain + more_gain
            self.following[last], last = taken, end
        heapq.heappush(chart, (-gain_rate(gain, time), first, time, gain, last))
        return chart


def _readers(
    producer: int, trees: Sequence[OperatorTree[M]], reach: float, size: float, forks: Forks
) -> list[tuple[int, OperatorTree[M], float, float]]:
    """Return a producer's readers, the last first, each with its reach and the bytes it is credited with freeing."""
    if not trees:
        return []
    if forks == "private" or len(trees) == 1:
        credits = [size] * len(trees)
    elif forks in ("atomic", "shared"):
        credits = [size] + [0] * (len(trees) - 1)  # only their sum matters
    else:
        credits = [(size + 0 * tree.cost) / len(trees) for tree in trees]  # adding 0 keeps a Fraction
    return [(producer, tree, reach, credited) for tree, credited in zip(reversed(trees), credits, strict=True)]
