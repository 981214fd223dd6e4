"""The server's side of a connection, and how frames are counted: bytes in, messages out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.batch import Batch
from dsms.schema import Schema
from dsms.tokens import Tokens
from dsms.wire import Ack, Advance, Bye, Data, End, Hello, Message, Subscribe, Unsubscribe, WireError, encoded
from dsms.wire.pieces import pieces
from dsms.wire.producer import Producer
from dsms.wire.session import STRANGER, Session

PAIR = Schema.of({"n": "int64", "who": "string"})
ROWS = Batch.of({"n": [1, 2], "who": np.array(["a", "b"], dtype=object)})


def sent(*messages: Message) -> bytes:
    return b"".join(part for message in messages for part in encoded(message))


def greeted(**options: object) -> Session:
    session = Session()
    session.feed(sent(Hello("p", "")))
    session.know({"s": PAIR})
    return session


def test_what_a_client_may_say_after_its_hello_comes_as_it_was_said() -> None:
    said = [Advance("s", 5), Subscribe("q", 7), Unsubscribe("q"), End("s"), Bye()]
    assert greeted().feed(sent(*said)) == said


@pytest.mark.parametrize("message", [Bye(), Advance("s", 1), Data("s", 1, ROWS, PAIR), Hello("", "")])
def test_whoever_does_not_say_hello_first_is_not_heard(message: Message) -> None:
    session = Session()
    [error] = session.feed(sent(message))
    assert isinstance(error, WireError)
    assert (error.lost, session.over, session.producer) == (True, True, None)
    assert session.feed(sent(Hello("p", ""))) == []


@pytest.mark.parametrize(("token", "right"), [("secret", True), ("secre", False), ("", False), ("sécret", False)])
def test_the_token_must_be_the_one_that_is_wanted(token: str, right: bool) -> None:
    session = Session(Tokens.of(control="secret"))
    [answer] = session.feed(sent(Hello("p", token)))
    assert (isinstance(answer, Hello), session.producer) == (right, "p" if right else None)
    if isinstance(answer, WireError):
        assert "token" in answer.reason
        assert "secret" not in answer.reason


def test_a_stranger_may_send_only_little() -> None:
    session = Session()
    [error] = session.feed((STRANGER + 8).to_bytes(4, "little") + bytes(4))
    assert isinstance(error, WireError)
    assert error.lost


def test_a_bad_frame_is_refused_with_its_number_and_the_next_is_taken() -> None:
    other = Schema.of({"n": "float64"})
    bad = Data("s", 7, Batch.of({"n": [0.5]}), other)
    found = greeted().feed(sent(bad, Ack("p", 1), Data("s", 8, ROWS, PAIR)))
    assert [isinstance(each, WireError) for each in found] == [True, True, False]
    assert isinstance(found[0], WireError)
    assert found[0].sequence == 7


def test_a_refused_frame_may_come_again_and_until_it_is_done_nothing_after_it_is_safe() -> None:
    producer = Producer("p")
    assert [producer.take(number, 1) for number in (1, 2, 3)] == [True] * 3
    for number, reason in ((1, None), (2, "no room"), (3, None)):
        producer.done(number, reason)
    assert (producer.safe, producer.refused) == (3, {2: "no room"})
    assert [producer.take(number, 1) for number in (4, 2, 2, 3)] == [True, True, False, False]
    assert (producer.safe, producer.refused) == (1, {})
    producer.done(4)
    assert producer.safe == 1
    producer.done(2)
    assert (producer.safe, producer.taken, producer.waiting) == (4, 4, 0)


def test_the_last_frame_may_come_again_too_and_bytes_are_counted_once() -> None:
    producer = Producer("p")
    producer.take(6, 5)
    producer.take(7, 5)
    producer.done(7, "no room")
    assert producer.take(7, 5)  # while the one before is still on its way
    producer.done(6)
    assert (producer.safe, producer.full) == (6, False)
    producer.done(7)
    assert (producer.safe, producer.waiting, producer._bytes) == (7, 0, 0)
    producer.take(8, 5)
    producer.done(8, "no room")
    assert producer.safe == 8
    producer.take(8, 5)
    assert producer.safe == 7


def test_a_frame_is_taken_once_and_safe_when_all_before_it_are() -> None:
    producer = Producer("p")
    assert [producer.take(number, 1) for number in (1, 2, 2, 1, 5, 4)] == [True, True, False, False, True, False]
    producer.done(2)
    assert (producer.safe, producer.waiting) == (0, 3)
    producer.done(1)
    assert (producer.safe, producer.waiting) == (2, 1)
    producer.done(5)
    assert (producer.safe, producer.waiting) == (5, 0)


def test_a_producer_is_full_by_frames_or_bytes_and_roomy_at_half() -> None:
    producer = Producer("p", frames=2, size=100)
    producer.take(1, 101)
    assert (producer.full, producer.roomy) == (True, False)
    producer.done(1)
    assert (producer.full, producer.roomy) == (False, True)
    for number in (2, 3, 4):
        producer.take(number, 0)
    assert producer.full
    producer.done(2)
    assert (producer.full, producer.roomy) == (False, False)


@settings(derandomize=True, database=None, deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=30), max_size=60), st.integers(300, 2000))
def test_pieces_are_the_rows_in_order_and_fit(texts: list[str], limit: int) -> None:
    column = np.array([text.replace("\ud800", "") for text in texts] + [None], dtype=object)[:-1]
    batch = Batch.of({"n": np.arange(len(texts)), "who": column})
    parts = list(pieces(batch, PAIR, limit))
    assert [row for part in parts for row in part.records()] == batch.records()
    for part in parts:
        encoded(Data("s", 1, part, PAIR), limit + 256)


def test_more_rows_than_a_frame_takes_are_cut() -> None:
    batch = Batch.of({"n": np.zeros(2**20 + 5, dtype=np.int64)})
    assert [part.rows for part in pieces(batch, Schema.of({"n": "int64"}))] == [2**19 + 3, 2**19 + 2]
