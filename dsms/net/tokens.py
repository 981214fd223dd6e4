"""Access tokens: each grants a role (push, read, control); only their digests stay in memory."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dsms.errors import DsmsError
from dsms.net.private_file import read_private_file

PUSH, READ, CONTROL = "push", "read", "control"
ROLES = (PUSH, READ, CONTROL)
TOKEN_FILE_FORMAT = (
    "a single token, or lines of a role (push, read, control), a token, and for push an optional producer prefix"
)


@dataclass(frozen=True, slots=True)
class Permission:
    """What the holder of a token may do; `producer` is the prefix of the producer names it may push under."""

    role: str = CONTROL
    producer: str = ""

    def has_role(self, role: str) -> bool:
        """Whether the holder may act in this role; control includes every role."""
        return self.role in (role, CONTROL)


@dataclass(frozen=True)
class Tokens:
    """The tokens of one file, as digests: other processes may hold them without knowing a token."""

    passes: tuple[tuple[bytes, Permission], ...] = field(repr=False)

    @classmethod
    def of(cls, **tokens: str) -> Tokens:
        """Make tokens from one token a role."""
        return cls(tuple((_digest(token), Permission(role)) for role, token in tokens.items()))

    @classmethod
    def read(cls, path: Path, what: str = "--token-file") -> Tokens:
        """Read the tokens of a file that only its owner may read."""
        passes = tuple((_digest(token), permission) for token, permission in read_entries(path, what))
        if len({digest for digest, _ in passes}) < len(passes):
            raise DsmsError(f"{what} {path}: two lines have the same token; each line must have its own")
        return cls(passes)

    @property
    def roles(self) -> set[str]:
        """The roles that at least one token grants."""
        return {permission.role for _, permission in self.passes}

    def find_permission(self, token: str) -> Permission | None:
        """Return what this token permits, None if it is unknown.

        Takes the same time for every token, so that timing reveals nothing: compares all digests, each in full.
        """
        digest, match = _digest(token), None
        for known, permission in self.passes:
            if hmac.compare_digest(known, digest):
                match = permission
        return match


def read_token(path: Path, what: str) -> str:
    """Read the one token in a client's file, with or without a role before it."""
    tokens = [token for token, _ in read_entries(path, what)]
    if len(tokens) != 1:
        raise DsmsError(f"{what} {path}: the file has {len(tokens)} tokens; a client needs a file with exactly one")
    return tokens[0]


def read_entries(path: Path, what: str) -> Iterator[tuple[str, Permission]]:
    """Read the tokens of a file that only its owner may read, each with its permission."""
    lines = [
        line
        for each in read_private_file(path, what).splitlines()
        if (line := each.strip()) and not line.startswith("#")
    ]
    if len(lines) == 1 and lines[0].split()[0] not in ROLES:
        yield lines[0], Permission()
        return
    for number, line in enumerate(lines, 1):
        match line.split():
            case [str(role), token] if role in ROLES:
                yield token, Permission(role)
            case ["push", token, producer]:
                yield token, Permission(PUSH, producer)
            case _:  # the message does not repeat the line: it may hold a token
                raise DsmsError(
                    f"{what} {path}: line {number} of {len(lines)} is not understood; expected {TOKEN_FILE_FORMAT}"
                )
    if not lines:
        raise DsmsError(f"{what} {path}: the file has no token; expected {TOKEN_FILE_FORMAT}")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.strip().encode(errors="surrogatepass")).digest()
