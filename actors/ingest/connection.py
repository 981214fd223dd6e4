"""One client's connection to a gateway: handles its messages, acknowledges its rows and sends it results."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

from dsms.net.client.connection import enable_keepalive
from dsms.net.tokens import PUSH
from dsms.net.wire import Ack, Advance, Bye, Data, End, Error, Hello, Message, Subscribe, Unsubscribe, WireError, encode
from dsms.net.wire.producer_state import ProducerState
from dsms.net.wire.session import Session

if TYPE_CHECKING:
    from actors.ingest.session_table import SessionTable
    from dsms.net.access import AccessPolicy

SEND_BUFFER_LIMIT_BYTES = 64 * 1024 * 1024  # that may wait for a slow client
CLOSE_TIMEOUT_S = 5.0  # for a client to read the last messages


class ClientConnection(asyncio.Protocol):
    """A socket and its session; only the thread of the gateway's event loop uses it."""

    def __init__(self, sessions: SessionTable, access: AccessPolicy) -> None:
        self.session = Session(access.tokens, access.frame)
        self._sessions, self._hello_timeout = sessions, access.hello
        self._producer: ProducerState | None = None
        self._position_sent = False  # whether the client knows which of its frames are safe
        self._acknowledged = 0
        self._due = False  # whether an acknowledgement is scheduled
        self._unattributed_bytes = 0  # received, and not yet counted for a frame
        self._paused = self._leaving = False
        self._messages: deque[Message | WireError] = deque()  # received, and not yet handled
        self._subscribing = 0  # subscriptions that the result hub does not know yet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the client's hello, up to a time limit."""
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        enable_keepalive(self._transport.get_extra_info("socket"))
        self._timer = self._loop.call_later(self._hello_timeout, self._on_hello_timeout)
        self._sessions.add_connection(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client; rows already taken stay."""
        self._timer.cancel()
        self._leaving = True
        self._sessions.remove_connection(self)

    def data_received(self, data: bytes) -> None:
        """Handle received messages; stop reading while too many bytes are in flight."""
        if self._leaving:
            return
        self._sessions.bytes += len(data)
        self._unattributed_bytes += len(data)
        before = self.session.held
        messages = self.session.feed(data)
        self._sessions.count_incomplete(self.session.held - before)
        self._messages.extend(messages)
        self._handle_messages()

    def accept(self, producer: ProducerState) -> None:
        """Register the producer; it may send rows once it knows which of its frames are safe."""
        self._timer.cancel()
        self._producer = producer
        self.acknowledge(again=True)
        self.update_flow()

    def update_flow(self) -> None:
        """Pause or resume reading, by the bytes in flight."""
        if self._producer is None or self._leaving:
            return
        if not self._paused and (self._messages or self._producer.is_full or self._sessions.intake.is_full):
            self._paused = True
            self._transport.pause_reading()
        elif self._paused and not self._messages and self._producer.has_room and not self._sessions.intake.is_full:
            self._paused = False
            self._transport.resume_reading()

    def acknowledge(self, again: bool = False) -> None:
        """Schedule an acknowledgement; several become one."""
        self._acknowledged = -1 if again else self._acknowledged
        if not self._due:
            self._due = True
            self._loop.call_soon(self._acknowledge)

    def send(self, message: Message) -> None:
        """Send a message."""
        self.write(b"".join(encode(message)))

    def write(self, data: bytes) -> None:
        """Send encoded bytes; drop a client whose buffer is full."""
        if self._leaving or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > SEND_BUFFER_LIMIT_BYTES:
            self.drop(f"too slow: more than {SEND_BUFFER_LIMIT_BYTES} bytes wait to be read")
        else:
            self._transport.write(data)

    def drop(self, reason: str) -> None:
        """Send the reason and close the connection."""
        if not self._leaving:
            self._transport.write(b"".join(encode(Error(reason))))
            self.close()

    def reject(self, reason: str) -> None:
        """Count and drop a client that is not admitted."""
        self._sessions.rejected += 1
        self.drop(reason)

    def close(self) -> None:
        """Close the connection; the client may read what was sent for a few seconds."""
        if not self._leaving:
            self._leaving = True
            self._sessions.remove_connection(self)
            self._transport.close()
            self._loop.call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def _handle_messages(self) -> None:
        """Handle what has come; what follows a subscription waits until results cannot be missed any more."""
        while self._messages and not self._subscribing and not self._leaving:
            self._handle(self._messages.popleft())
        if self.session.is_over and not self._messages:
            self.close()
        self.update_flow()

    def _finish_subscribing(self) -> None:
        self._subscribing -= 1
        self._handle_messages()

    def _handle(self, message: Message | WireError) -> None:
        match message:
            case WireError(lost=True):
                self.reject(message.reason)
            case WireError():
                self._refuse_unreadable(message)
            case Hello():
                self._sessions.register_client(self, message.producer)
            case Data():
                self._take(message)
            case Advance():
                self._sessions.intake.advance(message.stream, message.upto, self._refuse_if_failed)
            case End():
                self._sessions.intake.end(message.stream, self._refuse_if_failed)
            case Subscribe():
                self._subscribing += 1
                self._sessions.subscribers.subscribe(self, message.query, message.after, self._finish_subscribing)
            case Unsubscribe():
                self._sessions.subscribers.unsubscribe(self, message.query)
            case Bye():
                self.close()

    def _take(self, message: Data) -> None:
        """Take rows, unless they came before: then the acknowledgement was lost and is sent again."""
        producer, sequence = self._producer, message.sequence
        if producer is None or not producer.accept(sequence, self._unattributed_bytes):
            self.acknowledge(again=True)
            return
        self._unattributed_bytes = 0
        self._acknowledged = min(self._acknowledged, producer.last_acknowledged)  # it may repeat a refused frame
        sessions = self._sessions  # by then another connection may serve the producer

        def done(reason: str | None) -> None:
            sessions.complete_frame(producer, sequence, reason)

        sessions.intake.take(message.stream, message.batch, done, (producer.name, sequence))

    def _refuse_unreadable(self, error: WireError) -> None:
        """Refuse a frame that cannot be read, under its number where that is known."""
        producer, sequence = self._producer, error.sequence
        if producer is None or sequence is None or not self.session.permission.has_role(PUSH):
            self.refuse(error.reason, sequence, error.query)
        elif producer.accept(sequence, self._unattributed_bytes):
            self._unattributed_bytes = 0
            self._sessions.complete_frame(producer, sequence, error.reason)
        else:
            self.acknowledge(again=True)

    def refuse(self, reason: str, sequence: int | None = None, query: str | None = None) -> None:
        """Refuse a frame; the connection stays open."""
        self._sessions.rejected += 1
        self.send(Error(reason, sequence, query))

    def _refuse_if_failed(self, reason: str | None) -> None:
        if reason is not None:
            self.refuse(reason)

    def _acknowledge(self) -> None:
        self._due = False
        if self._producer is None or (not self._position_sent and self._producer.waiting):
            return  # a producer that returns waits until its earlier frames are safe
        if not self._position_sent:
            self._position_sent = True
            for sequence, reason in self._producer.refused.items():  # the acknowledged number does not cover them
                self.send(Error(reason, sequence))
        if self._acknowledged != self._producer.last_acknowledged:
            self._acknowledged = self._producer.last_acknowledged
            self.send(Ack(self._producer.name, self._producer.last_acknowledged))

    def _on_hello_timeout(self) -> None:
        self.reject(f"no hello within {self._hello_timeout:g} s")
