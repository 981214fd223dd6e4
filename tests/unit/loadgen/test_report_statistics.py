"""Intervals and burstiness: published values, and arrivals whose statistics are known."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.report.flow import BIN_COUNT, measure_burstiness
from loadgen.report.intervals import estimate_mean, student_t


@pytest.mark.parametrize(
    ("freedom", "published"), [(1, 12.706), (4, 2.776), (9, 2.262), (10, 2.228), (19, 2.093), (30, 2.042), (120, 1.980)]
)
def test_students_t_is_that_of_the_tables(freedom, published):
    assert student_t(freedom) == pytest.approx(published, abs=6e-4)


def test_an_interval_holds_the_mean_nineteen_times_of_twenty():
    """2,000 experiments of 5 normal samples: the share that holds the true mean is 95 % ± 1.5 %, three deviations."""
    random = np.random.default_rng(0)
    found = [estimate_mean(random.normal(10, 3, 5).tolist()) for _ in range(2000)]
    assert np.mean([abs(each.mean - 10) <= each.half for each in found]) == pytest.approx(0.95, abs=0.015)


def test_one_sample_has_no_interval_and_none_has_no_mean():
    assert estimate_mean([3.0]) == (3.0, None)
    assert estimate_mean([None, None]) == (None, None)
    assert estimate_mean([1.0, None, 3.0]).mean == 2.0


def counted(instants: np.ndarray) -> np.ndarray:
    return np.histogram(instants, BIN_COUNT, (0, 1))[0].astype(float)


def test_poisson_arrivals_have_a_dispersion_of_one_and_no_memory():
    """Over 20 seeds: dispersion at scales up to 64 bins within 4 deviations, Hurst within 0.05 of 0.5 on average."""
    found = [measure_burstiness(counted(np.random.default_rng(seed).uniform(0, 1, 40_000)), 1.0) for seed in range(20)]
    for scale in (1, 8, 64):
        wanted = 4 * np.sqrt(2 / (BIN_COUNT / scale) / 20)
        assert np.mean([each.dispersion[scale] for each in found]) == pytest.approx(1, abs=wanted)
    assert np.mean([each.hurst for each in found]) == pytest.approx(0.5, abs=0.05)
    assert all(each.peak < 1.5 for each in found)


def test_bursts_raise_dispersion_and_peak():
    """Groups of ten at once: a count is ten times a Poisson count, and so is its dispersion."""
    instants = np.repeat(np.random.default_rng(1).uniform(0, 1, 4_000), 10)
    assert measure_burstiness(counted(instants), 1.0).dispersion[1] == pytest.approx(10, rel=0.1)
    half = np.random.default_rng(2).uniform(0, 0.5, 40_000)
    assert measure_burstiness(counted(half), 1.0).peak == pytest.approx(2, rel=0.2)


def test_superposed_heavy_tailed_bursts_are_self_similar():
    """50 sources that send for Pareto times (1.2, so H = 0.9): over 5 seeds the estimate is above 0.75 on average."""

    def source(random: np.random.Generator) -> np.ndarray:
        edges = np.cumsum(random.pareto(1.2, 4000) + 1)
        grid = np.linspace(0, edges[-1] * 0.3, BIN_COUNT)
        return (np.searchsorted(edges, grid) % 2).astype(float)

    def hurst(seed: int) -> float:
        random = np.random.default_rng(seed)
        found = measure_burstiness(sum(source(random) for _ in range(50)), 1.0).hurst
        assert found is not None
        return found

    assert np.mean([hurst(seed) for seed in range(5)]) > 0.75


def test_nothing_at_all_has_no_burstiness():
    found = measure_burstiness(np.zeros(BIN_COUNT), 0.0)
    assert (found.peak, found.hurst, found.dispersion) == (None, None, {})
