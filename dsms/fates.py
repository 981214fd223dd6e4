"""What becomes of an abstract tuple at an operator: a hash of seed, tuple and operator, so no policy can change it."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

Identities = NDArray[np.uint64]
Counts = NDArray[np.int64]


def name_hash(name: str) -> int:
    """A number for a name that is the same in every process (Python's own hash is not)."""
    return zlib.crc32(name.encode()) * 0x9E3779B97F4A7C15 % 2**64


def mix(values: Identities) -> Identities:
    """Splitmix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def identities(stream: str, numbers: Counts) -> Identities:
    """Who the tuples of a stream are, by their number in it: other streams of a plan do not matter."""
    return mix(mix(numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) + np.uint64(name_hash(stream)))


def descendants(parents: Identities, salts: Counts) -> Identities:
    """Identities for tuples that must not share their parents' fates downstream, nor each other's."""
    return mix(parents + (salts + 1).astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))


def random_outputs(identity: Identities, selectivity: float, operator: int, seed: int) -> Counts:
    """How many outputs each tuple gives: the whole part of the selectivity, and one more by chance."""
    whole = int(selectivity)
    key = np.uint64((operator + seed * 0xA24BAED4963EE407) % 2**64)
    chance = (mix(identity ^ key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.where(chance < selectivity - whole, whole + 1, whole)


def spread_outputs(first: int, tuples: int, selectivity: float) -> Counts:
    """How many outputs each of the tuples first, first+1, … gives: ⌊(n+1)s⌋ − ⌊ns⌋, every 1/s-th passes."""
    # A selectivity such as 0.1 is not exact in binary: without the nudge the tenth tuple may come out as the eleventh.
    passed = np.floor(np.arange(first, first + tuples + 1) * selectivity + 1e-9)
    counts: Counts = np.diff(passed).astype(np.int64)
    return counts
