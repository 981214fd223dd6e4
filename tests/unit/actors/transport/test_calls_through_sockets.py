"""Calls through sockets: answered in order or when a future is done, failed when the other process is gone."""

from __future__ import annotations

import errno
import pickle
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from actors.rpc.answers import await_answer, drop_answered
from actors.rpc.calls import Calls
from actors.rpc.messages import cast, get_result, send
from actors.transport import handle as handle_module
from actors.transport.address import Address, Role, connect
from actors.transport.channel import Channel
from actors.transport.handle import SocketHandle, get_actor, get_channel, use_socket
from actors.transport.listener import STRANGERS_LIMIT, Listener
from actors.transport.message_socket import MessageSocket
from dsms.data.batch import Batch
from dsms.errors import Cause, DsmsError, OperatorError

LIMIT_S = 30.0


class AddingActor:
    """Adds up what it is given."""

    def __init__(self) -> None:
        self.total = 0.0
        self.open: list[Future[Any]] = []
        self.told, self.free = threading.Event(), threading.Event()
        methods = (self.add, self.give_set, self.later, self.fail, self.rows, self.tell, self.busy)
        self.listener = Listener({method.__name__: method for method in methods})

    def add(self, value: float) -> float:
        self.total += value
        return self.total

    def give_set(self) -> set[int]:
        return {1}

    def later(self) -> Future[Any]:
        self.open.append(Future())
        return self.open[-1]

    def fail(self, message: str) -> None:
        raise DsmsError(message)

    def rows(self, batch: Batch) -> int:
        return int(batch.columns["x"].sum())

    def tell(self, value: float) -> None:
        self.total += value
        self.told.set()

    def busy(self) -> None:
        self.free.wait(LIMIT_S)

    def by_ray(self) -> str:
        return "through Ray"


@pytest.fixture
def adder() -> Iterator[AddingActor]:
    made = AddingActor()
    yield made
    made.listener.close()


@pytest.fixture
def handle(adder: AddingActor) -> Any:
    return use_socket(adder, adder.listener.address)


def test_calls_of_one_connection_are_carried_out_in_order(handle: Any) -> None:
    calls = [send(handle.add, 1.0) for _ in range(100)]
    assert [await_answer(call, "add", LIMIT_S) for call in calls] == [float(n) for n in range(1, 101)]


def test_large_batches_and_calls_from_several_threads_do_not_mix(handle: Any) -> None:
    batch = Batch.of({"x": np.ones(300_000, dtype=np.int64)})
    wrong: list[int] = []

    def call() -> None:
        wrong.extend(n for n in range(5) if get_result(send(handle.rows, batch)) != 300_000)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert wrong == []


def test_a_caller_does_not_wait_for_a_process_that_does_not_read(adder: AddingActor, handle: Any) -> None:
    batch = Batch.of({"x": np.ones(300_000, dtype=np.int64)})
    calls: list[Any] = [send(handle.busy)]
    calling = threading.Thread(target=lambda: calls.extend(send(handle.rows, batch) for _ in range(4)), daemon=True)
    calling.start()
    calling.join(LIMIT_S)
    is_waiting = calling.is_alive()
    adder.free.set()
    assert not is_waiting
    assert [await_answer(call, "rows", LIMIT_S) for call in calls] == [None, *[300_000] * 4]


def test_posted_messages_fail_when_the_process_that_does_not_read_is_gone() -> None:
    near, far = socket.socketpair()
    posting, batch = MessageSocket(near), Batch.of({"x": np.ones(300_000, dtype=np.int64)})
    for _ in range(3):
        posting.post(batch)
    far.close()
    with pytest.raises((EOFError, OSError)):
        posting.receive()


def test_an_answer_that_comes_later_does_not_hold_up_the_next_call(adder: AddingActor, handle: Any) -> None:
    later = send(handle.later)
    assert get_result(send(handle.add, 2.0)) == 2.0
    assert drop_answered([later], 0.0) == [later]
    adder.open[0].set_result(7.0)
    assert get_result(later) == 7.0
    assert drop_answered([later], LIMIT_S) == []


def test_an_error_is_raised_at_the_caller(handle: Any) -> None:
    with pytest.raises(DsmsError, match="no such stream"):
        get_result(send(handle.fail, "no such stream"))
    assert get_result(send(handle.add, 1.0)) == 1.0


def test_what_cannot_be_encoded_fails_alone(handle: Any) -> None:
    with pytest.raises(TypeError, match="a set cannot"):
        get_result(send(handle.add, {1}))
    assert get_result(send(handle.add, 1.0)) == 1.0


