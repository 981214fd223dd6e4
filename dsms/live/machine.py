"""How much memory there is for this process: the machine's, or what its container is given of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # by its version


def memory(limits: Iterable[Path] = CONTAINER) -> int:
    """Bytes, all in all: not what is free."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *filter(None, map(_limit, limits))])


def _limit(file: Path) -> int | None:
    """The number in a file; None where there is no such file, or no number in it ("max")."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
