"""Fuzzes the wire and the query language by coverage, with Atheris: `python -m fuzz.by_coverage WHAT RUNS`.

WHAT is `frames`, bytes fed to a gateway's side of a connection, or `queries`, texts in the query language. Atheris
starts from valid inputs and mutates further each input that reaches new code.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import atheris

PARTS = ["dsms.net.wire", "dsms.data.schema", "dsms.data.batch", "dsms.query.cql", "dsms.expressions"]
with redirect_stderr(StringIO()), atheris.instrument_imports(include=PARTS):  # it prints every module
    from support.live.hostile_frames import STREAMS, TOKENS, HostileClient, check_message, encode_message
    from support.queries.hostile_queries import CATALOG, VALID_QUERIES, refusal

    from dsms.net.wire import Hello
    from dsms.net.wire.session import Session
    from dsms.query.cql import compile_query

SEED_COUNT = 200
INPUT_LIMIT_BYTES = 4096  # of an input


def frames(data: bytes) -> None:
    """Feed a session in two pieces: half of the inputs come before a hello, half after one."""
    session = Session(TOKENS)
    if data[:1] < b"\x80":
        session.feed(encode_message(Hello("p", "the-right-token")))
        session.set_streams(STREAMS)
    middle = len(data) // 2
    for piece in (data[1:middle], data[max(1, middle) :]):
        for found in session.feed(piece):
            check_message(found)
    assert session._decoder.held <= len(data)


def queries(data: bytes) -> None:
    """Compile the text of these bytes."""
    text = data.decode("utf-8", "surrogateescape")
    assert refusal(lambda: compile_query(text, CATALOG)) != ""


def seeds(what: str) -> list[bytes]:
    """Return the valid inputs to start from."""
    if what == "queries":
        return [text.encode() for text in VALID_QUERIES]
    hostile = HostileClient(0)
    return [b"\0" + hostile.frame()[: INPUT_LIMIT_BYTES - 1] for _ in range(SEED_COUNT)]


TARGETS: dict[str, Callable[[bytes], None]] = {"frames": frames, "queries": queries}


def fuzz(what: str, runs: int, folder: str) -> None:
    """Try this many inputs, then end the process."""
    options = [f"-runs={runs}", f"-max_len={INPUT_LIMIT_BYTES}", "-timeout=10", "-rss_limit_mb=2048", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/found-", folder], TARGETS[what])
    atheris.Fuzz()


def main(what: str, runs: str) -> int:
    """Fuzz in a process of its own and remove its folder, unless an input has failed."""
    folder = Path(tempfile.mkdtemp(prefix="dsms-fuzz-"))
    for number, seed in enumerate(seeds(what)):
        (folder / str(number)).write_bytes(seed)
    done = subprocess.run([sys.executable, "-m", "fuzz.by_coverage", what, runs, str(folder)], capture_output=True)
    if done.returncode:
        print(done.stderr.decode(errors="replace")[-5000:], f"{what}: the input that failed is in {folder}", sep="\n")
        return 1
    print(f"{what}: {int(runs):,} inputs, {len(list(folder.iterdir()))} of them reach new code; none failed")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else fuzz(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
