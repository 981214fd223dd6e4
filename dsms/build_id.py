"""Build id: the version and a hash of the source files, to tell a running system from the installed code."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("dsms", "actors")


@cache
def build_id() -> str:
    """Return the version and the start of a hash of all source files."""
    root, code = Path(__file__).parent.parent, hashlib.sha256()
    for file in sorted(file for package in PACKAGES for file in (root / package).rglob("*.py")):
        code.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    try:
        released = version("dsms")
    except PackageNotFoundError:
        released = "0"
    return f"{released}+{code.hexdigest()[:12]}"
