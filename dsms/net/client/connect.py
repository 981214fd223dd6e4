"""`dsms.connect`: opens a client from an address, a token and a producer name, or from environment variables."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from dsms.errors import DsmsError
from dsms.net.certificate import make_client_context
from dsms.net.client.client import CONNECT_TIMEOUT_S, RECONNECT_TIMEOUT_S, Client
from dsms.net.tokens import read_token

DEFAULT_ADDRESS = "127.0.0.1:7411"


def connect(
    address: str | None = None,
    *,
    token: str | None = None,
    producer: str | None = None,
    ca: str | None = None,
    timeout: float = CONNECT_TIMEOUT_S,
    patience: float = RECONNECT_TIMEOUT_S,
) -> Client:
    """Connect to the gateway at `address` (`HOST:PORT`; default: DSMS_ADDRESS, else 127.0.0.1:7411).

    Without `token`, reads it from the file that DSMS_TOKEN_FILE names. The system accepts each frame of a `producer`
    once, also from a later program of the same name; the default is a unique name. `ca` (default: DSMS_CA) is a file
    of certificates: the client then uses TLS, and trusts gateways with a certificate that they sign. `timeout` limits
    connecting and closing, `patience` the time without a connection; both in seconds.
    """
    address = address or os.environ.get("DSMS_ADDRESS") or DEFAULT_ADDRESS
    file = os.environ.get("DSMS_TOKEN_FILE")
    if token is None and file:
        token = read_token(Path(file), "DSMS_TOKEN_FILE")
    ca = ca or os.environ.get("DSMS_CA")
    trust = make_client_context(ca) if ca else None
    return Client(_split_address(address), token or "", producer or uuid.uuid4().hex, timeout, patience, trust)


def _split_address(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise DsmsError(f"{address!r} is not an address: expected HOST:PORT, as in {DEFAULT_ADDRESS}")
    return host.strip("[]"), int(port)
