"""Hostile frames: the session decodes each or refuses it with a reason, and holds no more memory than was sent.

`make test` sends 20,000 frames, `make fuzz` a million, from another seed each time.
"""

from __future__ import annotations

import os
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.live.hostile_frames import STREAMS, TOKEN, TOKENS, HostileClient, check_message, encode_message, make_frame
from support.strategies import DETERMINISTIC, EXAMPLES

from dsms.net.wire import FRAME_LIMIT_BYTES, Hello, WireError
from dsms.net.wire.session import Session

FRAMES = int(os.environ.get("DSMS_FRAMES", "20000"))
SHARDS = 10  # each with a seed of its own
SEED = int.from_bytes(os.urandom(4)) if "DSMS_FRAMES" in os.environ else 0


def conversation(hostile: HostileClient, frames: int) -> Counter[str]:
    """Feed one connection's frames to a session; count the outcomes. It ends where a real one would."""
    session, outcome, fed = Session(TOKENS), Counter[str](), 0
    for number in range(frames + 1):
        data = hostile.frame() if number else hostile.hello()
        for piece in hostile.pieces(data):
            fed += len(piece)
            for found in session.feed(piece):
                outcome[check_message(found)] += 1
            if session.producer is not None:
                session.set_streams(STREAMS)
            assert session._decoder.held <= min(fed, FRAME_LIMIT_BYTES + 8)
        outcome["frames"] += number > 0
        if session.is_over:
            break
    return outcome


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_frame_is_understood_or_refused_for_a_reason(shard: int) -> None:
    hostile, outcome = HostileClient(SEED + shard), Counter[str]()
    while outcome["frames"] < FRAMES // SHARDS:
        outcome += conversation(hostile, hostile.random.randrange(1, 30))
    assert min(outcome[kind] for kind in ("taken", "refused", "lost")) > FRAMES // SHARDS // 50
    assert min(outcome[kind] for kind in ("Hello", "Subscribe", "Advance", "End", "Bye")) > 0


SHORT = st.integers(0, 2**32).map(lambda seed: HostileClient(seed).frame()[:1000])


@settings(DETERMINISTIC, max_examples=EXAMPLES or 100)
@given(st.lists(st.one_of(st.binary(max_size=64), SHORT), max_size=8))
def test_however_bytes_are_cut_the_same_is_found(pieces: list[bytes]) -> None:
    """And every message is sound."""

    def found(pieces: list[bytes]) -> list[str]:
        session = Session(TOKENS)
        session.feed(encode_message(Hello("p", TOKEN)))
        session.set_streams(STREAMS)
        return [
            f"{check_message(each)} {getattr(each, 'reason', '')}" for piece in pieces for each in session.feed(piece)
        ]

    whole = b"".join(pieces)
    assert found(pieces) == found([whole]) == found([whole[at : at + 7] for at in range(0, len(whole), 7)])


def test_memory_grows_with_what_comes_and_not_with_what_is_announced() -> None:
    hostile = HostileClient(99)
    conversation(hostile, 10)
    tracemalloc.start()
    try:
        for _ in range(200):
            conversation(hostile, 20)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
        waiting = [Session(TOKENS) for _ in range(100)]
        for session in waiting:
            session.feed(encode_message(Hello("p", TOKEN)))
            session.feed((FRAME_LIMIT_BYTES).to_bytes(4, "little") + (8).to_bytes(4, "little") + bytes(1000))
        assert {session._decoder.held for session in waiting} == {1008}
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("depth", [5, 100, 1023, 1024, 1025, 200_000])
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"], ids=["lists", "maps"])
def test_nesting_is_refused_however_deep(depth: int, opening: bytes) -> None:
    session = Session()
    session.feed(encode_message(Hello("p", "")))
    header = b"\x82\xa4type\xa3end\xa6stream" + opening * depth
    [found] = session.feed(make_frame(header[: 250 * 1024] + b"\xc0"))
    assert isinstance(found, WireError)
    assert not found.lost
    assert len(found.reason) < 300
