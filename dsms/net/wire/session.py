"""The server's side of one connection, without a socket: authenticates the client and checks its frames.

A client sends hello first, with a token if the server has tokens. The server answers with the schemas and an
acknowledgement of the producer's last frame. Only then may rows follow, because the schemas define their columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsms.config.frame_limits import FRAME_LIMIT_BYTES, UNAUTHENTICATED_FRAME_LIMIT_BYTES
from dsms.data.schema import Schema
from dsms.net.tokens import PUSH, READ, Permission, Tokens
from dsms.net.wire.frames import Decoder
from dsms.net.wire.messages import Advance, Bye, Data, End, Hello, Message, Subscribe, Unsubscribe, WireError, quote

# The messages that a client may send, and the role that each requires.
REQUIRED_ROLES = {Data: PUSH, Advance: PUSH, End: PUSH, Subscribe: READ, Unsubscribe: READ, Bye: None}


class Session:
    """Checks one client's frames; a refused one becomes a WireError in its place, with `lost` if the session ends."""

    def __init__(self, tokens: Tokens | None = None, limit: int = FRAME_LIMIT_BYTES) -> None:
        self._tokens, self._limit = tokens, limit
        self._decoder = Decoder(limit=min(UNAUTHENTICATED_FRAME_LIMIT_BYTES, limit))
        self.producer: str | None = None  # its name, once hello is accepted
        self.permission = Permission()  # what the client may do, once hello is accepted
        self.is_over = False  # once True, reads nothing more

    @property
    def held(self) -> int:
        """Bytes held of an incomplete frame."""
        return self._decoder.held

    def set_streams(self, streams: Mapping[str, Schema]) -> None:
        """Accept rows of these streams from now on."""
        self._decoder.streams = dict(streams)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Message | WireError]:
        """Return the messages that these bytes complete, in order."""
        messages: list[Message | WireError] = []
        for message in self._decoder.feed(data) if not self.is_over else ():
            checked = self._check(message)
            messages.append(checked)
            self.is_over = isinstance(checked, Bye) or (isinstance(checked, WireError) and checked.lost)
            if self.is_over:
                break
        return messages

    def _check(self, message: Message | WireError) -> Message | WireError:
        if self.producer is None:
            return self._check_hello(message)
        if isinstance(message, WireError):
            return message
        name = _message_name(type(message))
        if type(message) not in REQUIRED_ROLES:
            allowed = [*map(_message_name, REQUIRED_ROLES)]
            return WireError(f"a client must not send a {name} frame; it may send {allowed}")
        role = REQUIRED_ROLES[type(message)]
        if role is not None and not self.permission.has_role(role):
            reason = f"permission denied: a {name} frame needs a token with the role {role} or control"
            reason += f"; this one has {self.permission.role}"
            subject = {key: getattr(message, key) for key in ("sequence", "query") if hasattr(message, key)}
            return WireError(reason, **subject)
        return message

    def _check_hello(self, message: Message | WireError) -> Message | WireError:
        """Authenticate the client by its hello; every other first frame ends the connection."""
        if isinstance(message, WireError):
            return WireError(f"before hello: {message.reason}", lost=True)
        if not isinstance(message, Hello):
            return WireError(f"a {_message_name(type(message))} frame before hello; hello must come first", lost=True)
        if not message.producer:
            return WireError("hello: producer is ''; it must be a non-empty name", lost=True)
        if self._tokens is not None:
            permission = self._tokens.find_permission(message.token)
            if permission is None:
                return WireError("authentication failed: unknown token", lost=True)
            if not message.producer.startswith(permission.producer):
                reason = f"permission denied: producer is {quote(message.producer)}; with this token it must begin with"
                return WireError(f"{reason} {permission.producer!r}", lost=True)
            self.permission = permission
        self.producer, self._decoder.limit = message.producer, self._limit
        return message


def _message_name(kind: type[Message]) -> str:
    return kind.__name__.lower()
