"""What is seen of a live system: the longest queue first, whole lines, never more of them than there is room for."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from support.live.fake_deployment import collapse_spaces, domain, phase, station, status_of

from actors.cli.status_screen import fit_rows, render_status
from actors.control.status_tables import draw_bar, format_elapsed, list_problems
from dsms.live.monitor.status import DeploymentStatus, OutputStatus, ResultHubStatus


def drawn(status: DeploymentStatus, height: int = 60, width: int = 100) -> str:
    console = Console(record=True, width=width, height=height, file=io.StringIO())
    console.print(render_status(status, height))
    return console.export_text()


def test_the_view_puts_the_longest_queue_first_and_the_latest_phase():
    text = drawn(status_of(domain()))
    places = [
        text.index(word) for word in ("dsms  up", "running", "high0", "busy0.group", "high0.where", "chain  60.0")
    ]
    assert places == sorted(places)
    assert collapse_spaces(text)[-2:] == [
        "chain 60.0 s now 4.2 ms – – 9 – – – [asked] for",
        "fifo 0.0 s 60.0 s – – – 9 – – – start",
    ]


def test_the_view_of_several_domains_says_whose_each_row_is_and_what_has_failed():
    text = drawn(status_of(domain("a"), domain("b", state="failed", error="boom\nTraceback")))
    assert "domain b has failed: boom\n" in text
    assert [line.split()[:2] for line in text.splitlines() if "group" in line] == [
        ["busya.group", "a"],
        ["busyb.group", "b"],
    ]


def test_what_does_not_fit_is_counted():
    many = domain(stations=[station(f"q.s{place}", place) for place in range(100)])
    text = drawn(status_of(many), height=30)
    shown = [line for line in text.splitlines() if line.startswith("q.s")]
    assert shown[0].startswith("q.s99 ")
    assert f"operator ({len(shown)} of 100)" in text
    assert len(text.splitlines()) == 30


def test_a_narrow_view_keeps_the_columns_on_the_left():
    text = drawn(status_of(domain()), width=40)
    assert "busy0.group 1,200 ████████████ 1,234" in collapse_spaces(text)
    assert "priority" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 40


@given(st.integers(1, 60), st.integers(20, 200), st.integers(0, 3), st.integers(0, 50), st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_a_view_keeps_to_the_height_whatever_there_is(height, width, domains, stations, phases):
    one = {
        "stations": [station(f"query.station{place}", place) for place in range(stations)],
        "phases": [phase("adaptive:select=best", place) for place in range(phases)],
        "error": "boom " * 40,
    }
    text = drawn(status_of(*(domain(str(place), **one) for place in range(domains))), height, width)
    assert 1 <= len(text.splitlines()) <= height
    assert max(len(line) for line in text.splitlines()) <= width


@given(st.lists(st.integers(0, 20), max_size=5), st.integers(-3, 60))
def test_room_is_shared_out_fairly_and_to_the_last_line(wanted, room):
    got = fit_rows(wanted, room)
    assert sum(got) == min(max(room, 0), sum(wanted))
    assert all(mine <= want for mine, want in zip(got, wanted, strict=True))
    short = [mine for mine, want in zip(got, wanted, strict=True) if mine < want]
    assert all(mine <= least + 1 for least in short for mine in got)


@pytest.mark.parametrize(
    ("share", "bar"), [(0.0, ""), (0.0001, "▏"), (0.5, "██████"), (0.51, "██████▏"), (1.0, "████████████")]
)
def test_a_bar_is_as_long_as_its_share(share, bar):
    assert draw_bar(share) == bar


@pytest.mark.parametrize(
    ("time", "said"),
    [(0.4, "0 s"), (42, "42 s"), (200, "3 min 20 s"), (3600, "1 h 0 min"), (3 * 86400 + 4 * 3600 + 59, "3 d 4 h")],
)
def test_a_long_time_is_said_in_two_units(time, said):
    assert format_elapsed(time) == said


def test_results_that_cannot_be_written_are_said():
    outputs = [OutputStatus("high", error="No space left on device"), OutputStatus("low")]
    status = DeploymentStatus("dsms", 1e9, "0.1.0", outlet=ResultHubStatus(outputs))
    assert list_problems(status) == ["results of query high cannot be written: No space left on device"]
