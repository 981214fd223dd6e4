"""Which code this is: so that a system that has been running for a while can be told from what is installed now."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("dsms", "actors")


@cache
def edition() -> str:
    """The version, and the beginning of a hash of all source files as they are now."""
    root, code = Path(__file__).parent.parent, hashlib.sha256()
    for file in sorted(file for package in PACKAGES for file in (root / package).rglob("*.py")):
        code.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    try:
        released = version("dsms")
    except PackageNotFoundError:
        released = "0"
    return f"{released}+{code.hexdigest()[:12]}"
