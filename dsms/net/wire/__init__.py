"""The wire protocol between clients and gateways: messages, and their encoding as frames; no sockets."""

from __future__ import annotations

from dsms.config.frame_limits import FRAME_LIMIT_BYTES
from dsms.net.wire.frames import Decoder, encode
from dsms.net.wire.messages import (
    PROTOCOL_VERSION,
    Ack,
    Advance,
    Bye,
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
    "FRAME_LIMIT_BYTES",
    "PROTOCOL_VERSION",
    "Ack",
    "Advance",
    "Bye",
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
    "encode",
]
