"""Progress charts of an operator path, their lower envelopes, and the area under a batch's charts.

Progress charts: Babcock et al., "Chain" (SIGMOD 2003), section 3; batches: Bai, Zaniolo (SSPS 2008), section 2.
All of it is exact on fractions; that is why the constants here are ones that leave a fraction a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

Point = tuple[float, float]  # time, size

ZERO_SELECTIVITY_ONE_IN = 10**12  # downstream, a selectivity of 0 counts as one in this many
FAINTEST, VASTEST = 1e-200, 1e200  # bounds that keep products with costs and sizes from underflow and overflow


def reach_after(reach: float, selectivity: float) -> float:
    """Return how much of a unit tuple passes an operator that `reach` of it reaches; never 0.

    Behind a selectivity of 0 all times and sizes would be 0 and no slope would mean anything; yet an operator there may
    hold earlier tuples, or the selectivity be measured too low. As slopes do not depend on the unit, a tiny reach
    leaves them as they are and weighs next to nothing in any mean with what is upstream.
    """
    further = (
        reach * selectivity if selectivity else (reach + selectivity) / ZERO_SELECTIVITY_ONE_IN
    )  # adding the 0 keeps a Fraction
    return min(max(further, FAINTEST), VASTEST)


def gain_rate(gain: float, time: float) -> float:
    """Return gain per unit of time; infinite for no time, unless the gain is negative."""
    if time:
        return gain / time
    return math.inf if gain >= 0 else -math.inf


def progress_chart(
    costs: Sequence[float], selectivities: Sequence[float], sizes: Sequence[float] | None = None
) -> list[Point]:
    """Return the m+1 points of a path's chart: time spent on one tuple, and the bytes left of it.

    `sizes` are the bytes of a tuple before each operator; behind the last nothing is left, as a sink's output leaves.
    Far behind a very selective operator the times differ by less than a float can tell: such operators fall into one
    segment with what is before them. `partition` keeps each operator's own time and tells them apart.
    """
    time: float = 0
    reach: float = 1
    points: list[Point] = []
    for cost, selectivity, size in zip(costs, selectivities, sizes or [1] * len(costs), strict=True):
        points.append((time, reach * size))
        time += reach * cost
        reach = reach_after(reach, selectivity)
    return [*points, (time, 0)]


def lower_envelope(points: Sequence[Point]) -> list[int]:
    """Return the indices of the points on the lower envelope, the first and the last point included.

    From each the next is the one with the steepest way down, or the least steep way up, the nearest of several: so
    points on a line all stay. That is the lower convex hull, which a stack finds in one pass.
    """
    hull: list[int] = []
    for end in range(len(points)):
        while len(hull) > 1 and _is_above(points[hull[-2]], points[hull[-1]], points[end]):
            hull.pop()
        hull.append(end)
    return hull


def _is_above(before: Point, point: Point, after: Point) -> bool:
    """Return whether a point is above the line between its neighbours; without division, as a width may be 0."""
    fall, width = before[1] - point[1], point[0] - before[0]
    return (point[1] - after[1]) * width > fall * (after[0] - point[0])


def slopes(points: Sequence[Point], envelope: Sequence[int]) -> list[float]:
    """Return how fast the size falls along each segment of the envelope: Chain's priorities."""
    ends = [points[index] for index in envelope]
    return [gain_rate(a[1] - b[1], b[0] - a[0]) for a, b in pairwise(ends)]


def chains(points: Sequence[Point]) -> list[range]:
    """Return the operators of each segment of the envelope; operator i leads from point i to i + 1."""
    return [range(start, stop) for start, stop in pairwise(lower_envelope(points))]


def deltas(points: Sequence[Point], envelope: Sequence[int]) -> list[float]:
    """Return how far the actual chart, a step down at each operator's end, gets above each segment.

    The paper has the segment's whole fall for it (proof of its last theorem in section 3); with selectivities up to 1
    that is an upper bound, reached where a segment has one operator or its earlier ones drop nothing.
    """
    found = []
    for (start, stop), slope in zip(pairwise(envelope), slopes(points, envelope), strict=True):
        begin, top = points[start]
        steps = pairwise(points[start : stop + 1])
        found.append(
            max(size - top + slope * (t - begin) for (since, size), (until, _) in steps for t in (since, until))
        )
    return found


def output_chart(runs: Iterable[tuple[float, float]]) -> list[Point]:
    """Return undelivered outputs over time for consecutive runs (time, outputs), all queued at time 0."""
    return _chart(runs)


def memory_chart(runs: Iterable[tuple[float, float]]) -> list[Point]:
    """Return unfreed bytes over time for consecutive runs (time, bytes freed), all queued at time 0."""
    return _chart(runs)


def _chart(runs: Iterable[tuple[float, float]]) -> list[Point]:
    """Return what remains before the first run and after each run."""
    runs = list(runs)
    time: float = 0
    left = sum(gain for _, gain in runs)
    points = [(time, left)]
    for cost, gain in runs:
        time, left = time + cost, left - gain
        points.append((time, left))
    return points


def area(chart: Sequence[Point], *, steady: bool = False) -> float:
    """Return the area under a chart; that of an output chart is the total latency.

    A run's gain comes at its end, as a tuple's does; or steadily, as that of very many small tuples: the limit in which
    the paper's ½·tau·N² holds for N tuples as one run, where one by one they give ½·tau·N(N + 1).
    """
    heights = ((a[1] + b[1]) / 2 if steady else a[1] for a, b in pairwise(chart))
    return sum(height * (b[0] - a[0]) for height, (a, b) in zip(heights, pairwise(chart), strict=True))
