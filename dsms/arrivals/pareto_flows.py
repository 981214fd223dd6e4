"""Pareto arrivals: flows that start at random and send for a Pareto time; bursts at every scale."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dsms.arrivals.poisson import Poisson
from dsms.arrivals.process import DRAW_BLOCK_TUPLES, DURATIONS, Arrivals, Floats, block_generator


class ActiveFlows(NamedTuple):
    """The flows from before slice `upto` that may still send in it, and the packets of ended ones."""

    upto: int
    sent: int
    began: Floats
    packets: Floats


class ParetoFlows(Arrivals):
    """Flows that start as a Poisson stream, each sending evenly for a Pareto-distributed time (J13)."""

    def __init__(self, flows: float, packets: float, alpha: float, shortest: float, seed: int) -> None:
        super().__init__(flows * mean_packets(shortest * packets, alpha))
        self._packets, self._alpha, self._shortest, self._seed = packets, alpha, shortest, seed
        self._begins = Poisson(flows, seed)
        self._old = self._none = ActiveFlows(0, 0, np.empty(0), np.empty(0))
        self._recent = range(0), self._none

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        slices = self._begins.slices(start, stop)
        if slices != self._recent[0]:
            self._recent = slices, self._merge_flows(self._sending(slices.start), slices)
        flows = self._recent[1]
        early = np.clip(np.floor((start - flows.began) * self._packets), 0, flows.packets)
        # One packet more than needed at either end, since a product may be rounded down; the cut below is exact.
        late = np.clip(np.floor((stop - flows.began) * self._packets) + 2, 0, flows.packets)
        numbers = (late - early).astype(np.int64)
        within = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers - early, numbers)
        found = np.sort(np.repeat(flows.began, numbers) + within / self._packets)
        low, high = np.searchsorted(found, (start, stop))
        return flows.sent + int(early.sum()) + int(low), found[low:high]

    def _sending(self, index: int) -> ActiveFlows:
        """Return the earlier flows that send in a slice; ended flows are dropped."""
        if index < self._old.upto:
            self._old = self._none
        while self._old.upto < index:
            step = range(self._old.upto, min(index, self._old.upto + 64))
            flows = self._merge_flows(self._old, step)
            last = flows.began + (flows.packets - 1) / self._packets
            keep = last >= flows.upto * self._begins.slice_length
            sent = flows.sent + int(flows.packets[~keep].sum())
            self._old = ActiveFlows(flows.upto, sent, flows.began[keep], flows.packets[keep])
        return self._old

    def _merge_flows(self, old: ActiveFlows, slices: range) -> ActiveFlows:
        """Return earlier flows and the flows that start in these slices."""
        began = self._begins.instants(slices)
        numbers = np.diff([self._begins.count_before(index) for index in (*slices, slices.stop)]).tolist()
        drawn = [
            block_generator(self._seed, DURATIONS, i).pareto(self._alpha, n)
            for i, n in zip(slices, numbers, strict=True)
        ]
        packets = np.ceil((1 + np.concatenate(drawn)) * self._shortest * self._packets)
        joined = np.concatenate((old.began, began)), np.concatenate((old.packets, packets))
        return ActiveFlows(slices.stop, old.sent, *joined)


def mean_packets(least: float, alpha: float) -> float:
    """Return the mean of a Pareto variable rounded up: the sum over n of P(variable > n)."""
    sure = math.ceil(least)
    end = sure + DRAW_BLOCK_TUPLES
    chances = np.sum((least / np.arange(sure, end)) ** alpha)
    rest = (least / end) ** alpha * (end / (alpha - 1) + 0.5)  # the sum's tail as an integral
    return float(sure + chances + rest)
