"""Arrival tables: lists and files that are read, and what every table that cannot be read is told."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dsms.arrivals import Arrivals, arrivals_from
from dsms.errors import PlanError


def read(folder: Path = Path(), **table: object) -> Arrivals:
    return arrivals_from(table, seed=1, folder=folder)


def test_list_carries_costs_and_sizes() -> None:
    process = read(kind="list", at=[0, 1], cost=[2, 0], size=[40, 1500])
    assert {name: column.tolist() for name, column in process.carries.items()} == {"cost": [2, 0], "size": [40, 1500]}
    process = read(kind="list", at=[0, 1], cost={"o1": [2, 0], "o2": [1, 1.5]})
    assert {name: c.tolist() for name, c in process.carries.items()} == {"cost.o1": [2, 0], "cost.o2": [1, 1.5]}


def test_list_ends_at_until_with_what_it_carries() -> None:
    process = read(kind="list", at=[0, 1, 2], size=[1, 2, 3], until=2)
    assert process.between(0, 9).tolist() == [0, 1]
    assert process.carries["size"].tolist() == [1, 2]
    assert process.end <= 2


def test_file_gives_its_columns(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("at,cost,cost.o1,size,host\n0.5,1,2,40,a\n0.5,3,0,41,b\n\n7,5,6,42,c\n")
    process = read(kind="file", path="trace.csv", folder=tmp_path)
    assert process.between(0, 9).tolist() == [0.5, 0.5, 7]
    assert {name: column.tolist() for name, column in process.carries.items()} == {
        "cost": [1, 3, 5],
        "cost.o1": [2, 0, 6],
        "size": [40, 41, 42],
    }
    assert read(kind="file", path="trace.csv", folder=tmp_path, until=7).between(0, 9).tolist() == [0.5, 0.5]
    assert read(kind="file", path=str(tmp_path / "trace.csv"), column="size").between(0, 99).tolist() == [40, 41, 42]


def test_file_of_a_header_alone_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("at,cost\n")
    assert len(read(kind="file", path="t.csv", folder=tmp_path).between(0, 9)) == 0


ERRORS: list[tuple[dict[str, object], str]] = [
    ({}, "kind: missing; there are ['bursts', "),
    ({"kind": "poison"}, "kind: 'poison' is not a kind of arrivals (did you mean 'poisson'?); there are ['bursts', "),
    ({"kind": 3}, "kind: 3 is not a kind of arrivals; there are ['bursts', "),
    (
        {"kind": "poisson", "rat": 3},
        "rat: no such key for arrivals of kind 'poisson' (did you mean 'rate'?); "
        "there are ['clump', 'count', 'kind', 'rate', 'seed', 'start', 'until', 'utilisation']",
    ),
    ({"kind": "push", "until": 3}, "until: no such key for arrivals of kind 'push'; there are ['kind']"),
    ({"kind": "list", "at": [], "group": 3}, "group: no such key for arrivals of kind 'list'; there are ['at', "),
    ({"kind": "poisson"}, "rate: missing; arrivals of kind 'poisson' need it; there are only ['kind']"),
    ({"kind": "poisson", "rate": 0}, "rate: 0 is not a positive number"),
    ({"kind": "poisson", "rate": True}, "rate: True is not a positive number"),
    ({"kind": "poisson", "rate": "fast"}, "rate: 'fast' is not a positive number"),
    ({"kind": "poisson", "rate": math.nan}, "rate: nan is not a positive number"),
    ({"kind": "poisson", "rate": math.inf}, "rate: inf is not a positive number"),
    ({"kind": "poisson", "rate": 10**400}, "rate: a number of 401 digits (too large) is not"),
    ({"kind": "poisson", "rate": 1, "start": math.inf}, "start: inf is not a number"),
    ({"kind": "poisson", "rate": 1, "until": math.inf}, "until: inf is not a number"),
    ({"kind": "poisson", "rate": 1, "count": 0}, "count: 0 is not a whole number from 1"),
    ({"kind": "poisson", "rate": 1, "count": 2.0}, "count: 2.0 is not a whole number from 1"),
    ({"kind": "poisson", "rate": 1, "count": True}, "count: True is not a whole number from 1"),
    ({"kind": "poisson", "rate": 1, "seed": 1.5}, "seed: 1.5 is not a whole number"),
    ({"kind": "bursts", "rate": 1, "group": 0}, "group: 0 is not a whole number from 1"),
    ({"kind": "constant"}, "rate: none given; expected exactly one of ['rate', 'every', 'utilisation']"),
    (
        {"kind": "constant", "rate": 1, "every": 1},
        "every: ['rate', 'every'] given; expected exactly one of ['rate', 'every', 'utilisation']",
    ),
    (
        {"kind": "poisson", "rate": 1, "utilisation": 1},
        "utilisation: ['rate', 'utilisation'] given; expected at most one of ['rate', 'utilisation']",
    ),
    (
        {"kind": "poisson", "utilisation": 0.5},
        "utilisation: the CPU time per tuple is not known here: give a `rate`",
    ),
    ({"kind": "onoff", "rate": 1, "alpha": 2}, "alpha: 2 is not a number above 1 and below 2"),
    ({"kind": "onoff", "rate": 1, "sources": 0}, "sources: 0 is not a whole number from 1"),
    ({"kind": "diurnal", "rate": 1}, "period: missing; arrivals of kind 'diurnal' need it; there are only ["),
    (
        {"kind": "diurnal", "rate": 1, "period": 9, "amplitude": 1.5},
        "amplitude: 1.5 is not a number from 0 to 1",
    ),
    (
        {"kind": "flash", "rate": 1, "at": -1, "peak": 2, "decay": 1},
        "at: -1 is not a number from 0",
    ),
    (
        {"kind": "flash", "rate": 1, "at": 1, "peak": 1, "decay": 1},
        "peak: 1 is not a number above 1",
    ),
    (
        {"kind": "flash", "rate": 1, "at": 1, "peak": 2, "rise": 3, "decay": 1, "every": 2},
        "every: 2 is not a number above 3",
    ),
    ({"kind": "trace", "path": "no.csv"}, "path: no such file; looked for '"),
    ({"kind": "trace", "path": "no.csv", "loop": 1}, "loop: 1 is not a boolean (true or false)"),
    ({"kind": "constant", "every": -1}, "every: -1 is not a positive number"),
    (
        {"kind": "pareto", "flows": 1, "packets": 1},
        "shortest: missing; arrivals of kind 'pareto' need it; there are only [",
    ),
    (
        {"kind": "pareto", "flows": 1, "packets": 1, "shortest": 1, "alpha": 1},
        "alpha: 1 is not a number above 1",
    ),
    ({"kind": "piecewise", "rates": 3}, "rates: 3 given; expected a list of numbers"),
    ({"kind": "piecewise", "rates": [1, -2]}, "rates[1]: -2.0 given; expected a rate of 0 or more"),
    ({"kind": "piecewise", "rates": [0, 0]}, "rates: [0.0, 0.0] given; expected at least one rate above 0"),
    ({"kind": "piecewise", "rates": []}, "rates: [] given; expected at least one rate above 0"),
    (
        {"kind": "piecewise", "rates": [1], "order": "cycles"},
        "order: 'cycles' is not a valid choice (did you mean 'cycle'?); there are ['cycle', 'random']",
    ),
    ({"kind": "list", "at": [-1, 2]}, "at[0]: -1.0 given; time begins at 0"),
    ({"kind": "poisson", "rate": 1, "start": -2}, "start: -2.0 given; time begins at 0"),
    ({"kind": "list", "at": [0, 2, 1, 0]}, "at[2]: 1.0 given after 2.0; expected instants in ascending order"),
    ({"kind": "list", "at": [0, "1"]}, "at[1]: '1' given; expected a finite number"),
    ({"kind": "list", "at": [False]}, "at[0]: False given; expected a finite number"),
    ({"kind": "list", "at": "01"}, "at: '01' given; expected a list of numbers"),
    ({"kind": "list", "at": [0, 1], "cost": [1]}, "cost: 1 values given; expected 2, as many as 'at' has"),
    ({"kind": "list", "at": [0], "cost": {"o1": [1, 2]}}, "cost.o1: 2 values given; expected 1, as many as 'at' has"),
    ({"kind": "list", "at": [0], "cost": {"o1": [-1]}}, "cost.o1[0]: -1.0 given; expected a cost of 0 or more"),
    ({"kind": "list", "at": [0], "cost": 3}, "cost: 3 given; expected a list of numbers"),
    ({"kind": "list", "at": [0, 1], "size": [1, 0]}, "size[1]: 0.0 given; expected a size above 0"),
    ({"kind": "file", "path": ""}, "path: '' is not a string of at least one character"),
]


@pytest.mark.parametrize(("table", "message"), ERRORS)
def test_error_says_what_was_given_and_what_was_wanted(table: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        arrivals_from(table, seed=1)
    assert str(caught.value).startswith(message)
    assert caught.value.place == message.split(":")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("at\n1\nx\n", "{file}, line 3, column 'at': 'x' given; expected a finite number"),
        ("at\n1\n\nnan\n", "{file}, line 4, column 'at': 'nan' given; expected a finite number"),
        ("host,at\na,1\nb\n", "{file}, line 3: 1 values given ('b'); expected 2"),
        ("at\n1\n\n3\n2\n", "{file}, line 5, column 'at': 2.0 given after 3.0; expected instants in ascending order"),
        ("at,cost.o1\n1,-1\n", "{file}, line 2, column 'cost.o1': -1.0 given; expected a cost of 0 or more"),
        ("at,size\n1,1\n2,0\n", "{file}, line 3, column 'size': 0.0 given; expected a size above 0"),
        ("time\n1\n", "{file} has no column 'at'; there are ['time']"),
        ("", "{file} has no column 'at'; there are none"),
        ("at\n\xff\n", "cannot read {file} as CSV: 'utf-8' codec can't decode"),
        (None, "no such file; looked for {file}"),
    ],
)
def test_file_error_says_where_it_is(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    if text is not None:
        file.write_bytes(text.encode("latin-1"))
    with pytest.raises(PlanError) as caught:
        read(kind="file", path="bad.csv", folder=tmp_path)
    assert caught.value.message.startswith(message.format(file=repr(str(file))))
    assert caught.value.place in ("path", "column")


@pytest.mark.parametrize(
    ("text", "table", "message"),
    [
        ("at\n1\n3\n2\n", {}, "{file}, row 3, column 'at': 2.0 given after 3.0; expected instants in ascending order"),
        ("at,x\n1,2\n,3\n", {}, "{file}, row 2: no instant in column 'at'"),
        ("at\n1\nx\n", {}, "cannot read {file}: "),
        ("time\n1\n", {}, "{file}: no column 'at' in its header; there are ['time']"),
        ("at\n", {}, "{file} has no rows: there is nothing to replay"),
        ("at\n4\n4\n", {"loop": True}, "{file} has a single instant: a rate and `loop` need two or more"),
        ("at\n4\n", {"rate": 3}, "{file} has a single instant: a rate"),
    ],
)
def test_trace_error_says_where_it_is(text: str, table: dict[str, object], message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(PlanError) as caught:
        read(kind="trace", path="bad.csv", folder=tmp_path, **table)
    assert caught.value.message.startswith(message.format(file=repr(str(file))))
    assert caught.value.place == "path"


def test_trace_whose_speed_is_given_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("at\n1\n2\n")
    message = r"rate: \['speedup', 'rate'\] given; expected at most one of \['speedup', 'rate', 'utilisation'\]"
    with pytest.raises(PlanError, match=message):
        read(kind="trace", path="t.csv", folder=tmp_path, speedup=2, rate=3)


def test_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"path: cannot read '.*' as CSV: .*Is a directory"):
        read(kind="file", path=".", folder=tmp_path)
