"""A client of a live system: pushes rows, subscribes to results, and keeps the connection."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from dsms.batch import Batch
from dsms.client.link import Link, RejectedError
from dsms.client.rows import Rows, batch_from
from dsms.client.subscription import Received, Subscription
from dsms.client.window import Window
from dsms.clock import stopwatch
from dsms.errors import DsmsError, FailedError, UnreachableError, existing
from dsms.schema import Schema
from dsms.wire import (
    Ack,
    Advance,
    Bye,
    Data,
    End,
    Error,
    Message,
    Result,
    Schemas,
    Subscribe,
    Unsubscribe,
    encoded,
)
from dsms.wire.pieces import pieces

TIMEOUT = 10.0  # seconds to connect, and to close
PATIENCE = 30.0  # seconds without a connection until it is given up
SOONEST, LATEST = 0.05, 2.0  # seconds between two attempts
LASTING = 5.0  # seconds after which a connection was a good one, even if nothing was heard


class RefusedError(DsmsError):
    """Frames that the other side did not take; `sequences` says which."""

    def __init__(self, refused: Mapping[int, str]) -> None:
        self.sequences = sorted(refused)
        super().__init__("; ".join(f"push {number} was refused: {refused[number]}" for number in self.sequences))


class Client:
    """Rows in, results out. All methods may be called from any thread; one thread of its own reads.

    When the connection breaks it connects again by itself, and sends again what was not acknowledged.
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
        self._window = Window()
        self._refused: dict[int, str] = {}
        self._complaint: str | None = None  # the last thing that went wrong and was about no frame
        self._streams: dict[str, Schema] = {}
        self._queries: dict[str, Schema] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._far: dict[str, Advance] = {}
        self._ended: dict[str, End] = {}
        self._attempts = 0  # to connect, since something last went well
        self._troubled = 0.0  # since when
        self._closing = threading.Event()
        self._sending = threading.RLock()  # held while frames are written, and while a new connection is set up
        try:
            self._link, last, self._lost = self._greeted(timeout)  # lost: refused before, and may be sent again
        except (OSError, DsmsError) as error:
            kind = UnreachableError if isinstance(error, OSError) else FailedError
            raise kind(f"cannot connect to {self._where}: {_said(error)}") from None
        self._window.begin(last)
        self._thread = threading.Thread(target=self._run, name=f"client of {self._where}", daemon=True)
        self._thread.start()

    @property
    def streams(self) -> Mapping[str, Schema]:
        """The streams there are, with their columns."""
        return dict(self._streams)

    @property
    def queries(self) -> Mapping[str, Schema]:
        """The queries whose columns are known."""
        return dict(self._queries)

    def push(self, stream: str, rows: Rows, arrived: Any = None, number: int | None = None) -> int:
        """Send rows: a batch, columns by name, or a list of dicts; `arrived`: when each was due, in epoch seconds.

        Answers the number of this push, or of its last part if it was cut. Waits while too much is not acknowledged.
        With a `number` of one's own, for who may have to send the same again: nothing is sent if that one is taken.
        """
        schema = self._schema(stream)
        cut = list(pieces(batch_from(rows, schema, stream, arrived), schema))
        if number is not None and len(cut) > 1:
            raise DsmsError(f"push {number} into {stream!r}: {len(cut)} frames are needed for one number")
        for piece in cut:
            self._window.wait_for_room()
            self._check()
            if number is None or number > self._window.last or self._lost.pop(number, None) is not None:
                self._push(stream, piece, schema, number)
        return self._window.last if number is None else number

    def advance(self, stream: str, upto: int) -> None:
        """Promise that no row with a lower timestamp follows on a stream."""
        self._schema(stream)
        self._check()
        with self._sending:
            promise = Advance(stream, upto)
            self._say(promise)
            self._far[stream] = promise

    def end(self, stream: str) -> None:
        """Say that nothing follows on a stream, from anybody; `flush` waits until that is known."""
        schema = self._schema(stream)
        self._check()
        with self._sending:
            self._ended[stream] = End(stream)
            self._say(self._ended[stream])
            # No rows, but a number: acknowledged when all before it is done.
            self._push(stream, batch_from([], schema, stream), schema)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was pushed is acknowledged."""
        left = self._window.wait_for_all(timeout)
        self._check()
        if left:
            raise DsmsError(f"{left} pushes are not acknowledged by {self._where} after {timeout:g} s")

    def subscribe(
        self, query: str, after: int | None = None, callback: Callable[[Received], object] | None = None
    ) -> Subscription:
        """The results of a query from the next on, or those after a number as far as they are still kept."""
        self._check()
        with self._sending:
            if query in self._subscriptions:
                raise DsmsError(f"{query!r} is subscribed to already: close that subscription first")
            wish = Subscribe(query, after)
            encoded(wish)  # what cannot be asked for is refused before it is noted
            made = self._subscriptions[query] = Subscription(query, after, lambda: self._leave(query))
            self._say(wish)
        if callback is not None:
            made.hand_to(callback)
        return made

    def close(self, timeout: float = TIMEOUT) -> None:
        """Wait until all is acknowledged, and go; nothing if that is done."""
        if self._closing.is_set():
            return
        try:
            self.flush(timeout)
            with self._sending:
                self._say(Bye())
        finally:
            self._go()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._go()

    @property
    def _where(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def _schema(self, stream: str) -> Schema:
        if stream not in self._streams:
            raise DsmsError(f"no stream {stream!r} at {self._where}{existing(stream, self._streams)}")
        return self._streams[stream]

    def _check(self) -> None:
        """Raise what has gone wrong since the last call."""
        if self._closing.is_set():
            raise DsmsError("the client is closed")
        if self._refused:
            refused, self._refused = self._refused, {}
            raise RefusedError(refused)
        if self._window.failure is not None:
            raise self._window.failure
        if self._complaint is not None:
            complaint, self._complaint = self._complaint, None
            raise DsmsError(complaint)

    def _push(self, stream: str, batch: Batch, schema: Schema, number: int | None = None) -> None:
        with self._sending:
            made = self._window.add(lambda n: b"".join(encoded(Data(stream, n, batch, schema))), number)
            self._write(made)

    def _say(self, message: Message) -> None:
        self._write(b"".join(encoded(message)))

    def _write(self, frame: bytes) -> None:
        """Send it; if the connection is broken, that is for the thread that reads to find out and mend."""
        try:
            self._link.write(frame)
        except OSError:
            self._link.cut()

    def _leave(self, query: str) -> None:
        with self._sending:
            if self._subscriptions.pop(query, None) is not None and not self._closing.is_set():
                self._say(Unsubscribe(query))

    def _go(self) -> None:
        self._closing.set()
        self._window.fail(DsmsError("the client is closed"))  # nobody is left waiting
        self._link.cut()
        if threading.current_thread() is not self._thread:
            self._thread.join(self._timeout)
        for subscription in list(self._subscriptions.values()):
            subscription.close()
        self._link.close()

    def _run(self) -> None:
        """Read until there is no more connection to be had, or none that lasts."""
        try:
            while not self._closing.is_set():
                self._read()
                self._link.cut()  # so that nobody waits to write into it
                if not self._closing.is_set():
                    self._again()
        except DsmsError as error:
            self._fail(error)
        except Exception as error:
            self._fail(DsmsError(f"the client failed: {type(error).__name__}: {error}"))

    def _read(self) -> None:
        """Hear what comes, until the connection breaks; a reason given just before was the reason for it."""
        reason, begun = None, stopwatch()
        try:
            for message in self._link.messages():
                reason = message.reason if isinstance(message, Error) and _is_general(message) else None
                self._complaint = reason or self._complaint
                self._heard(message)
                self._attempts = 0
        except OSError:
            pass
        if reason is not None and not self._closing.is_set():
            raise RejectedError(f"{self._where} has closed the connection: {reason}")
        if stopwatch() - begun > LASTING:
            self._attempts = 0

    def _heard(self, message: Message) -> None:
        match message:
            case Ack():
                self._window.acknowledge(message.sequence)
            case Result():
                if (wish := self._subscriptions.get(message.query)) is not None:
                    batch = message.batch
                    wish.give(Received(batch.columns, batch.rows, batch.ts, sign=batch.sign, number=message.sequence))
            case Error(sequence=int(sequence)):
                self._refuse(sequence, message.reason)
            case Error(query=str(query)):
                if (wish := self._subscriptions.pop(query, None)) is not None:
                    wish.fail(DsmsError(message.reason))
            case Schemas():
                self._streams.update(message.streams)
                self._queries.update(message.queries)

    def _refuse(self, sequence: int, reason: str) -> None:
        """A frame was not taken; one that is no longer under way has been told of before."""
        if self._window.drop(sequence):
            self._refused[sequence] = reason

    def _greeted(self, timeout: float) -> tuple[Link, int, dict[int, str]]:
        link = Link(*self._address, timeout, self._trust)
        try:
            schemas, last, refused = link.greet(self.producer, self._token)
        except BaseException:
            link.close()
            raise
        self._heard(schemas)
        return link, last, refused

    def _again(self) -> None:
        """Connect anew, however often it takes, and go on where the other side stands."""
        while True:
            if not self._attempts:
                self._troubled = stopwatch()
            elif self._closing.wait(min(SOONEST * 2**self._attempts, LATEST)):
                return
            self._attempts += 1
            try:
                link, last, refused = self._greeted(self._timeout)
                if self._closing.is_set():
                    link.close()
                    return
                break
            except OSError as error:
                self._give_up(_said(error))
        self._give_up("it breaks as soon as it is there")
        for sequence, reason in refused.items():
            self._refuse(sequence, reason)
        self._resume(link, last)

    def _give_up(self, reason: str) -> None:
        """Unless it is too soon for that."""
        if (gone := stopwatch() - self._troubled) > self._patience:
            raise DsmsError(f"no connection to {self._where} for {gone:.0f} s: {reason}")

    def _resume(self, link: Link, last: int) -> None:
        """Send again what may be lost."""
        with self._sending:
            self._link.close()
            self._link = link
            if self._window.begin(last):
                self._attempts = 0
            for frame in self._window.unsafe():
                self._write(frame)
            wishes = [Subscribe(query, wish.last) for query, wish in self._subscriptions.items()]
            messages: list[Message] = [*self._far.values(), *self._ended.values(), *wishes]
            for message in messages:
                self._say(message)

    def _fail(self, error: DsmsError) -> None:
        self._window.fail(error)
        for subscription in list(self._subscriptions.values()):
            subscription.fail(error)


def _is_general(error: Error) -> bool:
    return error.sequence is None and error.query is None


def _said(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
