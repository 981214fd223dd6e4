"""Messages as another process would receive them."""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.transport.codec import PREFIX, Encoder, decode


def pass_on(message: object) -> Any:
    """Encode a message and decode it again."""
    data = b"".join(bytes(part) for part in Encoder().encode(message))
    header_bytes, payload_bytes = PREFIX.unpack(data[: PREFIX.size])
    header, payload = data[PREFIX.size :][:header_bytes], data[PREFIX.size :][header_bytes:]
    assert len(payload) == payload_bytes
    return decode(header, np.frombuffer(bytearray(payload), np.uint8))
