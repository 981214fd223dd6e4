"""The short form of what `make bench` shows of our own policies: a few of its cases, exact in virtual time."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from benchmarks.against import FOUR, PLAIN, PREDICTIVE, STARTUP, Bench, Entry, better, compare
from benchmarks.cases import PATTERNS, WEIGHTINGS, Case, Weights, cases
from benchmarks.freshness import Point, curve, measure, relative, saved, testbed

from dsms.plan import Plan

SEED = 11
FEW = {pattern: case for case in cases(SEED, 16, 600) for pattern in PATTERNS if case.pattern == pattern}


@pytest.fixture(scope="module")
def few() -> list[Case]:
    """A case with each pattern, of one to four queries."""
    return [list(cases(SEED, 16, 600))[place] for place in (0, 5, 10, 15)]