def test_an_answer_that_cannot_be_sent_is_an_error_at_the_caller(adder: AddingActor, handle: Any) -> None:
    later, unsendable = send(handle.later), adder.give_set()
    with pytest.raises(OperatorError, match="a set cannot be part of a message"):
        get_result(send(handle.give_set))
    adder.open[0].set_result(unsendable)
    with pytest.raises(OperatorError, match="a set cannot be part of a message"):
        later.result(LIMIT_S)
    assert get_result(send(handle.add, 1.0)) == 1.0


def test_a_call_without_an_answer_is_carried_out(adder: AddingActor, handle: Any) -> None:
    cast(handle.tell, 3.0)
    assert adder.told.wait(LIMIT_S)
    assert adder.total == 3.0


def test_the_calls_of_a_gateway_go_the_same_way(handle: Any) -> None:
    calls = Calls()
    assert calls(handle.add, 4.0).result(LIMIT_S) == 4.0
    calls.close()


def test_methods_that_are_not_offered_go_to_the_actor_itself(adder: AddingActor, handle: Any) -> None:
    assert handle.by_ray() == "through Ray"
    assert get_actor(handle) is adder
    assert get_actor(adder) is adder


def test_a_handle_can_be_passed_on_and_compared() -> None:
    handle = SocketHandle("an actor", Address("here", "name", b"key", ("add",)))
    copy = pickle.loads(pickle.dumps(handle))
    assert copy == handle
    assert hash(copy) == hash(handle)


def test_on_another_machine_all_methods_go_through_ray(adder: AddingActor) -> None:
    away = adder.listener.address._replace(machine="elsewhere")
    assert use_socket(adder, away).add(1.0) == 1.0


def test_calls_under_way_fail_when_the_process_is_gone(adder: AddingActor, handle: Any) -> None:
    ends = Channel(adder.listener.address)
    later = ends.call("later", ())
    ends.close()
    with pytest.raises(OperatorError) as caught:
        later.result(LIMIT_S)
    assert caught.value.cause is Cause.PROCESS_GONE
    with pytest.raises(OperatorError):
        ends.call("add", (1.0,)).result(LIMIT_S)
    with pytest.raises(OperatorError):
        ends.cast("add", (1.0,))
    assert get_result(send(handle.add, 1.0)) == 1.0  # on a connection of its own


def test_nobody_who_listens_is_a_process_that_is_gone(adder: AddingActor) -> None:
    away = adder.listener.address._replace(name="dsms-nobody")
    with pytest.raises(OperatorError) as caught:
        Channel(away)
    assert caught.value.cause is Cause.PROCESS_GONE


def test_strangers_keep_nobody_out(adder: AddingActor, handle: Any) -> None:
    strangers = []
    for _ in range(2 * STRANGERS_LIMIT):
        stranger = socket.socket(socket.AF_UNIX)
        stranger.connect(f"\0{adder.listener.address.name}")
        strangers.append(stranger)
    assert get_result(send(handle.add, 1.0)) == 1.0
    for stranger in strangers:
        stranger.close()


def test_callers_are_accepted_again_after_files_ran_out(
    adder: AddingActor, handle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Event()
    accept = socket.socket.accept

    def accept_later(listening: socket.socket) -> tuple[socket.socket, Any]:
        if not refused.is_set():
            refused.set()
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", accept_later)
    assert get_result(send(handle.add, 1.0)) == 1.0
    assert refused.is_set()


def test_channels_of_actors_that_have_ended_are_dropped(adder: AddingActor, handle: Any) -> None:
    ended = AddingActor()
    channel = get_channel(ended.listener.address)
    later = channel.call("later", ())
    channel.close()
    assert later.exception(LIMIT_S) is not None
    assert get_result(send(handle.add, 1.0)) == 1.0
    assert ended.listener.address.name not in handle_module._channels
    ended.listener.close()


def test_a_wrong_key_is_hung_up_on(adder: AddingActor) -> None:
    wrong = connect(adder.listener.address._replace(key=bytes(32)), Role.CALLS)
    with suppress(OSError):
        wrong.send((1, "add", (1.0,)))
    with pytest.raises((EOFError, OSError)):
        wrong.receive()
    assert adder.total == 0


def test_a_message_that_cannot_be_read_ends_its_connection_only(adder: AddingActor, handle: Any) -> None:
    broken = connect(adder.listener.address, Role.CALLS)
    broken.send("not a call")
    with pytest.raises((EOFError, OSError)):
        broken.receive()
    assert get_result(send(handle.add, 1.0)) == 1.0
