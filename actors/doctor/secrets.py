"""Checks of token files and certificates: readable by their owner only, long enough, not expired."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from actors.doctor.finding import ERROR, OK, WARNING, Finding
from dsms.clock import wall_time_s
from dsms.errors import DsmsError
from dsms.net.certificate import Certificate
from dsms.net.tokens import read_entries

MIN_TOKEN_CHARS = 16  # of a token that is hard to guess
EXPIRY_WARNING_DAYS = 14
DAY_S = 86_400.0


def check_secrets(
    given: Iterable[Path], certificate: Certificate | None, env: Mapping[str, str] = os.environ
) -> Iterator[Finding]:
    """Check the token files in `given` and in the environment, and Ray's token file of deploy/head."""
    named = [("--token-file", path) for path in given]
    named += [(name, Path(env[name])) for name in ("DSMS_TOKEN_FILE", "RAY_AUTH_TOKEN_PATH") if env.get(name)]
    rays = Path(env.get("DSMS_RAY_TOKEN") or Path.home() / ".dsms" / "ray_token")
    if rays.exists() or "DSMS_RAY_TOKEN" in env:
        named.append(("DSMS_RAY_TOKEN", rays))
    for what, path in named:
        yield check_token(what, path)
    if certificate is not None:
        yield check_certificate(certificate)
    elif not named:
        yield Finding(OK, "tokens", "no token file is configured")


def check_token(what: str, path: Path) -> Finding:
    """Check a token file; the finding shows only how many tokens it has."""
    try:
        tokens = [text for text, _ in read_entries(path, what)]
    except DsmsError as error:
        return Finding(ERROR, "tokens", str(error), f"create one: (umask 077; openssl rand -hex 32 > {path})")
    count = f"{what} {path}: {len(tokens)}, readable by its owner only"
    if min(map(len, tokens)) < MIN_TOKEN_CHARS:
        return Finding(
            WARNING, "tokens", f"{count}; one is shorter than {MIN_TOKEN_CHARS}", "`openssl rand -hex 32` makes one"
        )
    return Finding(OK, "tokens", count)


def check_certificate(certificate: Certificate) -> Finding:
    """Whether a certificate and its key can be used, and when it expires."""
    what, remedy = "certificate", "give a certificate and its key in PEM, the key with mode 0600"
    try:
        certificate.context()
        trusted = ssl.create_default_context(cafile=certificate.chain)
        ends = [ssl.cert_time_to_seconds(str(one["notAfter"])) for one in trusted.get_ca_certs()]
    except (DsmsError, OSError) as error:
        return Finding(ERROR, what, str(error), remedy)
    days = (min(ends) - wall_time_s()) / DAY_S if ends else None
    if days is not None and days < EXPIRY_WARNING_DAYS:
        state = ERROR if days < 0 else WARNING
        return Finding(state, what, f"{certificate.chain}: expires in {max(days, 0):.0f} days", "renew it")
    return Finding(OK, what, certificate.chain if days is None else f"{certificate.chain}: expires in {days:.0f} days")
