"""TLS from files: a server's certificate and key, and the certificate authorities a client trusts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from dsms.errors import DsmsError
from dsms.net.private_file import check_private_file


@dataclass(frozen=True)
class Certificate:
    """Paths of a server's certificate chain and its private key, both in PEM format."""

    chain: str
    key: str

    @classmethod
    def of(cls, chain: str, key: str, folder: Path = Path()) -> Certificate | None:
        """Make a certificate from two settings, relative to `folder`; None if both are empty."""
        if bool(chain) != bool(key):
            present, missing = ("certificate", "key") if chain else ("key", "certificate")
            raise DsmsError(f"a {present} without a {missing}: TLS needs both files; give both or neither")
        return cls(str(folder / chain), str(folder / key)) if chain else None

    def context(self) -> ssl.SSLContext:
        """Make the TLS context of a server: TLS 1.2 or later."""
        check_private_file(Path(self.key), "the key")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.chain, self.key, password=_refuse_password)
        except OSError as error:  # errors of OpenSSL are OSErrors too
            raise DsmsError(f"certificate {self.chain} with key {self.key}: cannot be used: {_cause(error)}") from None
        return context


def make_client_context(ca: str) -> ssl.SSLContext:
    """Make the TLS context of a client: it trusts servers whose certificate this file signs for their host name."""
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise DsmsError(f"ca {ca}: cannot read certificates from it: {_cause(error)}") from None


def _cause(error: OSError) -> str | None:
    return error.reason or str(error) if isinstance(error, ssl.SSLError) else error.strerror


def _refuse_password() -> str:
    """Answer OpenSSL's question for the password of an encrypted key: a server has no user to ask."""
    return ""
