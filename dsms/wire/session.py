"""The server's side of one connection: which frames may come when; bytes in, messages out, without a socket.

First a hello, with the token if one is wanted. It is answered by the schemas and an acknowledgement of what is known
of this producer; only then may rows follow, for only then is it said what they must look like.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsms.schema import Schema
from dsms.tokens import PUSH, READ, Pass, Tokens
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
    shown,
)

STRANGER = 64 * 1024  # bytes of a frame from somebody who has not said hello
# What a client may say, and the role that it needs for it.
TAKEN = {Data: PUSH, Advance: PUSH, End: PUSH, Subscribe: READ, Unsubscribe: READ, Bye: None}


class Session:
    """Checks what one client says; what is refused stands in its place as a WireError, fatal ones with `lost`."""

    def __init__(self, tokens: Tokens | None = None, limit: int = LIMIT) -> None:
        self._tokens, self._limit = tokens, limit
        self._decoder = Decoder(limit=min(STRANGER, limit))
        self.producer: str | None = None  # who speaks, once that is said
        self.granted = Pass()  # what it may do, once it is known who speaks
        self.over = False  # nothing more is read

    @property
    def held(self) -> int:
        """Bytes of a frame that is not complete."""
        return self._decoder.held

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
        if isinstance(message, WireError):
            return message
        name = _name(type(message))
        if type(message) not in TAKEN:
            return WireError(f"a {name} frame from a client; one of {[*map(_name, TAKEN)]} is wanted")
        role = TAKEN[type(message)]
        if role is not None and not self.granted.may(role):
            wanted = f"a {name} frame: the token shown is for {self.granted.role}; one for {role} or control is wanted"
            about = {key: getattr(message, key) for key in ("sequence", "query") if hasattr(message, key)}
            return WireError(wanted, **about)
        return message

    def _greeted(self, message: Message | WireError) -> Message | WireError:
        """The hello that every connection begins with; anything else ends it."""
        if isinstance(message, WireError):
            return WireError(f"before hello: {message.reason}", lost=True)
        if not isinstance(message, Hello):
            return WireError(f"a {_name(type(message))} frame; hello is wanted first", lost=True)
        if not message.producer:
            return WireError("hello: producer is ''; a name is wanted", lost=True)
        if self._tokens is not None:
            granted = self._tokens.shown(message.token)
            if granted is None:
                return WireError("hello: the token is none of those that are wanted here", lost=True)
            if not message.producer.startswith(granted.producer):
                reason = f"hello: producer is {shown(message.producer)}; with this token it begins with"
                return WireError(f"{reason} {granted.producer!r}", lost=True)
            self.granted = granted
        self.producer, self._decoder.limit = message.producer, self._limit
        return message


def _name(kind: type[Message]) -> str:
    return kind.__name__.lower()
