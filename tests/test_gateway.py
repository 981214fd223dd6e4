"""The gateway: rows in over real TCP, to domains that are engines in this process."""

from __future__ import annotations

import inspect
import socket
import threading
from typing import Any

import numpy as np
import pytest
from live_parts import HOST, Domain, plan_of, routes_of, running, serving

import dsms
from actors import gateway
from actors.gateway import Gateway
from actors.parts import wait_for
from dsms import Batch, DsmsError
from dsms.live.routes import Routes, Way
from dsms.live.terms import Terms
from dsms.schema import Schema
from dsms.tokens import Tokens
from dsms.wire import Ack, Data, Decoder, Error, Hello, Message, Result, Schemas, Subscribe, WireError, encoded

NUMBERS = {"s": {"n": "int64"}}
PLAN = plan_of(NUMBERS, all="SELECT n FROM s", big="SELECT n FROM s WHERE n > 2")
N = Schema.of({"n": "int64"})


def rows(*numbers: int) -> Batch:
    return Batch.of({"n": np.array(numbers, dtype=np.int64)})


class Raw:
    """A client that says what a test wants it to."""

    def __init__(self, address: str, *messages: Message) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 10)
        self._decoder = Decoder(learns=True)
        self._found: list[Message | WireError] = []
        self.say(*messages)

    def say(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(part for message in messages for part in encoded(message)))

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


def test_a_hello_is_answered_by_schemas_and_where_the_producer_stands() -> None:
    with running(PLAN) as (_, _, address):
        raw = Raw(address, Hello("p", ""))
        assert raw.next() == Schemas(streams={"s": N})
        assert raw.next().queries == {"all": N, "big": N}
        assert raw.next() == Ack("p", 0)


def test_frames_are_acknowledged_taken_once_and_a_bad_one_harms_no_other() -> None:
    with running(PLAN) as (domain, gateway, address):
        raw = Raw(address, Hello("p", ""))
        raw.next(Ack)
        raw.say(Data("s", 1, rows(1), N), Data("s", 1, rows(1), N), Data("t", 2, rows(7), N), Data("s", 3, rows(3), N))
        error = raw.next(Error)
        assert (error.sequence, "no stream 't'" in error.reason) == (2, True)
        while raw.next(Ack).sequence < 3:
            pass
        assert domain.records("all") == [{"n": 1}, {"n": 3}]
        assert domain.records("big") == [{"n": 3}]
        again = Raw(address, Hello("p", ""))
        assert again.next(Ack) == Ack("p", 3)
        status = gateway.status()
        assert (status["rows"], status["rejected"]) == (2, 1)


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_wrong_token_is_told_so_and_let_go(token: str) -> None:
    with running(PLAN, terms=Terms(Tokens.of(control="right"))) as (_, _, address):
        raw = Raw(address, Hello("p", token))
        assert "token" in raw.next(Error).reason
        assert raw.next() is None
        with pytest.raises(DsmsError, match=r"cannot connect to 127\.0\.0\.1:[0-9]+: hello: the token"):
            dsms.connect(address, token=token)
        with dsms.connect(address, token="right") as client:
            assert set(client.streams) == {"s"}


def test_who_says_no_hello_is_let_go() -> None:
    with running(PLAN, terms=Terms(hello=0.05)) as (_, _, address):
        raw = Raw(address)
        assert raw.next(Error) == Error("no hello within 0.05 s")
        assert raw.next() is None


def test_of_two_connections_of_one_producer_the_newer_counts() -> None:
    with running(PLAN) as (_, _, address):
        older = Raw(address, Hello("p", ""))
        older.next(Ack)
        newer = Raw(address, Hello("p", ""))
        assert newer.next(Ack) == Ack("p", 0)
        assert "has connected anew" in older.next(Error).reason
        assert older.next() is None
        newer.say(Data("s", 1, rows(1), N))
        assert newer.next(Ack) == Ack("p", 1)


def test_a_port_in_use_is_named() -> None:
    with running(PLAN) as (_, _, address):
        gateway = Gateway("other")
        with pytest.raises(DsmsError, match=f"cannot listen at {address}"):
            gateway.listen(HOST, int(address.rsplit(":", 1)[1]))
        gateway.close()


def test_what_comes_while_a_call_is_under_way_goes_with_the_next() -> None:
    with running(PLAN) as (domain, gateway, address):
        client = dsms.connect(address)
        domain.gate.clear()
        for number in range(100):
            client.push("s", rows(number))
        while gateway.status()["rows"] < 100:
            pass
        domain.gate.set()
        client.close()
        assert domain.records("all") == [{"n": number} for number in range(100)]
        arrivals = [call for call in domain.calls if call.startswith("arrived")]
        assert len(arrivals) <= 3
        assert len(domain.calls) == 2 * len(arrivals)


