"""Frames from whoever wants to do harm: each is understood or refused for a reason, and costs no more than it weighs.

`make test` says 20,000 of them, `make fuzz` a million, and others every time.
"""

from __future__ import annotations

import os
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hostile_frames import STREAMS, TOKEN, Hostile, framed, said
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import EXACT, EXAMPLES

from dsms.tokens import Tokens
from dsms.wire import LIMIT, Data, Decoder, Hello, Message, WireError
from dsms.wire.messages import Bye
from dsms.wire.session import Session

FRAMES = int(os.environ.get("DSMS_FRAMES", "20000"))
SHARDS = 10  # each from a seed of its own
SEED = int.from_bytes(os.urandom(4)) if "DSMS_FRAMES" in os.environ else 0
TOKENS = Tokens.of(control=TOKEN)
LONGEST = 2000  # characters of a reason, whatever was sent


def conversation(hostile: Hostile, frames: int) -> Counter[str]:
    """What becomes of one connection's frames; it ends where a real one would."""
    session, outcome, fed = Session(TOKENS), Counter[str](), 0
    for number in range(frames + 1):
        data = hostile.frame() if number else hostile.hello()
        for piece in hostile.pieces(data):
            fed += len(piece)
            for found in session.feed(piece):
                outcome[judged(found)] += 1
            if session.producer is not None:
                session.know(STREAMS)
            assert session._decoder.held <= min(fed, LIMIT + 8)
        outcome["frames"] += number > 0
        if session.over:
            break
    return outcome


def judged(found: Message | WireError) -> str:
    """What this is, found sound: a reason that gives nothing away, or a message that can be said again."""
    if isinstance(found, WireError):
        assert 0 < len(found.reason) < LONGEST
        assert TOKEN not in found.reason
        return "lost" if found.lost else "refused"
    if isinstance(found, Data):
        [again] = Decoder(STREAMS).feed(said(found))
        assert isinstance(again, Data)
        assert (again.stream, again.sequence, again.batch.rows) == (found.stream, found.sequence, found.batch.rows)
        for name, column in found.batch.columns.items():
            assert len(column) == found.batch.rows
            if name in again.batch.columns or column.any():  # that nothing is null need not be said
                same = again.batch.columns[name]
                assert np.array_equal(column, same) if column.dtype == object else column.tobytes() == same.tobytes()
        return "taken"
    assert isinstance(found, Hello | Bye) or said(found)
    return type(found).__name__


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_frame_is_understood_or_refused_for_a_reason(shard: int) -> None:
    hostile, outcome = Hostile(SEED + shard), Counter[str]()
    while outcome["frames"] < FRAMES // SHARDS:
        outcome += conversation(hostile, hostile.random.randrange(1, 30))
    assert min(outcome[kind] for kind in ("taken", "refused", "lost")) > FRAMES // SHARDS // 50
    assert min(outcome[kind] for kind in ("Hello", "Subscribe", "Advance", "End", "Bye")) > 0


SHORT = st.integers(0, 2**32).map(lambda seed: Hostile(seed).frame()[:1000])


@settings(EXACT, max_examples=EXAMPLES or 100)
@given(st.lists(st.one_of(st.binary(max_size=64), SHORT), max_size=8))
def test_however_bytes_are_cut_the_same_is_found(pieces: list[bytes]) -> None:
    """And what is found is sound."""

    def found(pieces: list[bytes]) -> list[str]:
        session = Session(TOKENS)
        session.feed(said(Hello("p", TOKEN)))
        session.know(STREAMS)
        return [f"{judged(each)} {getattr(each, 'reason', '')}" for piece in pieces for each in session.feed(piece)]

    whole = b"".join(pieces)
    assert found(pieces) == found([whole]) == found([whole[at : at + 7] for at in range(0, len(whole), 7)])


def test_memory_grows_with_what_comes_and_not_with_what_is_announced() -> None:
    hostile = Hostile(99)
    conversation(hostile, 10)
    tracemalloc.start()
    try:
        for _ in range(200):
            conversation(hostile, 20)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
        waiting = [Session(TOKENS) for _ in range(100)]
        for session in waiting:
            session.feed(said(Hello("p", TOKEN)))
            session.feed((LIMIT).to_bytes(4, "little") + (8).to_bytes(4, "little") + bytes(1000))
        assert {session._decoder.held for session in waiting} == {1008}
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("depth", [5, 100, 1023, 1024, 1025, 200_000])
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"], ids=["lists", "maps"])
def test_nesting_is_refused_however_deep(depth: int, opening: bytes) -> None:
    session = Session()
    session.feed(said(Hello("p", "")))
    header = b"\x82\xa4type\xa3end\xa6stream" + opening * depth
    [found] = session.feed(framed(header[: 250 * 1024] + b"\xc0"))
    assert isinstance(found, WireError)
    assert not found.lost
    assert len(found.reason) < 300
