"""Sessions check a client's frames, producer states count them, and large batches are split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.config.frame_limits import UNAUTHENTICATED_FRAME_LIMIT_BYTES
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.net.tokens import Tokens
from dsms.net.wire import Ack, Advance, Bye, Data, End, Hello, Message, Subscribe, Unsubscribe, WireError, encode
from dsms.net.wire.frame_split import split_batch
from dsms.net.wire.producer_state import ProducerState
from dsms.net.wire.session import Session

PAIR = Schema.of({"n": "int64", "who": "string"})
ROWS = Batch.of({"n": [1, 2], "who": np.array(["a", "b"], dtype=object)})


def encode_all(*messages: Message) -> bytes:
    return b"".join(part for message in messages for part in encode(message))


def make_session_after_hello() -> Session:
    session = Session()
    session.feed(encode_all(Hello("p", "")))
    session.set_streams({"s": PAIR})
    return session


def test_after_hello_a_session_returns_every_message_that_a_client_may_send() -> None:
    messages = [Advance("s", 5), Subscribe("q", 7), Unsubscribe("q"), End("s"), Bye()]
    assert make_session_after_hello().feed(encode_all(*messages)) == messages


@pytest.mark.parametrize("message", [Bye(), Advance("s", 1), Data("s", 1, ROWS, PAIR), Hello("", "")])
def test_a_first_frame_other_than_hello_ends_the_session(message: Message) -> None:
    session = Session()
    [error] = session.feed(encode_all(message))
    assert isinstance(error, WireError)
    assert (error.lost, session.is_over, session.producer) == (True, True, None)
    assert session.feed(encode_all(Hello("p", ""))) == []


@pytest.mark.parametrize(("token", "right"), [("secret", True), ("secre", False), ("", False), ("sécret", False)])
def test_a_session_accepts_only_a_known_token(token: str, right: bool) -> None:
    session = Session(Tokens.of(control="secret"))
    [answer] = session.feed(encode_all(Hello("p", token)))
    assert (isinstance(answer, Hello), session.producer) == (right, "p" if right else None)
    if isinstance(answer, WireError):
        assert answer.reason == "authentication failed: unknown token"


def test_frames_before_hello_have_a_lower_size_limit() -> None:
    session = Session()
    [error] = session.feed((UNAUTHENTICATED_FRAME_LIMIT_BYTES + 8).to_bytes(4, "little") + bytes(4))
    assert isinstance(error, WireError)
    assert error.lost


def test_a_session_refuses_a_bad_frame_by_its_sequence_and_accepts_the_next() -> None:
    other = Schema.of({"n": "float64"})
    bad = Data("s", 7, Batch.of({"n": [0.5]}), other)
    messages = make_session_after_hello().feed(encode_all(bad, Ack("p", 1), Data("s", 8, ROWS, PAIR)))
    assert [isinstance(each, WireError) for each in messages] == [True, True, False]
    assert isinstance(messages[0], WireError)
    assert messages[0].sequence == 7


def test_a_refused_frame_may_be_sent_again_and_blocks_acknowledgements_until_it_completes() -> None:
    producer = ProducerState("p")
    assert [producer.accept(number, 1) for number in (1, 2, 3)] == [True] * 3
    for number, reason in ((1, None), (2, "no room"), (3, None)):
        producer.complete(number, reason)
    assert (producer.last_acknowledged, producer.refused) == (3, {2: "no room"})
    assert [producer.accept(number, 1) for number in (4, 2, 2, 3)] == [True, True, False, False]
    assert (producer.last_acknowledged, producer.refused) == (1, {})
    producer.complete(4)
    assert producer.last_acknowledged == 1
    producer.complete(2)
    assert (producer.last_acknowledged, producer.last_accepted, producer.waiting) == (4, 4, 0)


def test_the_last_frame_may_be_sent_again_and_its_bytes_count_once() -> None:
    producer = ProducerState("p")
    producer.accept(6, 5)
    producer.accept(7, 5)
    producer.complete(7, "no room")
    assert producer.accept(7, 5)  # while the one before is in flight
    producer.complete(6)
    assert (producer.last_acknowledged, producer.is_full) == (6, False)
    producer.complete(7)
    assert (producer.last_acknowledged, producer.waiting, producer._bytes) == (7, 0, 0)
    producer.accept(8, 5)
    producer.complete(8, "no room")
    assert producer.last_acknowledged == 8
    producer.accept(8, 5)
    assert producer.last_acknowledged == 7


def test_a_frame_is_accepted_once_and_acknowledged_after_all_before_it() -> None:
    producer = ProducerState("p")
    assert [producer.accept(number, 1) for number in (1, 2, 2, 1, 5, 4)] == [True, True, False, False, True, False]
    producer.complete(2)
    assert (producer.last_acknowledged, producer.waiting) == (0, 3)
    producer.complete(1)
    assert (producer.last_acknowledged, producer.waiting) == (2, 1)
    producer.complete(5)
    assert (producer.last_acknowledged, producer.waiting) == (5, 0)


def test_a_producer_is_full_by_frames_or_bytes_and_has_room_at_half() -> None:
    producer = ProducerState("p", frames=2, size=100)
    producer.accept(1, 101)
    assert (producer.is_full, producer.has_room) == (True, False)
    producer.complete(1)
    assert (producer.is_full, producer.has_room) == (False, True)
    for number in (2, 3, 4):
        producer.accept(number, 0)
    assert producer.is_full
    producer.complete(2)
    assert (producer.is_full, producer.has_room) == (False, False)


@settings(derandomize=True, database=None, deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=30), max_size=60), st.integers(300, 2000))
def test_pieces_of_a_batch_fit_their_frames_and_keep_the_order_of_rows(texts: list[str], limit: int) -> None:
    column = np.array([text.replace("\ud800", "") for text in texts] + [None], dtype=object)[:-1]
    batch = Batch.of({"n": np.arange(len(texts)), "who": column})
    parts = list(split_batch(batch, PAIR, limit))
    assert [row for part in parts for row in part.records()] == batch.records()
    for part in parts:
        encode(Data("s", 1, part, PAIR), limit + 256)


def test_a_batch_with_more_rows_than_a_frame_allows_is_split() -> None:
    batch = Batch.of({"n": np.zeros(2**20 + 5, dtype=np.int64)})
    assert [part.rows for part in split_batch(batch, Schema.of({"n": "int64"}))] == [2**19 + 3, 2**19 + 2]
