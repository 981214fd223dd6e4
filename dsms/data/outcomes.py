"""Draws how many outputs a simulated tuple has at an operator, from a hash of seed, tuple and operator."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

Identities = NDArray[np.uint64]
Counts = NDArray[np.int64]


def hash_name(name: str) -> int:
    """Return a hash of a name that is the same in every process, unlike Python's."""
    return zlib.crc32(name.encode()) * 0x9E3779B97F4A7C15 % 2**64


def mix_bits(values: Identities) -> Identities:
    """Splitmix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def tuple_identities(stream: str, numbers: Counts) -> Identities:
    """Return the identities of a stream's tuples, from the stream's name and their numbers."""
    return mix_bits(mix_bits(numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) + np.uint64(hash_name(stream)))


def child_identities(parents: Identities, salts: Counts) -> Identities:
    """Return identities for child tuples, so that their outcomes are independent of the parent's and each other's."""
    return mix_bits(parents + (salts + 1).astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))


def draw_outputs(identity: Identities, selectivity: float, operator: int, seed: int) -> Counts:
    """Draw each tuple's number of outputs: the selectivity's whole part, and one more with the rest as probability."""
    whole = int(selectivity)
    key = np.uint64((operator + seed * 0xA24BAED4963EE407) % 2**64)
    chance = (mix_bits(identity ^ key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.where(chance < selectivity - whole, whole + 1, whole)


def spread_outputs_evenly(first: int, tuples: int, selectivity: float) -> Counts:
    """Return the outputs of the tuples first, first+1, …: ⌊(n+1)s⌋ − ⌊ns⌋, so every 1/s-th passes."""
    # 0.1 is not exact in binary: without the correction the eleventh tuple may pass instead of the tenth.
    passed = np.floor(np.arange(first, first + tuples + 1) * selectivity + 1e-9)
    counts: Counts = np.diff(passed).astype(np.int64)
    return counts
