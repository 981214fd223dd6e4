"""How a program gets a client: an address, a token, a name."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from dsms.certificate import trusting
from dsms.client.client import PATIENCE, TIMEOUT, Client
from dsms.errors import DsmsError
from dsms.tokens import token_in

ADDRESS = "127.0.0.1:7411"


def connect(
    address: str | None = None,
    *,
    token: str | None = None,
    producer: str | None = None,
    ca: str | None = None,
    timeout: float = TIMEOUT,
    patience: float = PATIENCE,
) -> Client:
    """A client of the gateway at an address (`HOST:PORT`; else DSMS_ADDRESS, else 127.0.0.1:7411).

    The token may be in the file that DSMS_TOKEN_FILE names. Frames of one `producer` are taken once each, also when a
    later program goes on under its name; without a name it is one of its own. With `ca`, a file of certificates (else
    DSMS_CA), TLS is spoken, with a gateway that these vouch for.
    """
    address = address or os.environ.get("DSMS_ADDRESS") or ADDRESS
    file = os.environ.get("DSMS_TOKEN_FILE")
    if token is None and file:
        token = token_in(Path(file), "DSMS_TOKEN_FILE")
    ca = ca or os.environ.get("DSMS_CA")
    trust = trusting(ca) if ca else None
    return Client(_split(address), token or "", producer or uuid.uuid4().hex, timeout, patience, trust)


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise DsmsError(f"{address!r} is no address: HOST:PORT is wanted, as in {ADDRESS}")
    return host.strip("[]"), int(port)
