"""Fuzzing that looks for inputs which reach new code, with Atheris: `python -m fuzzing.by_coverage WHAT RUNS`.

WHAT is `frames`, bytes fed to a gateway's side of a connection, or `queries`, texts in the query language. Whatever
reaches something new is changed further; it begins with what is right.
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

PARTS = ["dsms.wire", "dsms.schema", "dsms.batch", "dsms.cql", "dsms.expressions"]
with redirect_stderr(StringIO()), atheris.instrument_imports(include=PARTS):  # it tells of every one
    from hostile_frames import STREAMS, Hostile, said
    from test_hostile_frames import TOKENS, judged
    from test_hostile_queries import CATALOG, RIGHT, refused

    from dsms.cql import query
    from dsms.wire import Hello
    from dsms.wire.session import Session

SEEDS = 200
LONGEST = 4096  # bytes of an input


def frames(data: bytes) -> None:
    """Half of what is tried comes from a stranger, half after a hello; in two pieces."""
    session = Session(TOKENS)
    if data[:1] < b"\x80":
        session.feed(said(Hello("p", "the-right-token")))
        session.know(STREAMS)
    middle = len(data) // 2
    for piece in (data[1:middle], data[max(1, middle) :]):
        for found in session.feed(piece):
            judged(found)
    assert session._decoder.held <= len(data)


def queries(data: bytes) -> None:
    """Any text that these bytes are."""
    text = data.decode("utf-8", "surrogateescape")
    assert refused(lambda: query(text, CATALOG)) != ""


def seeds(what: str) -> list[bytes]:
    """What to begin with."""
    if what == "queries":
        return [text.encode() for text in RIGHT]
    hostile = Hostile(0)
    return [b"\0" + hostile.frame()[: LONGEST - 1] for _ in range(SEEDS)]


TARGETS: dict[str, Callable[[bytes], None]] = {"frames": frames, "queries": queries}


def fuzz(what: str, runs: int, folder: str) -> None:
    """Try so many inputs; the process ends with it."""
    options = [f"-runs={runs}", f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=2048", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/found-", folder], TARGETS[what])
    atheris.Fuzz()


def main(what: str, runs: str) -> int:
    """Do it in a process of its own, and clear up; an input that has done harm is kept."""
    folder = Path(tempfile.mkdtemp(prefix="dsms-fuzz-"))
    for number, seed in enumerate(seeds(what)):
        (folder / str(number)).write_bytes(seed)
    done = subprocess.run([sys.executable, "-m", "fuzzing.by_coverage", what, runs, str(folder)], capture_output=True)
    if done.returncode:
        print(done.stderr.decode(errors="replace")[-5000:], f"{what}: what did it is in {folder}", sep="\n")
        return 1
    print(f"{what}: {int(runs):,} inputs, {len(list(folder.iterdir()))} of them new in what they reach; none did harm")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else fuzz(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
