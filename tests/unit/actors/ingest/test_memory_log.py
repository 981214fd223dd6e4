"""A log in memory acknowledges a message when all schedulers that read its stream have it, and then forgets it."""

from __future__ import annotations

import asyncio
from typing import Any

from actors.ingest.memory_log import DELIVERY_LIMIT_ENTRIES, MemoryLog
from dsms.live.routes import Routes
from dsms.net.wire import Advance, End


class ScriptedReader:
    """Passes entries when a test says so."""

    def __init__(self, log, *reads):
        self.log, self.reads, self.passed = log, frozenset(reads), log.last

    def read(self, size=1000):
        return [entry.offset for entry in asyncio.run(self.log.read(self.passed, size))]

    def passes(self, upto, reason=None, refused=()):
        after, self.passed = self.passed, upto
        self.log.finish(self, after, reason, dict(refused))


def log_of(*reads):
    """A log, and its readers by the streams that they read."""
    log = MemoryLog()
    readers: Any = [ScriptedReader(log, *streams) for streams in reads]
    log.readers = readers
    return log, *readers


def test_a_message_waits_for_all_readers_of_its_stream_and_for_no_other():
    log, one, both, slow = log_of("a", "ab", "c")
    told = []
    for stream in "ab":
        log.append(Advance(stream, 5), lambda reason, stream=stream: told.append((stream, reason)))
    both.passes(2)
    assert told == [("b", None)]
    one.passes(2)
    assert told == [("b", None), ("a", None)]
    assert (slow.read(), log._entries, log._waiting) == ([], type(log._entries)(), {})


def test_a_message_that_one_scheduler_refuses_is_refused_when_all_have_answered():
    log, one, other = log_of("a", "a")
    told = []
    for number in range(3):
        log.append(Advance("a", number), told.append)
    one.passes(3, refused={2: "no such column"})
    assert told == []
    other.passes(2)
    other.passes(3, "its process has ended")
    assert told == [None, "no such column", "its process has ended"]


def test_a_message_without_readers_is_done_at_once_and_keeps_nothing():
    log, _ = log_of("a")
    told = []
    log.append(Advance("b", 5), told.append)
    assert (told, log.last, len(log._entries)) == ([None], 0, 0)


def test_messages_of_held_streams_get_their_offset_when_they_are_released():
    log, reader = log_of("ab")
    told = []

    async def hold_and_resume():
        log.append(Advance("b", 1), told.append)
        holding = asyncio.create_task(log.hold(["a"], align=True))
        await asyncio.sleep(0)
        log.append(End("a"), told.append)
        log.append(Advance("b", 2), told.append)
        assert not holding.done()
        assert (log.last, log.ended) == (2, {})
        reader.passes(1)
        await holding
        log.resume(Routes())
        assert (log.last, log.ended, log.has_ended("a", 2), log.has_ended("a", 3)) == (3, {"a": 3}, False, True)

    asyncio.run(hold_and_resume())
    assert (told, reader.read()) == ([None], [2, 3])


def test_a_delivery_has_a_limited_number_of_entries_and_starts_after_those_that_were_passed():
    log, reader, slow = log_of("a", "a")
    for number in range(2 * DELIVERY_LIMIT_ENTRIES):
        log.append(Advance("a", number), lambda reason: None)
    assert reader.read() == list(range(1, DELIVERY_LIMIT_ENTRIES + 1))
    reader.passes(DELIVERY_LIMIT_ENTRIES)
    assert reader.read()[0] == slow.read()[-1] + 1
