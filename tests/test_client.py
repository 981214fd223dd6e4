"""The client: whatever happens to its connection, what is pushed arrives once and in order."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from live_parts import Cutter, Domain, plan_of, routes_of, running, serving

import dsms
from actors.outlet import Outlet
from dsms import Batch, DsmsError
from dsms.cli import main
from dsms.client import Client, RefusedError, Subscription
from dsms.client.rows import batch_from
from dsms.client.subscription import Received
from dsms.live.terms import Terms
from dsms.schema import Schema
from dsms.tokens import Tokens

N = Schema.of({"n": "int64"})
MIXED = Schema.of({"n": "int64", "x": "float64", "ok": "bool", "at": "timestamp", "who": "string"})
PLAN = plan_of({"s": {"n": "int64"}}, all="SELECT n FROM s")
ROWS: list[dict[str, Any]] = [
    {"n": 1, "x": 0.5, "ok": True, "at": 10, "who": "ann"},
    {"n": None, "x": None, "ok": None, "at": None, "who": None},
    {"n": 3, "x": 2.0, "ok": False, "at": 30, "who": "çé🜁"},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in MIXED}


def cuts(seed: int, least: int, most: int) -> Iterator[int]:
    """Some connections end early; the last that a test needs must not."""
    chance = random.Random(seed)
    return itertools.chain((chance.randrange(least, most) for _ in range(40)), itertools.repeat(10**12))


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        COLUMNS,
        {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
        batch_from(ROWS, MIXED, "s"),
        [{name: value for name, value in row.items() if value is not None} for row in ROWS],
    ],
    ids=["dicts", "lists", "objects", "batch", "lacking"],
)
def test_rows_of_every_kind_with_nulls_arrive_as_they_were(rows: Any) -> None:
    plan = plan_of({"s": dict(MIXED.fields)}, q="SELECT n, x, ok, at, who FROM s")
    with running(plan) as (domain, _, address), dsms.connect(address) as client:
        assert client.push("s", rows) == 1
        client.flush(5)
        assert domain.records("q") == ROWS


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"n": [1.5]}, "column 'n' is float64: int64 is wanted"),
        ({"n": ["1"]}, "column 'n' is <U1: int64 is wanted"),
        ({"n": [1, True]}, "truth values among others"),
        ({"m": [1]}, "no column 'n'"),
        ({"n": [1], "m": [1]}, "no column 'm' is declared"),
        ([{"m": 1}], "no column 'm' is declared"),
        ([7], "a row is 7"),
        ({"n": [2**70]}, "column 'n' is object"),
        ({"n": np.zeros((2, 2), dtype=int)}, "2 dimensions"),
        ({"n": [[1], [1, 2]]}, "column 'n'"),
        (Batch.of({"n": [1]}, sign=-1), "sign -1"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_they_are_sent(rows: Any, reason: str) -> None:
    with running(PLAN) as (domain, _, address), dsms.connect(address) as client:
        with pytest.raises(DsmsError, match=reason):
            client.push("s", rows)
        assert client.push("s", [{"n": 1}]) == 1
        client.flush(5)
        assert domain.records("all") == [{"n": 1}]


def test_a_stream_that_is_not_there_is_named_with_those_that_are() -> None:
    with running(PLAN) as (_, _, address), dsms.connect(address) as client:
        with pytest.raises(DsmsError, match=r"no stream 't' at 127.*there are \['s'\]"):
            client.push("t", {"n": [1]})
        with pytest.raises(DsmsError, match="arrivals of the shape"):
            client.push("s", {"n": [1]}, arrived=[1.0, 2.0])


def test_a_large_batch_is_cut() -> None:
    with running(PLAN) as (domain, _, address), dsms.connect(address) as client:
        assert client.push("s", {"n": np.arange(2**20 + 1)}) == 2
        client.flush(10)
        assert np.concatenate([batch.columns["n"] for _, batch in domain.results]).tolist() == list(range(2**20 + 1))


@pytest.mark.parametrize("seed", range(3))
def test_a_connection_that_is_cut_again_and_again_loses_and_doubles_nothing(seed: int) -> None:
    outlet = Outlet()
    outlet.open({"all": (None, N, True)}, ".")
    domain = Domain(PLAN, outlet)
    with serving(routes_of(PLAN, domain), outlet=outlet) as (_, address):
        cutter = Cutter(address, cuts(seed, 300, 6000), cuts(seed + 100, 300, 6000))
        with dsms.connect(cutter.address) as client:
            wanted = client.subscribe("all", after=0)
            for number in range(200):
                client.push("s", {"n": np.arange(number, number + 20)})
            client.flush(20)
            pushed = [n for number in range(200) for n in range(number, number + 20)]
            assert [row["n"] for row in domain.records("all")] == pushed
            assert cutter.cuts > 10
            found: list[int] = []
            while len(found) < len(pushed):
                found += next(wanted).columns["n"].tolist()
            assert found == pushed
        cutter.close()


def test_a_later_program_goes_on_under_the_same_name() -> None:
    with running(PLAN) as (domain, _, address):
        for number in (1, 2):
            with dsms.connect(address, producer="meter") as client:
                assert client.push("s", {"n": [number]}) == number
        assert domain.records("all") == [{"n": 1}, {"n": 2}]


def test_a_newer_client_of_the_same_name_ends_the_older() -> None:
    with running(PLAN) as (_, _, address):
        older = dsms.connect(address, producer="meter")
        wanted = older.subscribe("all")
        with dsms.connect(address, producer="meter"):
            with pytest.raises(DsmsError, match="has connected anew"):
                next(wanted)
            with pytest.raises(DsmsError, match="has connected anew"):
                older.push("s", {"n": [1]})
        with pytest.raises(DsmsError):
            older.close()


def test_nobody_there_is_said_at_once_and_a_gateway_that_goes_away_is_given_up() -> None:
    with running(PLAN) as (_, gateway, address):
        client = dsms.connect(address, patience=0.2)
        gateway.close()
        with pytest.raises(DsmsError, match=r"for \d+ s: Connect"):
            next(client.subscribe("all"))
        with pytest.raises(DsmsError, match="no connection"):
            client.push("s", {"n": [1]})
    with pytest.raises(DsmsError, match=f"cannot connect to {address}: Connection refused"):
        dsms.connect(address)


@pytest.mark.parametrize("address", ["here", "h:", ":1", "h:0", "h:99999", "h:x"])
def test_what_is_no_address_is_said(address: str) -> None:
    with pytest.raises(DsmsError, match="HOST:PORT is wanted"):
        dsms.connect(address)


def test_address_and_token_may_come_from_the_surroundings(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("right\n")
    (tmp_path / "token").chmod(0o600)
    with running(PLAN, terms=Terms(Tokens.of(control="right"))) as (_, _, address):
        monkeypatch.setenv("DSMS_ADDRESS", address)
        monkeypatch.setenv("DSMS_TOKEN_FILE", str(tmp_path / "token"))
        with dsms.connect() as client:
            assert client.streams == {"s": N}
        monkeypatch.setenv("DSMS_TOKEN_FILE", str(tmp_path / "none"))
        with pytest.raises(DsmsError, match="DSMS_TOKEN_FILE"):
            dsms.connect()


def test_a_refused_push_is_raised_once_by_the_next_call_and_names_it() -> None:
    plan = plan_of({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")
    with running(plan) as (domain, gateway, address), dsms.connect(address) as client:
        gateway.serve(routes_of(PLAN, domain))  # the client still knows of t
        client.push("t", {"n": [1]})
        with pytest.raises(RefusedError, match="push 1 was refused: data: no stream 't'") as raised:
            client.flush(5)
        assert raised.value.sequences == [1]
        client.push("s", {"n": [2]})
        client.flush(5)
        assert domain.records("a") == [{"n": 2}]


def test_pushes_under_numbers_of_their_own_are_taken_once_by_whomever_they_are_sent() -> None:
    with running(PLAN) as (domain, _, address):
        for _ in range(2):  # the second does all over again what the first has done, and one push more
            with dsms.connect(address, producer="p") as client:
                for number in (10, 20, 21):
                    assert client.push("s", {"n": [number]}, number=number) == number
        with dsms.connect(address, producer="p") as client:
            client.push("s", {"n": [21]}, number=21)
            client.push("s", {"n": [30]}, number=30)
        assert domain.records("all") == [{"n": n} for n in (10, 20, 21, 30)]


def test_what_was_refused_is_no_push_that_was_taken_for_who_sends_it_again() -> None:
    plan = plan_of({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")

    def pushed(client: Client) -> None:
        with client:
            gateway.serve(routes_of(known, domain))  # the client knows of t
            for stream, number in (("s", 6), ("t", 7), ("s", 8)):
                client.push(stream, {"n": [number]}, number=number)

    with running(plan) as (domain, gateway, address):
        known = PLAN
        with pytest.raises(RefusedError, match="push 7"):
            pushed(dsms.connect(address, producer="p"))
        known = plan
        gateway.serve(routes_of(plan, domain))
        pushed(dsms.connect(address, producer="p"))
        assert (domain.records("a"), domain.records("b")) == ([{"n": 6}, {"n": 8}], [{"n": 7}])


def test_one_number_is_one_frame() -> None:
    said = pytest.raises(DsmsError, match="push 1 into 's': 2 frames are needed for one number")
    with running(PLAN) as (_, _, address), dsms.connect(address) as client, said:
        client.push("s", {"n": np.zeros(2**20 + 1, np.int64)}, number=1)


def test_a_push_waits_while_too_much_is_not_acknowledged() -> None:
    with running(PLAN) as (domain, _, address), dsms.connect(address) as client:
        domain.gate.clear()
        pushing = threading.Thread(target=lambda: [client.push("s", {"n": [number]}) for number in range(300)])
        pushing.start()
        pushing.join(0.3)
        assert pushing.is_alive()
        domain.gate.set()
        pushing.join(5)
        client.flush(5)
        assert domain.records("all") == [{"n": number} for number in range(300)]


def test_a_callback_is_called_with_every_batch_and_what_it_raises_is_raised() -> None:
    with running(PLAN) as (_, gateway, address), dsms.connect(address) as client:
        seen: list[int] = []
        enough = threading.Event()

        def look(batch: Received) -> None:
            seen.append(batch.number)
            if len(seen) == 3:
                enough.set()
                raise ValueError("enough")

        wanted = client.subscribe("all", callback=look)
        with pytest.raises(DsmsError, match="subscribed to already"):
            client.subscribe("all")
        while not gateway.status()["subscribers"]:
            pass
        for number in (1, 2, 3):
            gateway.results([("all", number, Batch.of({"n": [number]}))])
        assert enough.wait(5)
        with pytest.raises(ValueError, match="enough"):
            wanted.close()
        assert seen == [1, 2, 3]


def test_a_subscription_that_is_not_looked_at_fails_rather_than_grow() -> None:
    left: list[bool] = []
    wanted = Subscription("q", None, lambda: left.append(True), most=20)
    for number in (1, 2, 4):
        wanted.give(Received({"n": np.array([number])}, 1, number=number))
    assert wanted.missed == 1
    assert left == [True]
    wanted.give(Received({"n": np.array([5])}, 1, number=5))
    assert [next(wanted).number for _ in range(3)] == [1, 2, 4]
    with pytest.raises(DsmsError, match="more than 20 bytes wait to be looked at"):
        next(wanted)


def test_results_are_printed_as_lines_and_files_are_pushed(
    tmp_path: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outlet = Outlet()
    outlet.open({"all": (None, N, True)}, ".")
    domain = Domain(PLAN, outlet)
    (tmp_path / "rows.csv").write_text("n\n1\n2\n3\n")
    with serving(routes_of(PLAN, domain), outlet=outlet) as (_, address):
        monkeypatch.setenv("DSMS_ADDRESS", address)
        assert main(["push", "s", str(tmp_path / "rows.csv"), "--batch", "2"]) == 0
        assert "3 rows pushed into s" in capfd.readouterr().err
        outlet.take([("all", 3, Batch.of({"n": [1]}, ts=9, sign=-1))])
        assert main(["tail", "all", "--after", "0", "--limit", "4"]) == 0
        lines = capfd.readouterr().out.splitlines()
        assert [line.split(", ", 1)[1] for line in lines] == ['"n": 1}', '"n": 2}', '"n": 3}', '"sign": -1, "n": 1}']
        assert main(["tail", "all", "--after", "2", "--limit", "1", "--sign"]) == 0
        assert capfd.readouterr().out == '{"ts": 9, "sign": -1, "n": 1}\n'
        assert main(["tail", "none"]) == 2
        assert "no query 'none'" in capfd.readouterr().err
        assert main(["push", "t", str(tmp_path / "rows.csv")]) == 2
        assert main(["push", "s", str(tmp_path / "rows.xml")]) == 2


def test_rows_may_come_one_by_one_and_what_is_none_is_refused() -> None:
    with running(PLAN) as (domain, _, address), dsms.connect(address) as client:
        client.push("s", ({"n": number} for number in range(3)))
        client.flush(10)
        assert domain.records("all") == [{"n": 0}, {"n": 1}, {"n": 2}]
        for wrong in (None, 3, {"n": 1}, "text"):
            with pytest.raises(DsmsError, match=r"is wanted|are wanted"):
                client.push("s", wrong)
