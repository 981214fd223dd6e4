"""Who may do what: tokens, each with a role, of which only digests are kept."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dsms.errors import DsmsError
from dsms.private_file import text_of

PUSH, READ, CONTROL = "push", "read", "control"
ROLES = (PUSH, READ, CONTROL)
WANTED = "a single token, or lines of a role (push, read, control), a token, and for push perhaps a producer"


@dataclass(frozen=True, slots=True)
class Pass:
    """What somebody may do who has shown a token; `producer`: how the names that it may push under begin."""

    role: str = CONTROL
    producer: str = ""

    def may(self, role: str) -> bool:
        """Whether this is allowed; control may do everything."""
        return self.role in (role, CONTROL)


@dataclass(frozen=True)
class Tokens:
    """Those of one file. A digest has one length whatever the token, and can be passed on without giving it away."""

    passes: tuple[tuple[bytes, Pass], ...] = field(repr=False)

    @classmethod
    def of(cls, **tokens: str) -> Tokens:
        """One token for each role that is named."""
        return cls(tuple((_digest(token), Pass(role)) for role, token in tokens.items()))

    @classmethod
    def read(cls, path: Path, what: str = "--token-file") -> Tokens:
        """The tokens in a file that nobody else may read."""
        passes = tuple((_digest(token), granted) for token, granted in entries(path, what))
        if len({digest for digest, _ in passes}) < len(passes):
            raise DsmsError(f"{what} {path}: one token stands in two lines; each line must have a token of its own")
        return cls(passes)

    @property
    def roles(self) -> set[str]:
        """Those that there are tokens for."""
        return {granted.role for _, granted in self.passes}

    def shown(self, token: str) -> Pass | None:
        """What this token is good for; as long in every case: all are compared, and none up to where it differs."""
        digest, found = _digest(token), None
        for known, granted in self.passes:
            if hmac.compare_digest(known, digest):
                found = granted
        return found


def token_in(path: Path, what: str) -> str:
    """The token that a client shows: the only one in its file, whether its role stands before it or not."""
    tokens = [token for token, _ in entries(path, what)]
    if len(tokens) != 1:
        raise DsmsError(f"{what} {path}: it has {len(tokens)} tokens; a client shows one: give it a file with its own")
    return tokens[0]


def entries(path: Path, what: str) -> Iterator[tuple[str, Pass]]:
    """The tokens in a file that nobody else may read, and what each is good for."""
    lines = [line for each in text_of(path, what).splitlines() if (line := each.strip()) and not line.startswith("#")]
    if len(lines) == 1 and lines[0].split()[0] not in ROLES:
        yield lines[0], Pass()
        return
    for number, line in enumerate(lines, 1):
        match line.split():
            case [str(role), token] if role in ROLES:
                yield token, Pass(role)
            case ["push", token, producer]:
                yield token, Pass(PUSH, producer)
            case _:  # what stands there is not repeated: it may be a token
                raise DsmsError(f"{what} {path}: line {number} of {len(lines)} is not understood; {WANTED} are wanted")
    if not lines:
        raise DsmsError(f"{what} {path}: there is no token in it; {WANTED} are wanted")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.strip().encode(errors="surrogatepass")).digest()
