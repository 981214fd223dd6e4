"""The gateway takes rows over TCP and sends them to domains, here engines in this process."""

from __future__ import annotations

import inspect
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.live.in_process_domain import HOST, WAIT, FakeDomain, Gateways, make_plan, make_routes

import dsms
from actors.deployment.actor_handles import wait_until
from actors.ingest.gateway import Gateway, GatewayActor
from actors.ingest.intake import INLINE_LIMIT_BYTES
from dsms import Batch, DsmsError
from dsms.data.schema import Schema
from dsms.live.routes import Routes, StreamRoute
from dsms.net.access import AccessPolicy
from dsms.net.tokens import Tokens
from dsms.net.wire import Ack, Data, Decoder, Error, Hello, Message, Result, Schemas, Subscribe, WireError, encode

NUMBERS = {"s": {"n": "int64"}}
PLAN = make_plan(NUMBERS, all="SELECT n FROM s", big="SELECT n FROM s WHERE n > 2")
N = Schema.of({"n": "int64"})


@pytest.fixture(params=["memory", "stored"])
def gateways(request: pytest.FixtureRequest, tmp_path: Path) -> Gateways:
    return Gateways(tmp_path if request.param == "stored" else None)


def rows(*numbers: int) -> Batch:
    return Batch.of({"n": np.array(numbers, dtype=np.int64)})


class Raw:
    """A client that sends any message a test needs."""

    def __init__(self, address: str, *messages: Message) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 10)
        self._decoder = Decoder(learns=True)
        self._found: list[Message | WireError] = []
        self.say(*messages)

    def say(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(part for message in messages for part in encode(message)))

    def next(self, kind: type[Any] = object) -> Any:
        """The next message of a kind; None at the end of the connection."""
        while True:
            while self._found:
                if isinstance(found := self._found.pop(0), kind):
                    return found
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._found = self._decoder.feed(data)


