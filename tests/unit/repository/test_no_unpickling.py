"""What comes over the wire is data: no module that handles it can make anything else of bytes, or run text."""

from __future__ import annotations

import ast
import pickle
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT
from support.sources import imports

from actors.checkpoints.store import DEPLOYMENT_SECTION, CheckpointStore
from actors.transport.address import KEY_BYTES
from actors.transport.codec import PREFIX, Encoder, decode
from actors.transport.listener import Listener
from dsms.errors import DsmsError
from dsms.storage import CheckpointFolder

# Where a client's bytes go, up to where they are columns that have been checked.
EDGE = (
    "dsms.net.wire",
    "dsms.net.client",
    "dsms.net.tokens",
    "dsms.net.certificate",
    "dsms.net.private_file",
    "dsms.net.access",
    "actors.ingest.connection",
    "actors.ingest.session_table",
    "actors.ingest.gateway",
    "actors.ingest.subscribers",
    "actors.ingest.intake",
    "actors.ingest.gateway_log",
    "actors.ingest.memory_log",
    "actors.ingest.stored_log",
    "actors.ingest.log_reader",
    "dsms.storage",
)
MODULES = {
    "pickle",
    "cloudpickle",
    "marshal",
    "shelve",
    "dill",
    "joblib",
    "code",
    "codeop",
    "importlib",
    "runpy",
    "yaml",
}
CALLS = {"eval", "exec", "compile", "__import__", "loads", "load", "frombuffer", "fromfile", "save"}


def files(module: str) -> list[Path]:
    path = ROOT / Path(*module.split("."))
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def reachable(modules: tuple[str, ...]) -> set[Path]:
    """The files of these modules, and of all of `dsms` that they import, and so on."""
    found: set[Path] = set()
    waiting = [file for module in modules for file in files(module)]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            names = {name for _, name in imports(file) if name.split(".")[0] == "dsms"}
            origins = (spec.origin for name in names if (spec := find_spec(name)) is not None)
            waiting += [Path(origin) for origin in origins if origin is not None]
    return found


def dangers(file: Path) -> list[str]:
    """What in a file could make code, or objects of any kind, from bytes."""
    found = [f"line {line} imports {name}" for line, name in imports(file) if name.split(".")[0] in MODULES]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name)):
                if name in CALLS:
                    found.append(f"line {node.lineno} calls {name}")
            case ast.keyword(arg="allow_pickle" | "ext_hook"):
                found.append(f"line {node.value.lineno} asks for objects")
    return found


@pytest.mark.parametrize("file", sorted(reachable(EDGE[:6])), ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_that_the_wire_reaches_makes_objects_or_code_of_bytes(file: Path) -> None:
    assert dangers(file) == []


@pytest.mark.parametrize("module", EDGE)
def test_no_part_of_the_edge_makes_objects_or_code_of_bytes(module: str) -> None:
    assert {str(file): found for file in files(module) if (found := dangers(file))} == {}


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from ray import cloudpickle\nimport cloudpickle", "eval('1')", "def f():\n    exec(x)",
     "import numpy as np\nnp.load(f)", "msgpack.unpackb(b, ext_hook=f)"],
)  # fmt: skip
def test_a_danger_is_found(source: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(source)
    assert len(dangers(file)) == 1


MADE: list[str] = []


class Bomb:
    """Something that says so when it is made."""

    def __reduce__(self) -> tuple[Any, ...]:
        return went_off, ()


def went_off() -> None:
    MADE.append("made")


def test_a_socket_between_our_own_processes_reads_no_message_before_the_key_has_been_shown() -> None:
    """Messages may carry pickled columns: so nothing may be read of a stranger's."""

    def put(value: Any) -> Any:
        raise AssertionError("a stranger's call was carried out")

    listener = Listener({"put": put})
    column = np.array([Bomb(), Bomb()], dtype=object)
    message = b"".join(Encoder().encode((1, "put", (column,))))
    for said in (message, b"", bytes(KEY_BYTES) + b"c" + message, listener.address.key[:-1] + b"?c" + message):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, suppress(ConnectionError):
            line.settimeout(30)
            line.connect(f"\0{listener.address.name}")
            line.sendall(said)
            line.shutdown(socket.SHUT_WR)
            while line.recv(4096):
                pass  # until it hangs up
    listener.close()
    assert MADE == []
    header_bytes, _ = PREFIX.unpack(message[: PREFIX.size])
    decode(message[PREFIX.size : PREFIX.size + header_bytes], np.empty(0, np.uint8))
    assert MADE == ["made", "made"]  # so it would have been seen


@pytest.mark.parametrize("open_to", [".", "checkpoints", "results"])
def test_checkpoints_that_others_may_have_written_are_not_unpickled(open_to: str, tmp_path: Path) -> None:
    MADE.clear()
    folder = tmp_path / "durable"
    for part in ("checkpoints", "results"):
        CheckpointFolder(folder / part).save({DEPLOYMENT_SECTION: pickle.dumps(Bomb())})
    assert (folder / "checkpoints").stat().st_mode & 0o777 == 0o700
    folder.joinpath(open_to).chmod(0o770)
    with pytest.raises(DsmsError, match=r"others may write to it \(mode 0770\); `chmod go-w"):
        CheckpointStore(folder).latest()
    assert MADE == []
