"""The access policy of a gateway: tokens, certificate, and limits on connections, frames and stored bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsms.config.frame_limits import FRAME_LIMIT_BYTES
from dsms.config.live import LiveConfig
from dsms.net.certificate import Certificate
from dsms.net.tokens import Tokens


@dataclass(frozen=True)
class AccessPolicy:
    """Whom a gateway admits and how much it accepts; all gateways of a deployment share one."""

    tokens: Tokens | None = None  # None: every client may do everything
    certificate: Certificate | None = None  # None: connections are not encrypted
    connections: int = 1000  # limit of one gateway
    frame: int = FRAME_LIMIT_BYTES  # limit of one frame, in bytes
    hello: float = 10.0  # seconds from connecting until the hello must arrive
    stored: int = LiveConfig.most_stored  # limit of bytes in a gateway's log that no domain has admitted

    @classmethod
    def of(cls, setup: LiveConfig, tokens: Tokens | None, folder: Path) -> AccessPolicy:
        """Make the access policy of a deployment; paths of certificate and key are relative to `folder`."""
        certificate = Certificate.of(setup.certificate, setup.key, folder)
        return cls(tokens, certificate, setup.connections, setup.frame, setup.hello, setup.most_stored)
