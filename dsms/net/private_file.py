"""Permission checks: files of secrets that only their owner may read, folders that only their owner may write to."""

from __future__ import annotations

import os
from pathlib import Path

from dsms.errors import DsmsError


def check_private_file(path: Path, what: str) -> None:
    """Refuse a file that other users may read; `what` names the setting in the message."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError as error:
        raise DsmsError(f"{what} {path}: cannot be read: {error.strerror}") from None
    if os.name == "posix" and mode & 0o077:
        raise DsmsError(f"{what} {path}: others may read it (mode {mode:04o}); `chmod 600 {path}` first")


def read_private_file(path: Path, what: str) -> str:
    """Read the text of a private file; no error message repeats any of it."""
    check_private_file(path, what)
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise DsmsError(f"{what} {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DsmsError(f"{what} {path}: cannot be read: not UTF-8") from None
    if not text:
        raise DsmsError(f"{what} {path}: it is empty")
    return text


def check_private_folder(path: Path, what: str) -> None:
    """Refuse a folder that other users may write to: the system trusts the files in it."""
    mode = path.stat().st_mode & 0o777 if path.is_dir() else 0
    if os.name == "posix" and mode & 0o022:
        raise DsmsError(f"{what} {path}: others may write to it (mode {mode:04o}); `chmod go-w {path}` first")
