"""The console's charts as plain data: a status in, an option for ECharts out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live.fake_deployment import domain, phase, station

import dsms
from actors.console.graph import NODE_WIDTH_PX, QUERY, STATION, STREAM, edges, extent, graph, layout
from actors.console.history import sample
from actors.console.progress import PATHS_LIMIT, charts, progress
from actors.console.theme import DARK, LIGHT, heat, policy_colour
from actors.console.timeline import SPAN_S, bands, timeline
from dsms.config.live import LiveConfig
from dsms.live.domain import Domain
from dsms.live.monitor.monitor import Monitor
from dsms.live.monitor.status import InputStatus, LatencyStatus, StreamStatus
from dsms.live.query_set import QuerySet
from dsms.query.plan_file import plan_from, read_table


def reading(name, *inputs, query="q", sink=False, queue=0, **figures):
    read = [InputStatus(each, 1.0) for each in inputs]
    return replace(station(name, queue), query=query, inputs=read, sink=sink, **figures)


def plan(*stations, streams=("s",)):
    queries = dict.fromkeys(one.query for one in stations)
    return domain(
        streams=[StreamStatus(name, 0, 0.0) for name in streams],
        queries=[replace(domain().queries[0], name=name) for name in queries],
        stations=list(stations),
    )


FORK = plan(
    reading("root", "s", queue=7),
    reading("left", "root", query="a", sink=True),
    reading("right", "root", query="b", queue=2000),
    reading("deep", "right", query="b", sink=True),
)


def series(option, name):
    return next(one for one in option["series"] if one["name"] == name)


def test_the_timeline_has_memory_its_bound_latency_and_freshness():
    option = timeline([sample(200.0, domain(bound=900.0))], [], LIGHT)
    assert {one["name"]: one["data"] for one in option["series"][1:]} == {
        "held": [[200.0, 1500.0]],
        "least possible": [[200.0, 900.0]],
        "p50": [[200.0, 1.5]],
        "p99": [[200.0, 20.0]],
        "mean": [[200.0, 75.0]],
        "least fresh": [[200.0, 90.0]],
    }


def test_what_is_not_known_is_a_gap():
    option = timeline([sample(3.0, domain(latency=LatencyStatus(), staleness=None, bound=None))], [], LIGHT)
    for name in ("p50", "p99", "mean", "least possible"):
        assert series(option, name)["data"] == [[3.0, None]]


def test_what_is_older_than_the_span_is_not_shown():
    samples = [sample(at, domain()) for at in (10.0, 500.0, 600.0)]
    option = timeline(samples, [], LIGHT)
    assert [at for at, _ in series(option, "held")["data"]] == [500.0, 600.0]
    assert [(axis["min"], axis["max"]) for axis in option["xAxis"]] == [(600.0 - SPAN_S, 600.0)] * 4


def test_the_band_shows_who_was_in_charge_as_far_as_it_is_seen():
    phases = [phase("fifo", 0.0, 40.0), phase("chain", 40.0, 90.0), phase("rr:tuples=30", 90.0)]
    assert bands(phases, 50.0, 100.0) == [("chain", 50.0, 90.0), ("rr:tuples=30", 90.0, 100.0)]


def test_the_band_ends_now_and_names_are_left_out_where_there_is_no_room():
    phases = [phase("fifo", 0.0, 20.0), phase("chain", 20.0, 21.0), phase("fas-mcq", 21.0)]
    option = timeline([sample(60.0, domain())], phases, LIGHT)
    areas = series(option, "policy")["markArea"]["data"]
    assert [(a["name"], a["label"]["show"], a["xAxis"], b["xAxis"]) for a, b in areas] == [
        ("fifo", True, 0.0, 20.0),
        ("chain", False, 20.0, 21.0),
        ("fas-mcq", True, 21.0, 60.0),
    ]
    assert [a["itemStyle"]["color"] for a, _ in areas] == [policy_colour(p) for p in ("fifo", "chain", "fas-mcq")]


def test_a_policy_has_one_colour_whatever_its_parameters():
    assert policy_colour("rr:tuples=30") == policy_colour("rr")
    known = [name for name, policy in dsms.policies().items() if not policy.traits.clairvoyant]
    assert len({policy_colour(name) for name in known}) == len(known)
    assert policy_colour("someone-elses").startswith("#")


def test_the_graph_leads_from_streams_over_stations_to_queries():
    assert edges(FORK) == [
        ((STREAM, "s"), (STATION, "root")),
        ((STATION, "root"), (STATION, "left")),
        ((STATION, "left"), (QUERY, "a")),
        ((STATION, "root"), (STATION, "right")),
        ((STATION, "right"), (STATION, "deep")),
        ((STATION, "deep"), (QUERY, "b")),
    ]


def test_everything_stands_to_the_right_of_what_it_reads_and_nothing_in_the_same_place():
    places = layout(FORK)
    assert {key: x for key, (x, _) in places.items()} == {
        (STREAM, "s"): 0, (STATION, "root"): 1, (STATION, "left"): 2, (STATION, "right"): 2, (STATION, "deep"): 3,
        (QUERY, "q"): 4, (QUERY, "a"): 4, (QUERY, "b"): 4,
    }  # fmt: skip
    assert len(set(places.values())) == len(places)


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3), min_size=1, max_size=12))
def test_any_plan_is_laid_out_without_two_in_one_place(reads):
    names = [f"o{place}" for place in range(len(reads))]
    stations = [
        reading(name, *dict.fromkeys(names[each] if each < place else "s" for each in inputs), query=f"q{place % 3}")
        for place, (name, inputs) in enumerate(zip(names, reads, strict=True))
    ]
    places = layout(plan(*stations))
    assert len(set(places.values())) == len(places)
    wide, high = extent(plan(*stations))
    columns, rows = ([place[axis] for place in places.values()] for axis in (0, 1))
    assert wide >= (max(columns) + 1) * NODE_WIDTH_PX
    assert high >= (max(rows) - min(rows)) * 34  # as high as a station
    assert all(places[a][0] < places[b][0] for a, b in edges(plan(*stations)))


def test_a_station_is_the_hotter_the_more_is_queued_before_it():
    nodes = {node["id"]: node for node in graph(FORK, LIGHT)["series"][0]["data"]}
    colours = {name: nodes[f"station:{name}"]["itemStyle"]["color"] for name in ("left", "root", "right")}
    assert colours["left"] == heat(0.0, LIGHT)
    assert colours["right"] == heat(1.0, LIGHT)
    assert colours["root"] not in (colours["left"], colours["right"])
    assert nodes["station:right"]["label"]["formatter"] == "right\n2,000"


def test_names_cannot_bring_markup_into_the_page():
    one = plan(reading("<img src=x>", "s", sink=True))
    tips = [node["tooltip"]["formatter"] for node in graph(one, LIGHT)["series"][0]["data"]]
    assert not any("<" in tip for tip in tips)


def test_the_progress_charts_of_a_live_system_are_those_that_explain_draws(plans):
    """The same plan in a domain's status and in `dsms explain`, as declared."""
    table = read_table(plans / "queries.toml")
    table["streams"]["readings"]["arrivals"] = {"kind": "push"}
    live = Domain("0", QuerySet(table, plans), LiveConfig(clock="virtual"))
    live.start()
    try:
        found = charts(live.status())
    finally:
        live.close()
    wanted = {chart.title: chart for chart in dsms.explain(plan_from(table), "chain").charts}
    assert set(found) == set(wanted)
    for title, chart in found.items():
        assert chart.envelope == wanted[title].envelope
        assert chart.points == wanted[title].points


