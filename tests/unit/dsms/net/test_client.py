"""The client: pushed rows arrive once and in order, also when connections break; subscriptions; error messages."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.live.in_process_domain import CuttingProxy, FakeDomain, make_plan, make_routes, run_gateway, run_plan

import dsms
from actors.deployment.actor_handles import wait_until
from actors.results.release import ReleaseAtOnce
from actors.results.result_hub import ResultHub
from dsms import Batch, DsmsError
from dsms.cli import main
from dsms.data.schema import Schema
from dsms.net.access import AccessPolicy
from dsms.net.client import Client, RefusedError, Subscription
from dsms.net.client.row_conversion import make_batch
from dsms.net.client.subscription import Received
from dsms.net.tokens import Tokens

WAIT_S = 10.0
N = Schema.of({"n": "int64"})
MIXED = Schema.of({"n": "int64", "x": "float64", "ok": "bool", "at": "timestamp", "who": "string"})
PLAN = make_plan({"s": {"n": "int64"}}, all="SELECT n FROM s")
ROWS: list[dict[str, Any]] = [
    {"n": 1, "x": 0.5, "ok": True, "at": 10, "who": "ann"},
    {"n": None, "x": None, "ok": None, "at": None, "who": None},
    {"n": 3, "x": 2.0, "ok": False, "at": 30, "who": "çé🜁"},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in MIXED}


def cuts(seed: int, least: int, most: int) -> Iterator[int]:
    """Bytes until each connection is cut: forty short ones, then long ones, so that every test ends."""
    chance = random.Random(seed)
    return itertools.chain((chance.randrange(least, most) for _ in range(40)), itertools.repeat(10**12))


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        COLUMNS,
        {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
        make_batch(ROWS, MIXED, "s"),
        [{name: value for name, value in row.items() if value is not None} for row in ROWS],
    ],
    ids=["dicts", "lists", "objects", "batch", "lacking"],
)
def test_rows_in_every_form_arrive_unchanged_with_their_nulls(rows: Any) -> None:
    plan = make_plan({"s": dict(MIXED.fields)}, q="SELECT n, x, ok, at, who FROM s")
    with run_plan(plan) as (domain, _, address), dsms.connect(address) as client:
        assert client.push("s", rows) == 1
        client.flush(5)
        assert domain.records("q") == ROWS


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"n": [1.5]}, "column 'n' is float64: "),
        ({"n": ["1"]}, "column 'n' is <U1: "),
        ({"n": [1, True]}, "mixes bool with other values"),
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
def test_rows_that_do_not_fit_the_schema_are_refused_before_sending(rows: Any, reason: str) -> None:
    with run_plan(PLAN) as (domain, _, address), dsms.connect(address) as client:
        with pytest.raises(DsmsError, match=reason):
            client.push("s", rows)
        assert client.push("s", [{"n": 1}]) == 1
        client.flush(5)
        assert domain.records("all") == [{"n": 1}]


def test_the_error_for_an_unknown_stream_lists_the_existing_ones() -> None:
    with run_plan(PLAN) as (_, _, address), dsms.connect(address) as client:
        with pytest.raises(DsmsError, match=r"no stream 't' at 127.*there are \['s'\]"):
            client.push("t", {"n": [1]})
        with pytest.raises(DsmsError, match="arrived has the shape"):
            client.push("s", {"n": [1]}, arrived=[1.0, 2.0])


def test_a_large_batch_is_split() -> None:
    with run_plan(PLAN) as (domain, _, address), dsms.connect(address) as client:
        assert client.push("s", {"n": np.arange(2**20 + 1)}) == 2
        client.flush(10)
        assert np.concatenate([batch.columns["n"] for _, batch in domain.results]).tolist() == list(range(2**20 + 1))


@pytest.mark.parametrize("seed", range(3))
def test_connections_that_break_again_and_again_lose_and_duplicate_nothing(seed: int) -> None:
    outlet = ResultHub(ReleaseAtOnce())
    outlet.open({"all": (None, N, True)}, ".")
    domain = FakeDomain(PLAN, outlet)
    with run_gateway(make_routes(PLAN, domain), result_hub=outlet) as (_, address):
        # Rows that wait together become one result of up to 10 kB: it must fit between two cuts.
        cutter = CuttingProxy(address, cuts(seed, 300, 6000), cuts(seed + 100, 300, 30_000))
        with dsms.connect(cutter.address) as client:
            subscription = client.subscribe("all", after=0)
            for number in range(200):
                client.push("s", {"n": np.arange(number, number + 20)})
            client.flush(20)
            pushed = [n for number in range(200) for n in range(number, number + 20)]
            assert [row["n"] for row in domain.records("all")] == pushed
            assert cutter.cuts > 10
            received: list[int] = []
            while len(received) < len(pushed):
                received += next(subscription).columns["n"].tolist()
            assert received == pushed
        cutter.close()


def test_a_later_client_continues_the_numbers_of_its_producer() -> None:
    with run_plan(PLAN) as (domain, _, address):
        for number in (1, 2):
            with dsms.connect(address, producer="meter") as client:
                assert client.push("s", {"n": [number]}) == number
        assert domain.records("all") == [{"n": 1}, {"n": 2}]


def test_a_connection_that_ends_with_the_goodbye_is_not_made_again() -> None:
    with run_plan(PLAN) as (_, _, address):
        client, has_ended = dsms.connect(address), list[bool]()
        close = client._close

        def close_late() -> None:
            client._thread.join(WAIT_S)  # the gateway has closed the connection, and the client has noticed
            has_ended.append(not client._thread.is_alive())
            close()

        client._close = close_late
        client.close()
        assert has_ended == [True]


def test_a_newer_client_of_the_same_producer_disconnects_the_older() -> None:
    with run_plan(PLAN) as (_, _, address):
        older = dsms.connect(address, producer="meter")
        subscription = older.subscribe("all")
        with dsms.connect(address, producer="meter"):
            with pytest.raises(DsmsError, match="has connected again"):
                next(subscription)
            with pytest.raises(DsmsError, match="has connected again"):
                older.push("s", {"n": [1]})
        with pytest.raises(DsmsError):
            older.close()


def test_a_refused_connection_fails_at_once_and_a_lost_gateway_after_the_patience() -> None:
    with run_plan(PLAN) as (_, gateway, address):
        client = dsms.connect(address, patience=0.2)
        gateway.close()
        with pytest.raises(DsmsError, match=r"for \d+ s: Connect"):
            next(client.subscribe("all"))
        with pytest.raises(DsmsError, match="no connection"):
            client.push("s", {"n": [1]})
    with pytest.raises(DsmsError, match=f"cannot connect to {address}: Connection refused"):
        dsms.connect(address)


@pytest.mark.parametrize("address", ["here", "h:", ":1", "h:0", "h:99999", "h:x"])
def test_a_bad_address_is_refused(address: str) -> None:
    with pytest.raises(DsmsError, match="is not an address: expected HOST:PORT"):
        dsms.connect(address)


def test_address_and_token_may_come_from_environment_variables(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("right\n")
    (tmp_path / "token").chmod(0o600)
    with run_plan(PLAN, terms=AccessPolicy(Tokens.of(control="right"))) as (_, _, address):
        monkeypatch.setenv("DSMS_ADDRESS", address)
        monkeypatch.setenv("DSMS_TOKEN_FILE", str(tmp_path / "token"))
        with dsms.connect() as client:
            assert client.streams == {"s": N}
        monkeypatch.setenv("DSMS_TOKEN_FILE", str(tmp_path / "none"))
        with pytest.raises(DsmsError, match="DSMS_TOKEN_FILE"):
            dsms.connect()


def test_a_refused_push_is_raised_once_by_the_next_call_and_names_it() -> None:
    plan = make_plan({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")
    with run_plan(plan) as (domain, gateway, address), dsms.connect(address) as client:
        gateway.serve(make_routes(PLAN, domain))  # the client still has the schema of t
        client.push("t", {"n": [1]})
        with pytest.raises(RefusedError, match="push 1 was refused: data: no stream 't'") as raised:
            client.flush(5)
        assert raised.value.sequences == [1]
        client.push("s", {"n": [2]})
        client.flush(5)
        assert domain.records("a") == [{"n": 2}]


def test_pushes_with_explicit_numbers_are_accepted_once_from_any_client_of_a_producer() -> None:
    with run_plan(PLAN) as (domain, _, address):
        for _ in range(2):  # the second client repeats the pushes of the first
            with dsms.connect(address, producer="p") as client:
                for number in (10, 20, 21):
                    assert client.push("s", {"n": [number]}, number=number) == number
        with dsms.connect(address, producer="p") as client:
            client.push("s", {"n": [21]}, number=21)
            client.push("s", {"n": [30]}, number=30)
        assert domain.records("all") == [{"n": n} for n in (10, 20, 21, 30)]


def test_a_refused_push_can_be_sent_again_under_its_number() -> None:
    plan = make_plan({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")

    def push_all(client: Client) -> None:
        with client:
            gateway.serve(make_routes(known, domain))  # the client has the schema of t
            for stream, number in (("s", 6), ("t", 7), ("s", 8)):
                client.push(stream, {"n": [number]}, number=number)

    with run_plan(plan) as (domain, gateway, address):
        known = PLAN
        with pytest.raises(RefusedError, match="push 7"):
            push_all(dsms.connect(address, producer="p"))
        known = plan
        gateway.serve(make_routes(plan, domain))
        push_all(dsms.connect(address, producer="p"))
        assert (domain.records("a"), domain.records("b")) == ([{"n": 6}, {"n": 8}], [{"n": 7}])


def test_a_push_with_an_explicit_number_must_fit_one_frame() -> None:
    refused = pytest.raises(
        DsmsError, match="push 1 into 's': the rows need 2 frames; a numbered push must fit into one"
    )
    with run_plan(PLAN) as (_, _, address), dsms.connect(address) as client, refused:
        client.push("s", {"n": np.zeros(2**20 + 1, np.int64)}, number=1)


def test_a_push_waits_while_the_send_window_is_full() -> None:
    with run_plan(PLAN) as (domain, _, address), dsms.connect(address) as client:
        domain.gate.clear()
        pushing = threading.Thread(target=lambda: [client.push("s", {"n": [number]}) for number in range(300)])
        pushing.start()
        pushing.join(0.3)
        assert pushing.is_alive()
        domain.gate.set()
        pushing.join(5)
        client.flush(5)
        assert domain.records("all") == [{"n": number} for number in range(300)]


def test_a_callback_gets_every_batch_and_close_raises_its_error() -> None:
    with run_plan(PLAN) as (_, gateway, address), dsms.connect(address) as client:
        seen: list[int] = []
        enough = threading.Event()

        def record(batch: Received) -> None:
            seen.append(batch.number)
            if len(seen) == 3:
                enough.set()
                raise ValueError("enough")

        subscription = client.subscribe("all", callback=record)
        with pytest.raises(DsmsError, match="has a subscription already"):
            client.subscribe("all")
        while not gateway.status()["subscribers"]:
            pass
        for number in (1, 2, 3):
            gateway.results([("all", number, Batch.of({"n": [number]}))])
        assert enough.wait(5)
        with pytest.raises(ValueError, match="enough"):
            subscription.close()
        assert seen == [1, 2, 3]


def test_a_subscription_that_is_not_read_fails_at_its_limit() -> None:
    unsubscribed: list[bool] = []
    subscription = Subscription("q", None, lambda: unsubscribed.append(True), limit=20)
    for number in (1, 2, 4):
        subscription.deliver(Received({"n": np.array([number])}, 1, number=number))
    assert subscription.missed == 1
    assert unsubscribed == [True]
    subscription.deliver(Received({"n": np.array([5])}, 1, number=5))
    assert [next(subscription).number for _ in range(3)] == [1, 2, 4]
    with pytest.raises(DsmsError, match="more than 20 bytes are received and not read"):
        next(subscription)


def test_the_command_line_pushes_files_and_prints_results(
    tmp_path: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outlet = ResultHub(ReleaseAtOnce())
    outlet.open({"all": (None, N, True)}, ".")
    domain = FakeDomain(PLAN, outlet)
    (tmp_path / "rows.csv").write_text("n\n1\n2\n3\n")
    with run_gateway(make_routes(PLAN, domain), result_hub=outlet) as (_, address):
        monkeypatch.setenv("DSMS_ADDRESS", address)
        assert main(["push", "s", str(tmp_path / "rows.csv"), "--batch", "2"]) == 0
        assert "3 rows pushed into s" in capfd.readouterr().err
        assert wait_until(lambda: outlet.status()["queries"][0]["rows"] == 3, 10)
        last = outlet.status()["queries"][0]["results"]  # small frames that wait together give one
        outlet.take([("all", last + 1, Batch.of({"n": [1]}, ts=9, sign=-1))])
        assert main(["tail", "all", "--after", "0", "--limit", "4"]) == 0
        lines = capfd.readouterr().out.splitlines()
        assert [line.split(", ", 1)[1] for line in lines] == ['"n": 1}', '"n": 2}', '"n": 3}', '"sign": -1, "n": 1}']
        assert main(["tail", "all", "--after", str(last), "--limit", "1", "--sign"]) == 0
        assert capfd.readouterr().out == '{"ts": 9, "sign": -1, "n": 1}\n'
        assert main(["tail", "none"]) == 2
        assert "no query 'none'" in capfd.readouterr().err
        assert main(["push", "t", str(tmp_path / "rows.csv")]) == 2
        assert main(["push", "s", str(tmp_path / "rows.xml")]) == 2


def test_a_push_accepts_an_iterator_of_rows_and_refuses_other_values() -> None:
    with run_plan(PLAN) as (domain, _, address), dsms.connect(address) as client:
        client.push("s", ({"n": number} for number in range(3)))
        client.flush(10)
        assert domain.records("all") == [{"n": 0}, {"n": 1}, {"n": 2}]
        for wrong in (None, 3, {"n": 1}, "text"):
            with pytest.raises(DsmsError, match="expected"):
                client.push("s", wrong)
