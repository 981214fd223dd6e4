"""What producers, subscribers and the live system say to each other: frames of bytes, without a socket."""

from __future__ import annotations

from dsms.wire.frames import LIMIT, Decoder, encoded
from dsms.wire.messages import (
    VERSION,
    Ack,
    Advance,
    Bye,
    Credit,
    Data,
    End,
    Error,
    Hello,
    Message,
    Result,
    Schemas,
    Subscribe,
    Unsubscribe,
    WireError,
)

__all__ = [
    "LIMIT",
    "VERSION",
    "Ack",
    "Advance",
    "Bye",
    "Credit",
    "Data",
    "Decoder",
    "End",
    "Error",
    "Hello",
    "Message",
    "Result",
    "Schemas",
    "Subscribe",
    "Unsubscribe",
    "WireError",
    "encoded",
]
