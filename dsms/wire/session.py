"""The server's side of one connection: which frames may come when; bytes in, messages out, without a socket.

First a hello, with the token if one is wanted. It is answered by the schemas and an acknowledgement of what is known
of this producer; only then may rows follow, for only then is it said what they must look like.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from dsms.schema import Schema
from dsms.wire.frames import LIMIT, Decoder
from dsms.wire.messages import (
    Advance,
    Bye,
    Data,
    End,
    Hello,
    Message,
    Subscribe,
    Unsubscribe,
    WireError,
)

STRANGER = 64 * 1024  # bytes of a frame from somebody who has not said hello
TAKEN = (Data, Advance, End, Subscribe, Unsubscribe, Bye)


class Session:
    """Checks what one client says; what is refused stands in its place as a WireError, fatal ones with `lost`."""

    def __init__(self, token: str | None = None, limit: int = LIMIT) -> None:
        self._token, self._limit = token, limit
        self._decoder = Decoder(limit=min(STRANGER, limit))
        self.producer: str | None = None  # who speaks, once that is said
        self.over = False  # nothing more is read

    def know(self, streams: Mapping[str, Schema]) -> None:
        """Rows of these streams are taken from now on."""
        self._decoder.streams = dict(streams)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Message | WireError]:
        """The messages that these bytes complete, in order."""
        found: list[Message | WireError] = []
        for message in self._decoder.feed(data) if not self.over else ():
            checked = self._checked(message)
            found.append(checked)
            self.over = isinstance(checked, Bye) or (isinstance(checked, WireError) and checked.lost)
            if self.over:
                break
        return found

    def _checked(self, message: Message | WireError) -> Message | WireError:
        if self.producer is None:
            return self._greeted(message)
        if isinstance(message, (WireError, *TAKEN)):
            return message
        name = type(message).__name__.lower()
        return WireError(f"a {name} frame from a client; one of {[kind.__name__.lower() for kind in TAKEN]} is wanted")

    def _greeted(self, message: Message | WireError) -> Message | WireError:
        """The hello that every connection begins with; anything else ends it."""
        if isinstance(message, WireError):
            return WireError(f"before hello: {message.reason}", lost=True)
        if not isinstance(message, Hello):
            return WireError(f"a {type(message).__name__.lower()} frame; hello is wanted first", lost=True)
        if not message.producer:
            return WireError("hello: producer is ''; a name is wanted", lost=True)
        if self._token is not None and not hmac.compare_digest(self._token.encode(), message.token.encode()):
            return WireError("hello: the token is not the one that is wanted here", lost=True)
        self.producer, self._decoder.limit = message.producer, self._limit
        return message
