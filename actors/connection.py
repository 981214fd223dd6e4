"""One client at a gateway: what it says is taken in, what is for it is sent; it may be slow without slowing others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from dsms.client.link import watch
from dsms.tokens import PUSH
from dsms.wire import (
    Ack,
    Advance,
    Bye,
    Data,
    End,
    Error,
    Hello,
    Message,
    Subscribe,
    Unsubscribe,
    WireError,
    encoded,
)
from dsms.wire.producer import Producer
from dsms.wire.session import Session

if TYPE_CHECKING:
    from actors.desk import Desk
    from dsms.live.terms import Terms

UNSENT = 64 * 1024 * 1024  # bytes that may wait for a client to read them
FAREWELL = 5.0  # seconds to read the last words


class Connection(asyncio.Protocol):
    """A socket and its session; belongs to the thread of a gateway's loop."""

    def __init__(self, desk: Desk, terms: Terms) -> None:
        self.session = Session(terms.tokens, terms.frame)
        self._desk, self._patience = desk, terms.hello
        self._producer: Producer | None = None
        self._welcome = False  # whether an acknowledgement has told where it stands
        self._acknowledged = 0
        self._due = False  # whether one is to be sent
        self._unclaimed = 0  # bytes that came and are not yet counted for a frame
        self._paused = self._leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there, and has so long to say who."""
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        watch(self._transport.get_extra_info("socket"))
        self._timer = self._loop.call_later(self._patience, self._unknown)
        self._desk.came(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone; what was taken in goes on."""
        self._timer.cancel()
        self._leaving = True
        self._desk.left(self)

    def data_received(self, data: bytes) -> None:
        """Take in what has come, and stop reading while too much of it is on its way."""
        if self._leaving:
            return
        self._desk.bytes += len(data)
        self._unclaimed += len(data)
        before = self.session.held
        found = self.session.feed(data)
        self._desk.hold(self.session.held - before)
        for message in found:
            if not self._leaving:
                self._heard(message)
        if self.session.over:
            self.close()
        self.pace()

    def greet(self, producer: Producer) -> None:
        """It is known who it is: it may send rows once it is told where it stands."""
        self._timer.cancel()
        self._producer = producer
        self.acknowledge(again=True)
        self.pace()

    def pace(self) -> None:
        """Read, or not, as what is on its way allows."""
        if self._producer is None or self._leaving:
            return
        if not self._paused and (self._producer.full or self._desk.intake.full):
            self._paused = True
            self._transport.pause_reading()
        elif self._paused and self._producer.roomy and not self._desk.intake.full:
            self._paused = False
            self._transport.resume_reading()

    def acknowledge(self, again: bool = False) -> None:
        """Say up to where all is safe: soon, and once for all that is so by then."""
        self._acknowledged = -1 if again else self._acknowledged
        if not self._due:
            self._due = True
            self._loop.call_soon(self._acknowledge)

    def send(self, message: Message) -> None:
        """Say something."""
        self.write(b"".join(encoded(message)))

    def write(self, data: bytes) -> None:
        """Send what is encoded, unless too much waits already."""
        if self._leaving or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > UNSENT:
            self.drop(f"too slow: more than {UNSENT} bytes wait to be read")
        else:
            self._transport.write(data)

    def drop(self, reason: str) -> None:
        """End the connection, and say why."""
        if not self._leaving:
            self._transport.write(b"".join(encoded(Error(reason))))
            self.close()

    def turn_away(self, reason: str) -> None:
        """End the connection of somebody who is not let in."""
        self._desk.rejected += 1
        self.drop(reason)

    def close(self) -> None:
        """End the connection; what waits to be read may still be, for a moment."""
        if not self._leaving:
            self._leaving = True
            self._desk.left(self)
            self._transport.close()
            self._loop.call_later(FAREWELL, self._transport.abort)

    def _heard(self, message: Message | WireError) -> None:
        match message:
            case WireError(lost=True):
                self.turn_away(message.reason)
            case WireError():
                self._unread(message)
            case Hello():
                self._desk.greeted(self, message.producer)
            case Data():
                self._take(message)
            case Advance():
                self._desk.intake.advance(message.stream, message.upto, self._perhaps)
            case End():
                self._desk.intake.end(message.stream, self._perhaps)
            case Subscribe():
                self._desk.subscribers.subscribe(self, message.query, message.after)
            case Unsubscribe():
                self._desk.subscribers.unsubscribe(self, message.query)
            case Bye():
                self.close()

    def _take(self, message: Data) -> None:
        """Rows, unless they came before: then the acknowledgement was lost, and is sent again."""
        producer, sequence = self._producer, message.sequence
        if producer is None or not producer.take(sequence, self._unclaimed):
            self.acknowledge(again=True)
            return
        self._unclaimed = 0
        self._acknowledged = min(self._acknowledged, producer.safe)  # it may be one that was refused before
        desk = self._desk  # it may be another connection that hears of it

        def done(reason: str | None) -> None:
            desk.settled(producer, sequence, reason)

        desk.intake.take(message.stream, message.batch, done, (producer.name, sequence))

    def _unread(self, error: WireError) -> None:
        """A frame that cannot be read: whose number is known is refused under it, whoever asks for it later."""
        producer, sequence = self._producer, error.sequence
        if producer is None or sequence is None or not self.session.granted.may(PUSH):
            self.refuse(error.reason, sequence, error.query)
        elif producer.take(sequence, self._unclaimed):
            self._unclaimed = 0
            self._desk.settled(producer, sequence, error.reason)
        else:
            self.acknowledge(again=True)

    def refuse(self, reason: str, sequence: int | None = None, query: str | None = None) -> None:
        """A frame is not taken; the connection goes on."""
        self._desk.rejected += 1
        self.send(Error(reason, sequence, query))

    def _perhaps(self, reason: str | None) -> None:
        if reason is not None:
            self.refuse(reason)

    def _acknowledge(self) -> None:
        self._due = False
        if self._producer is None or (not self._welcome and self._producer.waiting):
            return  # one who comes again is told where it stands when what it sent before is safe
        if not self._welcome:
            self._welcome = True
            for sequence, reason in self._producer.refused.items():  # not among what the number says is safe
                self.send(Error(reason, sequence))
        if self._acknowledged != self._producer.safe:
            self._acknowledged = self._producer.safe
            self.send(Ack(self._producer.name, self._producer.safe))

    def _unknown(self) -> None:
        self.turn_away(f"no hello within {self._patience:g} s")