def test_a_progress_chart_is_drawn_in_microseconds_with_its_envelope():
    path = plan(
        reading("o1", "s", cost=1e-6, selectivity=0.2), reading("o2", "o1", sink=True, cost=5e-6, selectivity=0.0)
    )
    [chart] = charts(path).values()
    option = progress(chart, LIGHT)
    assert chart.title == "q: o1 → o2"
    assert [point["value"] for point in option["series"][0]["data"]] == [[0.0, 1.0], [1.0, 0.2], [2.0, 0.0]]
    assert option["series"][1]["data"] == [[0.0, 1.0], [1.0, 0.2], [2.0, 0.0]]


def test_of_very_many_ways_some_are_offered():
    stations = [reading("o0.a", "s"), reading("o0.b", "s")]
    for depth in range(1, 9):
        before = (f"o{depth - 1}.a", f"o{depth - 1}.b")
        stations += [reading(f"o{depth}.{side}", *before, sink=depth == 8) for side in "ab"]
    assert len(charts(plan(*stations))) == PATHS_LIMIT


def test_a_status_has_the_least_memory_and_it_is_never_more_than_what_is_held(plans):
    plan = plan_from(read_table(plans / "bursts.toml"))
    watch = Monitor(plan)
    engine = dsms.Engine(plan, dsms.policy_named("fifo"), observers=watch.observers)
    seen = []
    for _ in range(400):
        engine.step()
        status = watch.status(engine)
        seen.append((status.bound, status.held))
    assert all(0 <= least <= held for least, held in seen)
    assert any(0 < least < held for least, held in seen)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("one", [FORK, replace(FORK, stations=[], streams=[], queries=[])])
def test_all_options_are_plain_data_in_both_themes(theme, one):
    options = [timeline((), one.phases, theme), graph(one, theme), progress(None, theme)]
    options += [progress(chart, theme) for chart in charts(one).values()]
    assert all(json.loads(json.dumps(option, allow_nan=False)) for option in options)
