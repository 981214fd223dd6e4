"""Tokens and roles: token files, what each role permits, and that no message, repr or pickle reveals a token."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import numpy as np
import pytest

from actors.console.controls import Controls
from actors.console.facts import describe_outage
from actors.console.guard import Guard
from actors.console.server import HIDDEN_STATE
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError
from dsms.net.tokens import CONTROL, PUSH, READ, Permission, Tokens, read_token
from dsms.net.wire import Advance, Bye, Data, End, Hello, Message, Subscribe, Unsubscribe, WireError, encode
from dsms.net.wire.session import Session

SCHEMA = Schema.of({"n": "int64"})
ROWS = Batch.of({"n": np.array([1])})
FILE = "# who is who\npush p1 spark\npush p2\n\nread r\ncontrol c\n"


def write_token_file(folder: Path, text: str) -> Path:
    file = folder / "tokens"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("text", "permissions"),
    [
        ("secret\n", {"secret": Permission(CONTROL), "": None, "secre": None, "secret ": Permission(CONTROL)}),
        ("open sesame", {"open sesame": Permission(CONTROL), "open": None, "sesame": None}),
        ("read r", {"r": Permission(READ), "read r": None}),
        (
            FILE,
            {
                "p1": Permission(PUSH, "spark"),
                "p2": Permission(PUSH),
                "r": Permission(READ),
                "c": Permission(CONTROL),
                "spark": None,
            },
        ),
    ],
)
def test_a_token_file_maps_tokens_to_permissions(
    text: str, permissions: dict[str, Permission | None], tmp_path: Path
) -> None:
    tokens = Tokens.read(write_token_file(tmp_path, text))
    assert {token: tokens.find_permission(token) for token in permissions} == permissions


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("t0ken", 0o640, "others may read it (mode 0640); `chmod 600"),
        ("t0ken", 0o604, "others may read it (mode 0604)"),
        ("", 0o600, "it is empty"),
        ("# only a remark", 0o600, "the file has no token"),
        ("push t0ken\nt0ken", 0o600, "line 2 of 2 is not understood"),
        ("push", 0o600, "line 1 of 1 is not understood"),
        ("read t0ken name", 0o600, "line 1 of 1 is not understood"),
        ("owner t0ken\nread x", 0o600, "line 1 of 2 is not understood"),
        ("push t0ken\nread t0ken", 0o600, "two lines have the same token"),
        ("\ud800t0ken", 0o600, "cannot be read: not UTF-8"),
    ],
)
def test_a_bad_token_file_is_refused_without_revealing_a_token(
    text: str, mode: int, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    file.chmod(mode)
    with pytest.raises(DsmsError) as raised:
        Tokens.read(file)
    assert str(raised.value).startswith(f"--token-file {file}: {message}")
    assert "t0ken" not in str(raised.value)


def test_a_client_reads_the_only_token_of_its_file(tmp_path: Path) -> None:
    assert read_token(write_token_file(tmp_path, "push p1 spark\n"), "x") == "p1"
    assert read_token(write_token_file(tmp_path, "a plain one\n"), "x") == "a plain one"
    with pytest.raises(DsmsError, match="4 tokens; a client needs a file with exactly one"):
        read_token(write_token_file(tmp_path, FILE), "x")


def test_no_repr_and_no_pickle_contains_a_token(tmp_path: Path) -> None:
    tokens = Tokens.read(write_token_file(tmp_path, "push t0ken spark\n"))
    for text in (repr(tokens), repr(pickle.dumps(tokens)), repr(Hello("p", "t0ken"))):
        assert "t0ken" not in text


REQUIRED: list[tuple[Message, str | None]] = [
    (Data("s", 7, ROWS, SCHEMA), PUSH),
    (Advance("s", 1), PUSH),
    (End("s"), PUSH),
    (Subscribe("q", None), READ),
    (Unsubscribe("q"), READ),
    (Bye(), None),
]


@pytest.mark.parametrize("role", [PUSH, READ, CONTROL])
@pytest.mark.parametrize(("message", "needed"), REQUIRED, ids=[type(each).__name__ for each, _ in REQUIRED])
def test_a_frame_that_the_role_does_not_permit_is_refused_and_the_session_continues(
    role: str, message: Message, needed: str | None
) -> None:
    session = Session(Tokens.of(**{role: "t0ken"}))
    session.feed(b"".join(encode(Hello("p", "t0ken"))))
    session.set_streams({"s": SCHEMA})
    [answer] = session.feed(b"".join(encode(message)))
    allowed = needed in (None, role) or role == CONTROL
    assert isinstance(answer, WireError) is not allowed
    if isinstance(answer, WireError):
        assert answer.reason.endswith(f"needs a token with the role {needed} or control; this one has {role}")
        assert (answer.lost, session.is_over) == (False, False)
        assert answer.sequence == (7 if isinstance(message, Data) else None)


@pytest.mark.parametrize(("producer", "right"), [("spark", True), ("spark-7", True), ("spar", False), ("other", False)])
def test_a_token_with_a_producer_prefix_permits_no_other_names(producer: str, right: bool, tmp_path: Path) -> None:
    session = Session(Tokens.read(write_token_file(tmp_path, FILE)))
    [answer] = session.feed(b"".join(encode(Hello(producer, "p1"))))
    assert (isinstance(answer, Hello), session.is_over) == (right, not right)
    if isinstance(answer, WireError):
        reason = f"permission denied: producer is {producer!r}; with this token it must begin with 'spark'"
        assert answer.reason == reason


def test_an_error_does_not_repeat_a_token_that_is_not_a_string() -> None:
    data = b"".join(encode(Hello("p", "t0ken")))
    [answer] = Session().feed(data.replace(b"\xa5t0ken", b"\xc4\x04t0ke"))  # as bytes
    assert isinstance(answer, WireError)
    assert "token is a bytes" in answer.reason
    assert "t0k" not in answer.reason


def unlock_with(tokens: Tokens | None, *attempts: str) -> list[tuple[bool, bool, bool]]:
    """Try tokens in turn; for each, whether it was accepted, whether the console shows data and allows changes."""

    async def sleep(seconds: float) -> None:
        """Return at once: the guard's delay is not under test."""

    async def unlock() -> list[tuple[bool, bool, bool]]:
        controls = Controls(lambda *_, **__: None, Guard(tokens, sleep))
        return [(False, controls.visible, controls.open)] + [
            (await controls.unlock(token), controls.visible, controls.open) for token in attempts
        ]

    return asyncio.run(unlock())


def test_with_read_tokens_the_console_shows_nothing_before_login() -> None:
    tokens = Tokens.of(push="p", read="r", control="c")
    hidden, seen, changed = (False, False, False), (True, True, False), (True, True, True)
    assert unlock_with(tokens, "p", "x", "r", "c") == [hidden, hidden, hidden, seen, changed]
    assert unlock_with(Tokens.of(control="c"), "x", "c") == [(False, True, False), (False, True, False), changed]
    assert unlock_with(None, "c") == [(False, True, False)] * 2
    assert (HIDDEN_STATE.status, HIDDEN_STATE.history, HIDDEN_STATE.decisions) == (None, {}, ())
    assert describe_outage(HIDDEN_STATE, 0.0) == "Enter a token under Controls to see this deployment."
