"""Tokens by role: what files say, what is granted, and that nothing gives a token away."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import numpy as np
import pytest

from actors.console.controls import Controls
from actors.console.facts import gone
from actors.console.guard import Guard
from actors.console.server import NOTHING
from dsms.batch import Batch
from dsms.errors import DsmsError
from dsms.schema import Schema
from dsms.tokens import CONTROL, PUSH, READ, Pass, Tokens, token_in
from dsms.wire import Advance, Bye, Data, End, Hello, Message, Subscribe, Unsubscribe, WireError, encoded
from dsms.wire.session import Session

SCHEMA = Schema.of({"n": "int64"})
ROWS = Batch.of({"n": np.array([1])})
FILE = "# who is who\npush p1 spark\npush p2\n\nread r\ncontrol c\n"


def file_of(folder: Path, text: str, mode: int = 0o600) -> Path:
    made = folder / "tokens"
    made.write_text(text, encoding="utf-8")
    made.chmod(mode)
    return made


@pytest.mark.parametrize(
    ("text", "granted"),
    [
        ("secret\n", {"secret": Pass(CONTROL), "": None, "secre": None, "secret ": Pass(CONTROL)}),
        ("open sesame", {"open sesame": Pass(CONTROL), "open": None, "sesame": None}),
        ("read r", {"r": Pass(READ), "read r": None}),
        (
            FILE,
            {"p1": Pass(PUSH, "spark"), "p2": Pass(PUSH), "r": Pass(READ), "c": Pass(CONTROL), "spark": None},
        ),
    ],
)
def test_a_file_says_which_token_is_good_for_what(text: str, granted: dict[str, Pass | None], tmp_path: Path) -> None:
    tokens = Tokens.read(file_of(tmp_path, text))
    assert {token: tokens.shown(token) for token in granted} == granted


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("t0ken", 0o640, "others may read it (mode 0640); `chmod 600"),
        ("t0ken", 0o604, "others may read it (mode 0604)"),
        ("", 0o600, "it is empty"),
        ("# only a remark", 0o600, "there is no token in it"),
        ("push t0ken\nt0ken", 0o600, "line 2 of 2 is not understood"),
        ("push", 0o600, "line 1 of 1 is not understood"),
        ("read t0ken name", 0o600, "line 1 of 1 is not understood"),
        ("owner t0ken\nread x", 0o600, "line 1 of 2 is not understood"),
        ("push t0ken\nread t0ken", 0o600, "one token stands in two lines"),
        ("\ud800t0ken", 0o600, "cannot be read: it is not UTF-8"),
    ],
)
def test_a_file_that_is_wrong_is_refused_without_repeating_it(text: str, mode: int, said: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    file.chmod(mode)
    with pytest.raises(DsmsError) as raised:
        Tokens.read(file)
    assert str(raised.value).startswith(f"--token-file {file}: {said}")
    assert "t0ken" not in str(raised.value)


def test_a_client_takes_the_only_token_of_its_file(tmp_path: Path) -> None:
    assert token_in(file_of(tmp_path, "push p1 spark\n"), "x") == "p1"
    assert token_in(file_of(tmp_path, "a plain one\n"), "x") == "a plain one"
    with pytest.raises(DsmsError, match="4 tokens; a client shows one"):
        token_in(file_of(tmp_path, FILE), "x")


def test_tokens_are_not_in_what_is_passed_on_or_printed(tmp_path: Path) -> None:
    tokens = Tokens.read(file_of(tmp_path, "push t0ken spark\n"))
    for given_away in (repr(tokens), repr(pickle.dumps(tokens)), repr(Hello("p", "t0ken"))):
        assert "t0ken" not in given_away


SAID: list[tuple[Message, str | None]] = [
    (Data("s", 7, ROWS, SCHEMA), PUSH),
    (Advance("s", 1), PUSH),
    (End("s"), PUSH),
    (Subscribe("q", None), READ),
    (Unsubscribe("q"), READ),
    (Bye(), None),
]


@pytest.mark.parametrize("role", [PUSH, READ, CONTROL])
@pytest.mark.parametrize(("message", "needed"), SAID, ids=[type(each).__name__ for each, _ in SAID])
def test_what_a_role_does_not_allow_is_refused_and_the_connection_goes_on(
    role: str, message: Message, needed: str | None
) -> None:
    session = Session(Tokens.of(**{role: "t0ken"}))
    session.feed(b"".join(encoded(Hello("p", "t0ken"))))
    session.know({"s": SCHEMA})
    [found] = session.feed(b"".join(encoded(message)))
    allowed = needed in (None, role) or role == CONTROL
    assert isinstance(found, WireError) is not allowed
    if isinstance(found, WireError):
        assert found.reason.endswith(f"the token shown is for {role}; one for {needed} or control is wanted")
        assert (found.lost, found.sequence, session.over) == (False, 7 if isinstance(message, Data) else None, False)


@pytest.mark.parametrize(("producer", "right"), [("spark", True), ("spark-7", True), ("spar", False), ("other", False)])
def test_a_token_for_some_producers_is_good_for_no_others(producer: str, right: bool, tmp_path: Path) -> None:
    session = Session(Tokens.read(file_of(tmp_path, FILE)))
    [found] = session.feed(b"".join(encoded(Hello(producer, "p1"))))
    assert (isinstance(found, Hello), session.over) == (right, not right)
    if isinstance(found, WireError):
        assert found.reason == f"hello: producer is {producer!r}; with this token it begins with 'spark'"


def test_a_token_that_is_no_text_is_not_repeated() -> None:
    data = b"".join(encoded(Hello("p", "t0ken")))
    [found] = Session().feed(data.replace(b"\xa5t0ken", b"\xc4\x04t0ke"))  # as bytes
    assert isinstance(found, WireError)
    assert "token is a bytes" in found.reason
    assert "t0k" not in found.reason


def looked(tokens: Tokens | None, *shown: str) -> list[tuple[bool, bool, bool]]:
    """What each token shown in turn has come to: whether it was right, whether one sees, and may change."""

    async def sleep(seconds: float) -> None:
        """As long as it takes."""

    async def look() -> list[tuple[bool, bool, bool]]:
        made = Controls(lambda *_, **__: None, Guard(tokens, sleep))
        return [(False, made.visible, made.open)] + [
            (await made.unlock(token), made.visible, made.open) for token in shown
        ]

    return asyncio.run(look())


def test_with_tokens_for_reading_the_console_shows_nothing_before_one_is_shown() -> None:
    tokens = Tokens.of(push="p", read="r", control="c")
    hidden, seen, changed = (False, False, False), (True, True, False), (True, True, True)
    assert looked(tokens, "p", "x", "r", "c") == [hidden, hidden, hidden, seen, changed]
    assert looked(Tokens.of(control="c"), "x", "c") == [(False, True, False), (False, True, False), changed]
    assert looked(None, "c") == [(False, True, False)] * 2
    assert (NOTHING.status, NOTHING.history, NOTHING.decisions) == (None, {}, ())
    assert gone(NOTHING, 0.0) == "Nothing is shown until a token is: see Controls."
