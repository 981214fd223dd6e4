"""Tokens and keys: whether they can be read, by their owner alone, and are long enough not to be guessed."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from actors.doctor.finding import ERROR, OK, WARNING, Finding
from dsms.certificate import Certificate
from dsms.clock import epoch
from dsms.errors import DsmsError
from dsms.tokens import entries

SHORT = 16  # characters that a token should have
SOON = 14  # days
DAY = 86_400.0


def secrets(
    given: Iterable[Path], certificate: Certificate | None, env: Mapping[str, str] = os.environ
) -> Iterator[Finding]:
    """The files that are named here or by the environment, and Ray's where deploy/head keeps it."""
    named = [("--token-file", path) for path in given]
    named += [(name, Path(env[name])) for name in ("DSMS_TOKEN_FILE", "RAY_AUTH_TOKEN_PATH") if env.get(name)]
    rays = Path(env.get("DSMS_RAY_TOKEN") or Path.home() / ".dsms" / "ray_token")
    if rays.exists() or "DSMS_RAY_TOKEN" in env:
        named.append(("DSMS_RAY_TOKEN", rays))
    for what, path in named:
        yield token(what, path)
    if certificate is not None:
        yield of_certificate(certificate)
    elif not named:
        yield Finding(OK, "tokens", "no file with tokens is named")


def token(what: str, path: Path) -> Finding:
    """A file of tokens, of which nothing is shown but how many there are."""
    try:
        found = [text for text, _ in entries(path, what)]
    except DsmsError as error:
        return Finding(ERROR, "tokens", str(error), f"for a new one: (umask 077; openssl rand -hex 32 > {path})")
    count = f"{what} {path}: {len(found)}, for its owner's eyes only"
    if min(map(len, found)) < SHORT:
        return Finding(WARNING, "tokens", f"{count}; one is shorter than {SHORT}", "`openssl rand -hex 32` makes one")
    return Finding(OK, "tokens", count)


def of_certificate(certificate: Certificate) -> Finding:
    """Whether it can be used, with its key, and for how long."""
    what, remedy = "certificate", "a certificate and its key in PEM, the key of mode 0600"
    try:
        certificate.context()
        trusted = ssl.create_default_context(cafile=certificate.chain)
        ends = [ssl.cert_time_to_seconds(str(one["notAfter"])) for one in trusted.get_ca_certs()]
    except (DsmsError, OSError) as error:
        return Finding(ERROR, what, str(error), remedy)
    days = (min(ends) - epoch()) / DAY if ends else None
    if days is not None and days < SOON:
        state = ERROR if days < 0 else WARNING
        return Finding(state, what, f"{certificate.chain}: good for {max(days, 0):.0f} more days", "have it renewed")
    return Finding(OK, what, certificate.chain if days is None else f"{certificate.chain}: good for {days:.0f} days")
