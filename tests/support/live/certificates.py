"""Certificates for tests: made by OpenSSL, valid for a day, and self-signed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dsms.net.certificate import Certificate

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def make_certificate(folder: Path, name: str = "IP:127.0.0.1") -> Certificate:
    """One for the server of this name; a client that takes its chain as `ca` trusts it."""
    chain, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", *CURVE, "-nodes", "-days", "1", "-subj", "/CN=dsms", "-addext",
         f"subjectAltName={name}", "-keyout", str(key), "-out", str(chain)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    key.chmod(0o600)
    return Certificate(str(chain), str(key))