def test_a_connection_is_not_read_while_too_much_of_it_is_on_its_way() -> None:
    with running(PLAN) as (domain, gateway, address):
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
        assert sum(len(batch) for query, batch in domain.results if query == "all") == 5_000_000


def test_a_stream_that_nobody_reads_is_counted_and_dropped() -> None:
    with serving(Routes({"s": Way(N)})) as (gateway, address), dsms.connect(address) as client:
        client.push("s", {"n": [1, 2, 3]})
        client.flush(5)
        assert gateway.status()["rows"] == 3


def test_held_rows_wait_for_new_routes_and_others_do_not() -> None:
    plan = plan_of({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")
    with running(plan) as (before, gateway, address):
        client = dsms.connect(address)
        client.push("s", {"n": [1]})
        gateway.hold(["s"])
        assert before.records("a") == [{"n": 1}]
        client.push("t", {"n": [5]})
        client.flush(5)
        client.push("s", {"n": [2]})
        client.push("t", {"n": [6]})
        with pytest.raises(DsmsError, match="2 pushes are not acknowledged"):
            client.flush(0.1)
        after = Domain(plan)
        gateway.serve(routes_of(plan, after))
        client.close()
        assert (before.records("a"), before.records("b")) == ([{"n": 1}], [{"n": 5}, {"n": 6}])
        assert after.records("a") == [{"n": 2}]


def test_new_streams_are_told_to_clients_that_are_there() -> None:
    with serving(Routes()) as (gateway, address):
        raw = Raw(address, Hello("p", ""))
        raw.next(Ack)
        gateway.serve(Routes({"s": Way(N)}))
        assert raw.next(Schemas).streams == {"s": N}
        raw.say(Data("s", 1, rows(1), N))
        assert raw.next(Ack) == Ack("p", 1)


def test_rows_go_to_every_domain_that_reads_their_stream() -> None:
    one, two = Domain(PLAN), Domain(PLAN)
    with serving(routes_of(PLAN, one, two)) as (_, address), dsms.connect(address) as client:
        client.push("s", {"n": [1, 2, 3]})
        client.flush(5)
        assert one.records("big") == two.records("big") == [{"n": 3}]


def test_two_gateways_serve_one_domain() -> None:
    domain = Domain(PLAN)
    routes = routes_of(PLAN, domain)
    with serving(routes, "a") as (_, first), serving(routes, "b") as (_, second):
        for address, numbers in ((first, [1, 2]), (second, [3, 4])):
            with dsms.connect(address) as client:
                client.push("s", {"n": numbers})
    assert domain.records("all") == [{"n": number} for number in (1, 2, 3, 4)]
    assert len({parcel.key for parcel in domain.parcels}) == 2


def test_scheduled_arrivals_are_told_in_the_deployment_s_seconds() -> None:
    domain = Domain(PLAN)
    with serving(routes_of(PLAN, domain, epoch=1000.0)) as (_, address), dsms.connect(address) as client:
        client.push("s", {"n": [1, 2]}, arrived=[1000.5, 1002.0])
        client.push("s", {"n": [3]})
    assert [parcel.due for parcel in domain.parcels] == [1.25, None]
    assert domain.due[0].tolist() == [0.5, 2.0]


def test_a_parcel_says_the_latest_timestamp_where_a_column_has_them() -> None:
    plan = dsms.plan_from(
        {
            "streams": {"s": {"schema": {"at": "timestamp", "n": "int64"}, "timestamp": "at"}},
            "queries": {"q": {"cql": "SELECT n FROM s"}},
        }
    )
    with running(plan) as (domain, _, address), dsms.connect(address) as client:
        client.push("s", [{"at": 5, "n": 1}, {"at": 9, "n": 2}])
        client.advance("s", 20)
        client.flush(5)
        client.end("s")
        client.flush(5)
        assert [parcel.latest for parcel in domain.parcels] == [9]
        assert domain.calls == ["put 1", "arrived 1", "advance s 20", "end"]


def test_the_end_is_told_when_all_streams_have_ended_and_rows_after_it_are_refused() -> None:
    plan = plan_of({"s": {"n": "int64"}, "t": {"n": "int64"}}, a="SELECT n FROM s", b="SELECT n FROM t")
    with running(plan) as (domain, _, address):
        client = dsms.connect(address)
        client.end("s")
        client.flush(5)
        assert "end" not in domain.calls
        client.push("s", {"n": [1]})
        with pytest.raises(DsmsError, match="rows for 's' after its end"):
            client.flush(5)
        client.end("t")
        client.close()
        assert domain.calls == ["end"]


def test_what_a_scheduler_refuses_is_told_with_its_number() -> None:
    class Broken(Domain):
        def arrived(self, parcels: Any) -> int:
            raise DsmsError("no room")

    with serving(routes_of(PLAN, Broken(PLAN))) as (_, address):
        client = dsms.connect(address)
        number = client.push("s", {"n": [1]})
        with pytest.raises(DsmsError, match=f"push {number} was refused: no room"):
            client.flush(5)
        client.close()


def test_a_subscriber_that_does_not_read_is_dropped_and_others_are_not_slowed() -> None:
    with running(PLAN) as (_, gateway, address):
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


def test_results_that_come_out_of_order_go_out_in_order() -> None:
    with running(PLAN) as (_, gateway, address), dsms.connect(address) as client:
        wanted = client.subscribe("all")
        while not gateway.status()["subscribers"]:
            pass
        for number in (1, 3, 4, 2, 2, 5):
            gateway.results([("all", number, rows(number))])
        assert [next(wanted).number for _ in range(5)] == [1, 2, 3, 4, 5]


def test_ray_keeps_the_order_of_calls_to_a_gateway():
    """It does not where any method is `async`, nor with `max_concurrency`: results would come out of order."""
    assert not inspect.getmembers(Gateway, inspect.iscoroutinefunction)
    assert "max_concurrency" not in gateway.ACTOR


def test_hold_waits_for_what_came_before_and_serve_lets_the_rest_go_in_order() -> None:
    with running(PLAN) as (domain, gateway, address):
        client = dsms.connect(address)
        domain.gate.clear()
        client.push("s", rows(1))
        while gateway.status()["rows"] < 1:
            pass
        holding = threading.Thread(target=gateway.hold, args=(["s"],))
        holding.start()
        holding.join(0.1)
        assert holding.is_alive()
        domain.gate.set()
        holding.join(10)
        for number in (2, 3, 4):
            client.push("s", rows(number))
        gateway.serve(routes_of(PLAN, domain))
        client.close()
        assert domain.records("all") == [{"n": number} for number in (1, 2, 3, 4)]


@pytest.mark.parametrize(("at", "said"), [([5, None], "of row 1 is null"), ([5, 2**60], "out of range")])
def test_rows_without_a_sound_timestamp_are_refused_and_others_are_taken(at: list[Any], said: str) -> None:
    stream = {"schema": {"at": "timestamp"}, "timestamp": "at"}
    plan = dsms.plan_from({"streams": {"s": stream}, "queries": {"all": {"cql": "SELECT at FROM s"}}})
    with running(plan) as (domain, _, address), dsms.connect(address) as client:
        client.push("s", {"at": at})
        with pytest.raises(DsmsError, match=said):
            client.flush(10)
        client.push("s", {"at": [7]})
        client.flush(10)
        assert [parcel.rows for parcel in domain.parcels] == [1]


def flushed(client: Any) -> None:
    """Waits for all to be acknowledged, or for the client to be closed."""
    with pytest.raises(DsmsError):
        client.flush()


def test_closing_connects_no_second_time_and_lets_nobody_wait() -> None:
    with running(PLAN) as (domain, gateway, address):
        greeted = []
        keep = gateway._desk.greeted
        gateway._desk.greeted = lambda connection, name: (greeted.append(name), keep(connection, name))
        client = dsms.connect(address, producer="p")
        domain.gate.clear()
        client.push("s", rows(1))
        waiting = threading.Thread(target=flushed, args=(client,))
        waiting.start()
        with pytest.raises(DsmsError, match="not acknowledged"):
            client.close(0.1)
        waiting.join(10)
        assert not waiting.is_alive()
        domain.gate.set()
        assert greeted == ["p"]


def test_nobody_is_read_while_too_much_of_all_is_on_its_way() -> None:
    with running(PLAN) as (domain, gateway, address), dsms.connect(address) as one, dsms.connect(address) as other:
        intake = gateway._desk.intake
        intake._most = 2000  # bytes
        domain.gate.clear()
        for _ in range(3):
            one.push("s", {"n": list(range(100))})
        assert wait_for(lambda: intake.full, 10)
        other.push("s", {"n": [1]})
        assert wait_for(lambda: all(each._paused for each in gateway._desk.connections), 10)
        domain.gate.set()
        one.flush(10)
        other.flush(10)
        assert wait_for(lambda: not any(each._paused for each in gateway._desk.connections), 10)
        assert (intake.full, len(domain.records("all"))) == (False, 301)