def test_a_hello_is_answered_by_schemas_and_the_producers_position(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (_, _, address):
        raw = Raw(address, Hello("p", ""))
        assert raw.next() == Schemas(streams={"s": N})
        assert raw.next().queries == {"all": N, "big": N}
        assert raw.next() == Ack("p", 0)


def test_frames_are_acknowledged_and_taken_once_and_a_bad_one_harms_no_other(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (domain, gateway, address):
        raw = Raw(address, Hello("p", ""))
        raw.next(Ack)
        raw.say(Data("s", 1, rows(1), N), Data("s", 1, rows(1), N), Data("t", 2, rows(7), N), Data("s", 3, rows(3), N))
        error = raw.next(Error)
        assert (error.sequence, "no stream 't'" in error.reason) == (2, True)
        while raw.next(Ack).sequence < 3:
            pass
        assert domain.records("all", 2) == [{"n": 1}, {"n": 3}]
        assert domain.records("big") == [{"n": 3}]
        again = Raw(address, Hello("p", ""))
        assert again.next(Ack) == Ack("p", 3)
        status = gateway.status()
        assert (status["rows"], status["rejected"]) == (2, 1)


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_client_with_a_wrong_token_is_told_why_and_dropped(gateways: Gateways, token: str) -> None:
    with gateways.run_plan(PLAN, terms=AccessPolicy(Tokens.of(control="right"))) as (_, _, address):
        raw = Raw(address, Hello("p", token))
        assert "token" in raw.next(Error).reason
        assert raw.next() is None
        with pytest.raises(DsmsError, match=r"connect to 127\.0\.0\.1:[0-9]+: authentication failed: unknown token"):
            dsms.connect(address, token=token)
        with dsms.connect(address, token="right") as client:
            assert set(client.streams) == {"s"}


def test_a_client_without_a_hello_is_dropped(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN, terms=AccessPolicy(hello=0.05)) as (_, _, address):
        raw = Raw(address)
        assert raw.next(Error) == Error("no hello within 0.05 s")
        assert raw.next() is None


def test_of_two_connections_of_one_producer_the_newer_stays(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (_, _, address):
        older = Raw(address, Hello("p", ""))
        older.next(Ack)
        newer = Raw(address, Hello("p", ""))
        assert newer.next(Ack) == Ack("p", 0)
        assert "has connected again" in older.next(Error).reason
        assert older.next() is None
        newer.say(Data("s", 1, rows(1), N))
        assert newer.next(Ack) == Ack("p", 1)


def test_a_port_in_use_is_named(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (_, _, address):
        gateway = gateways.make("other")
        gateway.serve(Routes())
        with pytest.raises(DsmsError, match=f"cannot listen at {address}"):
            gateway.listen(HOST, int(address.rsplit(":", 1)[1]))
        gateway.close()


def test_a_gateway_takes_clients_only_once_it_knows_where_rows_go(gateways: Gateways) -> None:
    gateway = gateways.make("g")
    with pytest.raises(DsmsError, match="gateway 'g' has no routes yet"):
        gateway.listen(HOST, 0)
    gateway.close()


def test_frames_that_arrive_during_a_call_share_the_next_one(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (domain, gateway, address):
        client = dsms.connect(address)
        domain.gate.clear()
        for number in range(100):
            client.push("s", rows(number))
        while gateway.status()["rows"] < 100:
            pass
        domain.gate.set()
        client.close()
        assert domain.records("all", 100) == [{"n": number} for number in range(100)]
        arrivals = [call for call in domain.calls if call.startswith("arrived")]
        assert len(arrivals) <= 3
        assert domain.calls == arrivals  # small frames travel with their references


def test_a_connection_is_not_read_while_too_many_of_its_bytes_are_in_flight(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN, terms=AccessPolicy(stored=4_000_000)) as (domain, gateway, address):
        raw = Raw(address, Hello("p", ""))
        raw.next(Ack)
        domain.gate.clear()
        frames = [Data("s", number, rows(*range(1000)), N) for number in range(1, 5001)]
        pushing = threading.Thread(target=raw.say, args=frames)
        pushing.start()
        pushing.join(0.5)
        assert pushing.is_alive()
        assert gateway.status()["rows"] < 1_000_000
        domain.gate.set()
        while raw.next(Ack).sequence < 5000:
            pass
        pushing.join()
        assert wait_until(
            lambda: sum(len(batch) for query, batch in domain.results if query == "all") == 5_000_000, WAIT
        )


def test_rows_of_a_stream_without_readers_are_counted_and_dropped(gateways: Gateways) -> None:
    with gateways.run_gateway(Routes({"s": StreamRoute(N)})) as (gateway, address), dsms.connect(address) as client:
        client.push("s", {"n": [1, 2, 3]})
        client.flush(5)
        assert gateway.status()["rows"] == 3


def test_held_rows_wait_for_new_routes(gateways: Gateways) -> None:
    plan = make_plan({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")
    with gateways.run_plan(plan) as (before, gateway, address):
        client = dsms.connect(address)
        client.push("s", {"n": [1]})
        client.flush(5)
        assert before.records("a", 1) == [{"n": 1}]
        gateway.hold(["s"])
        client.push("t", {"n": [5]})
        client.flush(5)
        client.push("s", {"n": [2]})
        client.push("t", {"n": [6]})
        if gateways.is_stored:
            client.flush(5)
        else:
            with pytest.raises(DsmsError, match="has not acknowledged 2 pushes"):
                client.flush(0.1)
            assert before.records("b", 2) == [{"n": 5}, {"n": 6}]  # others do not wait
        after = FakeDomain(plan)
        after.positions = dict(before.positions)
        gateway.serve(make_routes(plan, after))
        client.close()
        assert after.records("a", 1) == [{"n": 2}]
        if gateways.is_stored:
            assert after.records("b", 2) == [{"n": 5}, {"n": 6}]
        assert (before.records("a"), len(before.records("b")) + len(after.records("b"))) == ([{"n": 1}], 2)


def test_new_streams_are_announced_to_connected_clients(gateways: Gateways) -> None:
    with gateways.run_gateway(Routes()) as (gateway, address):
        raw = Raw(address, Hello("p", ""))
        raw.next(Ack)
        gateway.serve(Routes({"s": StreamRoute(N)}))
        assert raw.next(Schemas).streams == {"s": N}
        raw.say(Data("s", 1, rows(1), N))
        assert raw.next(Ack) == Ack("p", 1)


def test_rows_go_to_every_domain_that_reads_their_stream(gateways: Gateways) -> None:
    one, two = FakeDomain(PLAN), FakeDomain(PLAN)
    with gateways.run_gateway(make_routes(PLAN, one, two)) as (_, address), dsms.connect(address) as client:
        client.push("s", {"n": [1, 2, 3]})
        client.flush(5)
        assert one.records("big", 1) == two.records("big", 1) == [{"n": 3}]


def test_two_gateways_serve_one_domain(gateways: Gateways) -> None:
    domain = FakeDomain(PLAN)
    routes = make_routes(PLAN, domain)
    with gateways.run_gateway(routes, "a") as (_, first), gateways.run_gateway(routes, "b") as (_, second):
        for address, numbers in ((first, [1, 2]), (second, [3, 4])):
            with dsms.connect(address) as client:
                client.push("s", {"n": numbers})
            domain.records("all", numbers[-1])
    assert domain.records("all") == [{"n": number} for number in (1, 2, 3, 4)]
    assert len({ref.key for ref in domain.batch_refs}) == 2


def test_scheduled_arrivals_are_in_seconds_of_the_deployment(gateways: Gateways) -> None:
    domain = FakeDomain(PLAN)
    with gateways.run_gateway(make_routes(PLAN, domain, epoch=1000.0)) as (_, address), dsms.connect(address) as client:
        client.push("s", {"n": [1, 2]}, arrived=[1000.5, 1002.0])
        client.push("s", {"n": [3]})
        client.flush(5)
        domain.records("all", 3)
    assert [ref.due for ref in domain.batch_refs] == [1.25, None]
    assert domain.due[0].tolist() == [0.5, 2.0]


def test_a_batch_reference_has_the_latest_timestamp_of_the_timestamp_column(gateways: Gateways) -> None:
    plan = dsms.plan_from(
        {
            "streams": {"s": {"schema": {"at": "timestamp", "n": "int64"}, "timestamp": "at"}},
            "queries": {"q": {"cql": "SELECT n FROM s"}},
        }
    )
    with gateways.run_plan(plan) as (domain, _, address), dsms.connect(address) as client:
        client.push("s", [{"at": 5, "n": 1}, {"at": 9, "n": 2}])
        client.advance("s", 20)
        client.flush(5)
        client.end("s")
        client.flush(5)
        assert wait_until(lambda: "end" in domain.calls, WAIT)
        assert [ref.latest for ref in domain.batch_refs] == [9]
        assert domain.calls == ["arrived 1", "advance s 20", "end"]


def test_a_large_frame_goes_to_its_hosts_and_only_its_description_to_the_scheduler(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (domain, _, address), dsms.connect(address) as client:
        for frame, count in enumerate((INLINE_LIMIT_BYTES // 8, INLINE_LIMIT_BYTES // 8 + 1), 1):
            client.push("s", rows(*range(count)))
            while len(domain.batch_refs) < frame:
                pass
        assert sorted(domain.calls) == ["arrived 1", "arrived 1", "put 1"]
        assert [ref.batch is None for ref in domain.batch_refs] == [False, True]
        assert len(domain.records("all")) == INLINE_LIMIT_BYTES // 4 + 1


def test_the_scheduler_is_notified_when_all_streams_have_ended_and_later_rows_are_refused(gateways: Gateways) -> None:
    plan = make_plan({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")
    with gateways.run_plan(plan) as (domain, _, address):
        client = dsms.connect(address)
        client.end("s")
        client.flush(5)
        assert "end" not in domain.calls
        client.push("s", {"n": [1]})
        with pytest.raises(DsmsError, match="rows for 's' after its end"):
            client.flush(5)
        client.end("t")
        client.close()
        assert wait_until(lambda: bool(domain.calls), WAIT)
        assert domain.calls == ["end"]


def test_rows_that_a_scheduler_refuses_are_reported_with_their_number_or_delivered_later(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (domain, gateway, address), dsms.connect(address) as client:
        domain.error = "no room"
        number = client.push("s", {"n": [1]})
        if gateways.is_stored:
            client.flush(5)
            assert wait_until(lambda: gateway.status()["log"]["error"] == "no room", WAIT)
        else:
            with pytest.raises(DsmsError, match=f"push {number} was refused: no room"):
                client.flush(5)
        domain.error = None
        client.push("s", {"n": [2]})
        client.flush(5)
        delivered = [{"n": 1}, {"n": 2}] if gateways.is_stored else [{"n": 2}]
        assert domain.records("all", len(delivered)) == delivered


def test_a_subscriber_that_does_not_read_is_dropped_and_others_are_not_slowed(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (_, gateway, address):
        slow, quick = Raw(address, Hello("slow", "")), dsms.connect(address)
        slow.next(Ack)
        slow.say(Subscribe("all"))
        wanted = quick.subscribe("all")
        while gateway.status()["subscribers"] < 2:
            pass
        batch = Batch.of({"n": np.zeros(2**19, dtype=np.int64)}, ts=0)  # 8 MiB with ts
        for number in range(1, 20):
            gateway.results([("all", number, batch)])
            assert next(wanted).number == number
        assert gateway.status()["subscribers"] == 1
        while not isinstance(found := slow.next(Result | Error), Error):
            assert found is not None
        assert "too slow" in found.reason
        quick.close()


def test_results_that_arrive_out_of_order_are_sent_in_order(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (_, gateway, address), dsms.connect(address) as client:
        wanted = client.subscribe("all")
        while not gateway.status()["subscribers"]:
            pass
        for number in (1, 3, 4, 2, 2, 5):
            gateway.results([("all", number, rows(number))])
        assert [next(wanted).number for _ in range(5)] == [1, 2, 3, 4, 5]


def test_ray_keeps_the_order_of_calls_to_a_gateway():
    """It would not if any method were `async`, nor with `max_concurrency`."""
    assert not inspect.getmembers(Gateway, inspect.iscoroutinefunction)
    assert "max_concurrency" not in GatewayActor._remote_class._default_options


def test_hold_waits_for_earlier_rows_and_serve_sends_the_rest_in_order(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (domain, gateway, address):
        client = dsms.connect(address)
        domain.gate.clear()
        client.push("s", rows(1))
        assert wait_until(lambda: gateway.status()["rows"] == 1, WAIT)
        holding = threading.Thread(target=gateway.hold, args=(["s"],))
        holding.start()
        holding.join(0.1)
        assert holding.is_alive()
        domain.gate.set()
        holding.join(10)
        for number in (2, 3, 4):
            client.push("s", rows(number))
        gateway.serve(make_routes(PLAN, domain))
        client.close()
        assert domain.records("all", 4) == [{"n": number} for number in (1, 2, 3, 4)]


@pytest.mark.parametrize(("at", "said"), [([5, None], "of row 1 is null"), ([5, 2**60], "out of range")])
def test_rows_without_a_valid_timestamp_are_refused_and_others_are_taken(
    gateways: Gateways, at: list[Any], said: str
) -> None:
    stream = {"schema": {"at": "timestamp"}, "timestamp": "at"}
    plan = dsms.plan_from({"streams": {"s": stream}, "queries": {"all": {"cql": "SELECT at FROM s"}}})
    with gateways.run_plan(plan) as (domain, _, address), dsms.connect(address) as client:
        client.push("s", {"at": at})
        with pytest.raises(DsmsError, match=said):
            client.flush(10)
        client.push("s", {"at": [7]})
        client.flush(10)
        domain.records("all", 1)
        assert [ref.rows for ref in domain.batch_refs] == [1]


def flushed(client: Any) -> None:
    """Wait until all rows are acknowledged, or the client is closed."""
    with suppress(DsmsError):
        client.flush()


def test_closing_does_not_reconnect_and_ends_every_wait(gateways: Gateways) -> None:
    with gateways.run_plan(PLAN) as (domain, gateway, address):
        registered = []
        register = gateway._sessions.register_client

        def register_client(connection: Any, name: str) -> None:
            registered.append(name)
            register(connection, name)

        gateway._sessions.register_client = register_client
        client = dsms.connect(address, producer="p")
        domain.gate.clear()
        client.push("s", rows(1))
        waiting = threading.Thread(target=flushed, args=(client,))
        waiting.start()
        if gateways.is_stored:
            client.close()
        else:
            with pytest.raises(DsmsError, match="not acknowledged"):
                client.close(0.1)
        waiting.join(10)
        assert not waiting.is_alive()
        domain.gate.set()
        assert registered == ["p"]


def test_no_client_is_read_while_too_many_bytes_of_all_are_in_flight(gateways: Gateways) -> None:
    with (
        gateways.run_plan(PLAN, terms=AccessPolicy(stored=2000)) as (domain, gateway, address),
        dsms.connect(address) as one,
        dsms.connect(address) as other,
    ):
        intake = gateway._sessions.intake
        if not gateways.is_stored:  # there frames are in flight only until they are stored; `stored` limits the rest
            intake.log.limits.in_flight_limit = 2000  # bytes
        domain.gate.clear()
        for _ in range(3):
            one.push("s", {"n": list(range(100))})
        assert wait_until(lambda: intake.is_full, 10)
        for client in (one, other):
            client.push("s", {"n": [1]})
        assert wait_until(lambda: all(each._paused for each in gateway._sessions.connections), 10)
        domain.gate.set()
        one.flush(10)
        other.flush(10)
        assert wait_until(lambda: not any(each._paused for each in gateway._sessions.connections), 10)
        assert len(domain.records("all", 302)) == 302
        assert wait_until(lambda: not intake.is_full, WAIT)
