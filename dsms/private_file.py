"""Files that are for their owner's eyes only, as tokens and keys; and folders that others must not write to."""

from __future__ import annotations

import os
from pathlib import Path

from dsms.errors import DsmsError


def check(path: Path, what: str) -> None:
    """Refuse a file that others may read; `what` it is given as begins the message."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError as error:
        raise DsmsError(f"{what} {path}: cannot be read: {error.strerror}") from None
    if os.name == "posix" and mode & 0o077:
        raise DsmsError(f"{what} {path}: others may read it (mode {mode:04o}); `chmod 600 {path}` first")


def text_of(path: Path, what: str) -> str:
    """What stands in such a file; no message ever repeats any of it."""
    check(path, what)
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise DsmsError(f"{what} {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DsmsError(f"{what} {path}: cannot be read: it is not UTF-8") from None
    if not text:
        raise DsmsError(f"{what} {path}: it is empty; a text is wanted")
    return text


def check_folder(path: Path, what: str) -> None:
    """Refuse a folder that others may write to: what is read from it is trusted."""
    mode = path.stat().st_mode & 0o777 if path.is_dir() else 0
    if os.name == "posix" and mode & 0o022:
        raise DsmsError(f"{what} {path}: others may write to it (mode {mode:04o}); `chmod go-w {path}` first")
