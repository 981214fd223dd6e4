"""On what terms clients are let in: who, how, how many, and how much at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsms.certificate import Certificate
from dsms.live.setup import Setup
from dsms.tokens import Tokens
from dsms.wire import LIMIT


@dataclass(frozen=True)
class Terms:
    """The same for all gateways of a deployment."""

    tokens: Tokens | None = None  # none: everybody may do everything
    certificate: Certificate | None = None  # none: what is said can be heard on the way
    connections: int = 1000  # at one gateway
    frame: int = LIMIT  # bytes
    hello: float = 10.0  # seconds to say who one is
    stored: int = Setup.most_stored  # bytes in the log of a gateway that no domain has room for

    @classmethod
    def of(cls, setup: Setup, tokens: Tokens | None, folder: Path) -> Terms:
        """Those of a deployment; its files are relative to the plan's folder."""
        certificate = Certificate.of(setup.certificate, setup.key, folder)
        return cls(tokens, certificate, setup.connections, setup.frame, setup.hello, setup.most_stored)
