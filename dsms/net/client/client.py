"""The client of a live system: pushes rows, subscribes to results, and reconnects by itself."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from dsms.clock import monotonic_s
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError, FailedError, UnreachableError, existing
from dsms.net.client.connection import Connection, RejectedError
from dsms.net.client.row_conversion import Rows, make_batch
from dsms.net.client.send_window import SendWindow
from dsms.net.client.subscription import Received, Subscription
from dsms.net.wire import Ack, Advance, Bye, Data, End, Error, Message, Result, Schemas, Subscribe, Unsubscribe, encode
from dsms.net.wire.frame_split import split_batch

CONNECT_TIMEOUT_S = 10.0  # to connect, and to close
RECONNECT_TIMEOUT_S = 30.0  # without a connection until the client fails
RETRY_MIN_S, RETRY_MAX_S = 0.05, 2.0  # between two attempts to connect
STABLE_CONNECTION_S = 5.0  # a connection that lasted longer was good, even if no message came


class RefusedError(DsmsError):
    """The gateway refused frames; `sequences` lists them."""

    def __init__(self, refused: Mapping[int, str]) -> None:
        self.sequences = sorted(refused)
        super().__init__("; ".join(f"push {number} was refused: {refused[number]}" for number in self.sequences))


class Client:
    """Pushes rows and receives results. Any thread may call its methods; a thread of its own reads.

    When the connection breaks, the client reconnects and resends the frames that were not acknowledged.
    """

    def __init__(
        self,
        address: tuple[str, int],
        token: str,
        producer: str,
        timeout: float,
        patience: float,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.producer, self._trust = producer, trust
        self._address, self._token, self._timeout, self._patience = address, token, timeout, patience
        self._window = SendWindow()
        self._refused: dict[int, str] = {}
        self._last_error: str | None = None  # the last error that was about no frame
        self._streams: dict[str, Schema] = {}
        self._queries: dict[str, Schema] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._advanced: dict[str, Advance] = {}
        self._ended: dict[str, End] = {}
        self._attempts = 0  # to connect, since the last sign of progress
        self._disconnected_at = 0.0
        self._closing = threading.Event()
        self._sending = threading.RLock()  # held to write frames, and to set up a new connection
        try:
            # Frames that the gateway refused before may be sent again.
            self._link, last, self._resendable = self._connect(timeout)
        except (OSError, DsmsError) as error:
            kind = UnreachableError if isinstance(error, OSError) else FailedError
            raise kind(f"cannot connect to {self._where}: {_error_text(error)}") from None
        self._window.begin(last)
        self._thread = threading.Thread(target=self._run, name=f"client of {self._where}", daemon=True)
        self._thread.start()

    @property
    def streams(self) -> Mapping[str, Schema]:
        """The schema of each stream."""
        return dict(self._streams)

    @property
    def queries(self) -> Mapping[str, Schema]:
        """The schema of each query, as far as the gateway knows it."""
        return dict(self._queries)

    def push(self, stream: str, rows: Rows, arrived: Any = None, number: int | None = None) -> int:
        """Send rows: a batch, columns by name, or a list of dicts; `arrived` is when each was due, in epoch seconds.

        Returns the number of this push, or of its last piece if it was split. Waits while the send window is full.
        A program that may repeat a push passes its own `number`: if the system accepted that number, sends nothing.
        """
        schema = self._schema(stream)
        pieces = list(split_batch(make_batch(rows, schema, stream, arrived), schema))
        if number is not None and len(pieces) > 1:
            raise DsmsError(
                f"push {number} into {stream!r}: the rows need {len(pieces)} frames; a numbered push must fit into one"
            )
        for piece in pieces:
            self._window.wait_for_room()
            self._check()
            if number is None or number > self._window.last or self._resendable.pop(number, None) is not None:
                self._push(stream, piece, schema, number)
        return self._window.last if number is None else number

    def advance(self, stream: str, upto: int) -> None:
        """Promise that no later row on a stream has a timestamp below `upto`."""
        self._schema(stream)
        self._check()
        with self._sending:
            promise = Advance(stream, upto)
            self._send(promise)
            self._advanced[stream] = promise

    def end(self, stream: str) -> None:
        """End a stream for all producers; `flush` waits until the system knows."""
        schema = self._schema(stream)
        self._check()
        with self._sending:
            self._ended[stream] = End(stream)
            self._send(self._ended[stream])
            # An empty frame has a sequence: its acknowledgement means that the end before it is processed.
            self._push(stream, make_batch([], schema, stream), schema)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the gateway has acknowledged all pushes."""
        pending = self._window.wait_for_all(timeout)
        self._check()
        if pending:
            raise DsmsError(f"{self._where} has not acknowledged {pending} pushes after {timeout:g} s")

    def subscribe(
        self, query: str, after: int | None = None, callback: Callable[[Received], object] | None = None
    ) -> Subscription:
        """Subscribe to a query: to its future results, or to all that the system still holds after a number."""
        self._check()
        with self._sending:
            if query in self._subscriptions:
                raise DsmsError(f"query {query!r} has a subscription already: close that first")
            request = Subscribe(query, after)
            encode(request)  # refuses a bad request before the subscription is registered
            subscription = Subscription(query, after, lambda: self._unsubscribe(query))
            self._subscriptions[query] = subscription
            self._send(request)
        if callback is not None:
            subscription.start_callback(callback)
        return subscription

    def close(self, timeout: float = CONNECT_TIMEOUT_S) -> None:
        """Wait until all pushes are acknowledged, then disconnect; does nothing if closed already."""
        if self._closing.is_set():
            return
        try:
            self.flush(timeout)
            self._closing.set()  # first: the gateway answers a goodbye by closing, which is no reason to reconnect
            with self._sending:
                self._send(Bye())
        finally:
            self._close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._close()

    @property
    def _where(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def _schema(self, stream: str) -> Schema:
        if stream not in self._streams:
            raise DsmsError(f"no stream {stream!r} at {self._where}{existing(stream, self._streams)}")
        return self._streams[stream]

    def _check(self) -> None:
        """Raise the error that happened since the last call, if any."""
        if self._closing.is_set():
            raise DsmsError("the client is closed")
        if self._refused:
            refused, self._refused = self._refused, {}
            raise RefusedError(refused)
        if self._window.failure is not None:
            raise self._window.failure
        if self._last_error is not None:
            reason, self._last_error = self._last_error, None
            raise DsmsError(reason)

    def _push(self, stream: str, batch: Batch, schema: Schema, number: int | None = None) -> None:
        with self._sending:
            frame = self._window.add(lambda n: b"".join(encode(Data(stream, n, batch, schema))), number)
            self._write(frame)

    def _send(self, message: Message) -> None:
        self._write(b"".join(encode(message)))

    def _write(self, frame: bytes) -> None:
        """Send a frame; if the connection is broken, cut it, so that the reading thread reconnects."""
        try:
            self._link.write(frame)
        except OSError:
            self._link.cut()

    def _unsubscribe(self, query: str) -> None:
        with self._sending:
            if self._subscriptions.pop(query, None) is not None and not self._closing.is_set():
                self._send(Unsubscribe(query))

    def _close(self) -> None:
        self._closing.set()
        self._window.fail(DsmsError("the client is closed"))  # ends the waits of other threads
        self._link.cut()
        if threading.current_thread() is not self._thread:
            self._thread.join(self._timeout)
        for subscription in list(self._subscriptions.values()):
            subscription.close()
        self._link.close()

    def _run(self) -> None:
        """Read and reconnect until the client is closed or the gateway is unreachable for too long."""
        try:
            while not self._closing.is_set():
                self._read()
                self._link.cut()  # ends blocked writes of other threads
                if not self._closing.is_set():
                    self._reconnect()
        except DsmsError as error:
            self._fail(error)
        except Exception as error:
            self._fail(DsmsError(f"the client failed: {type(error).__name__}: {error}"))

    def _read(self) -> None:
        """Handle messages until the connection breaks; a general error as last message is the gateway's reason."""
        reason, connected_at = None, monotonic_s()
        try:
            for message in self._link.messages():
                reason = message.reason if isinstance(message, Error) and _is_general(message) else None
                self._last_error = reason or self._last_error
                self._handle(message)
                self._attempts = 0
        except OSError:
            pass
        if reason is not None and not self._closing.is_set():
            raise RejectedError(f"{self._where} closed the connection: {reason}")
        if monotonic_s() - connected_at > STABLE_CONNECTION_S:
            self._attempts = 0

    def _handle(self, message: Message) -> None:
        match message:
            case Ack():
                self._window.acknowledge(message.sequence)
            case Result():
                if (subscription := self._subscriptions.get(message.query)) is not None:
                    batch = message.batch
                    subscription.deliver(
                        Received(batch.columns, batch.rows, batch.ts, sign=batch.sign, number=message.sequence)
                    )
            case Error(sequence=int(sequence)):
                self._refuse(sequence, message.reason)
            case Error(query=str(query)):
                if (subscription := self._subscriptions.pop(query, None)) is not None:
                    subscription.fail(DsmsError(message.reason))
            case Schemas():
                self._streams.update(message.streams)
                self._queries.update(message.queries)

    def _refuse(self, sequence: int, reason: str) -> None:
        """Record the refusal of a frame; if it is not in flight, an earlier message reported it."""
        if self._window.drop(sequence):
            self._refused[sequence] = reason

    def _connect(self, timeout: float) -> tuple[Connection, int, dict[int, str]]:
        link = Connection(*self._address, timeout, self._trust)
        try:
            schemas, last, refused = link.greet(self.producer, self._token)
        except BaseException:
            link.close()
            raise
        self._handle(schemas)
        return link, last, refused

    def _reconnect(self) -> None:
        """Try to connect until it works or takes too long, then resume after the gateway's last acknowledged frame."""
        while True:
            if not self._attempts:
                self._disconnected_at = monotonic_s()
            elif self._closing.wait(min(RETRY_MIN_S * 2**self._attempts, RETRY_MAX_S)):
                return
            self._attempts += 1
            try:
                link, last, refused = self._connect(self._timeout)
                if self._closing.is_set():
                    link.close()
                    return
                break
            except OSError as error:
                self._give_up(_error_text(error))
        self._give_up("each new connection breaks at once")
        for sequence, reason in refused.items():
            self._refuse(sequence, reason)
        self._resume(link, last)

    def _give_up(self, reason: str) -> None:
        """Raise if the client has had no connection for longer than its patience."""
        if (outage_s := monotonic_s() - self._disconnected_at) > self._patience:
            raise DsmsError(f"no connection to {self._where} for {outage_s:.0f} s: {reason}")

    def _resume(self, link: Connection, last: int) -> None:
        """Switch to a new connection; resend frames, promises, stream ends and subscriptions."""
        with self._sending:
            self._link.close()
            self._link = link
            if self._window.begin(last):
                self._attempts = 0
            for frame in self._window.list_unacknowledged():
                self._write(frame)
            requests = [Subscribe(query, each.last) for query, each in self._subscriptions.items()]
            messages: list[Message] = [*self._advanced.values(), *self._ended.values(), *requests]
            for message in messages:
                self._send(message)

    def _fail(self, error: DsmsError) -> None:
        self._window.fail(error)
        for subscription in list(self._subscriptions.values()):
            subscription.fail(error)


def _is_general(error: Error) -> bool:
    return error.sequence is None and error.query is None


def _error_text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
