"""Which stations share a host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.errors import DsmsError
from dsms.plan.hosts import group_stations, number_hosts
from dsms.query.plan_file import plan_from


def plan_of(sizes, **live):
    """A plan whose queries have these numbers of operators."""
    queries = {
        f"q{n}": {
            "from": "s",
            "operators": [{"name": f"q{n}o{i}", "cost": 1.0, "selectivity": 1.0} for i in range(size)],
        }
        for n, size in enumerate(sizes)
    }
    return plan_from({"streams": {"s": {}}, "queries": queries, "live": live})


def test_each_station_has_an_actor_of_its_own_while_there_are_enough():
    assert group_stations(plan_of([2, 1]).stations, most=3) == [["q0o0"], ["q0o1"], ["q1o0"]]


def test_beyond_that_stations_of_a_query_stand_together_in_plan_order():
    assert group_stations(plan_of([3, 3]).stations, most=2) == [["q0o0", "q0o1", "q0o2"], ["q1o0", "q1o1", "q1o2"]]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 12))
def test_every_station_has_one_place_and_actors_are_as_full_as_one_another(sizes, most):
    plan = plan_of(sizes)
    actors = group_stations(plan.stations, most)
    assert [name for names in actors for name in names] == [
        f"q{n}o{i}" for n, size in enumerate(sizes) for i in range(size)
    ]
    assert len(actors) == min(most, sum(sizes))
    assert max(map(len, actors)) - min(map(len, actors)) <= 1


def test_a_domain_without_queries_has_one_empty_actor():
    assert group_stations([], most=4) == [[]]


def test_no_actor_at_all_is_refused():
    with pytest.raises(DsmsError, match="0 actors for 1 stations: expected at least one"):
        group_stations(plan_of([1]).stations, most=0)


def test_a_simulation_places_stations_as_the_live_table_says_and_a_runner_where_they_are():
    assert number_hosts(plan_of([2, 2]), {}) == [0, 1, 2, 3]
    assert number_hosts(plan_of([2, 2], actors=2), {}) == [0, 0, 1, 1]
    assert number_hosts(plan_of([2]), {"q0o0": 3, "q0o1": 1}) == [3, 1]
