"""The short form of every section of `make bench`: each measures little, and checks all the work it did."""

from __future__ import annotations

import pytest

pytest.importorskip("simpy", reason="needs SimPy, the peer of the simulator: pip install 'dsms[bench]'")
pytest.importorskip("bytewax", reason="needs Bytewax, the peer of the queries: pip install 'dsms[bench]'")

from benchmarks.bench import SECTIONS, compare_policies
from rich.table import Table

ON_RAY = ("fidelity", "swaps", "live", "metrics", "checkpoints")
IN_PROCESS = tuple(name for name in SECTIONS if name not in (*ON_RAY, "load"))


def check(name: str) -> None:
    """Run a section; every line of its table says what was measured, and has a ratio."""
    rows = list(SECTIONS[name].short())
    assert rows
    assert all(row.what for row in rows)
    assert all(row.ratio > 0 for row in rows)


@pytest.mark.targets
@pytest.mark.parametrize("name", IN_PROCESS)
def test_a_section_in_this_process_measures_and_checks_its_work(name: str) -> None:
    check(name)


@pytest.mark.ray
@pytest.mark.parametrize("name", ON_RAY)
def test_a_section_on_ray_measures_and_checks_its_work(name: str, ray_cluster: object) -> None:
    check(name)


@pytest.mark.ray
@pytest.mark.spark
def test_the_load_from_spark_is_measured_and_every_row_arrives(ray_cluster: object, spark: object) -> None:
    check("load")


@pytest.mark.targets
def test_policies_are_compared_in_five_tables() -> None:
    tables = list(compare_policies(short=True))
    assert len(tables) == 5
    assert all(isinstance(table, Table) and table.row_count for table in tables)
