"""What a server shows to whoever wants to know that it is the right one, and talk to it unheard: TLS by files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from dsms.errors import DsmsError
from dsms.private_file import check


@dataclass(frozen=True)
class Certificate:
    """A certificate, with those it is vouched for by, and its key: two files in PEM."""

    chain: str
    key: str

    @classmethod
    def of(cls, chain: str, key: str, folder: Path = Path()) -> Certificate | None:
        """That of two settings, none if both are empty; relative to a folder."""
        if bool(chain) != bool(key):
            given, lacking = ("certificate", "key") if chain else ("key", "certificate")
            raise DsmsError(f"a {given} without a {lacking}: for TLS both files are wanted, for none neither")
        return cls(str(folder / chain), str(folder / key)) if chain else None

    def context(self) -> ssl.SSLContext:
        """For a server: TLS 1.2 or later."""
        check(Path(self.key), "the key")
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            made.load_cert_chain(self.chain, self.key, password=_none)
        except OSError as error:  # of OpenSSL too
            why = error.strerror if not isinstance(error, ssl.SSLError) else error.reason or str(error)
            raise DsmsError(f"certificate {self.chain} with key {self.key}: cannot be used: {why}") from None
        return made


def trusting(ca: str) -> ssl.SSLContext:
    """For a client: whoever has a certificate that this file vouches for, of the name that is asked for."""
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        why = error.strerror if not isinstance(error, ssl.SSLError) else error.reason or str(error)
        raise DsmsError(f"ca {ca}: no certificates can be read from it: {why}") from None


def _none() -> str:
    """Asked for where a key is encrypted: nobody is at the keyboard."""
    return ""
