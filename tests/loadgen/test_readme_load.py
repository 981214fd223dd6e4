"""Whatever the README shows of the load is run, on the shared Spark."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from live_parts import running

from dsms.cli import main
from dsms.planfile import plan_from, read_table

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = README[README.index("## Load from Spark") : README.index("## Recording and what-if")]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", SHOWN, flags=re.M | re.S)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if "dsms load" in line]
PYTHON = next(text for kind, text in BLOCKS if kind == "python")


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan's streams behind a gateway that the commands find."""
    table = read_table(ROOT / "tests/plans/load.toml")
    for stream in table["streams"].values():
        del stream["arrivals"], stream["values"]
    with running(plan_from(table)) as found:
        monkeypatch.chdir(ROOT)
        monkeypatch.setenv("DSMS_ADDRESS", found[2])
        yield found


def test_the_load_shown_is_pushed_and_every_row_comes(
    live: Any, formats: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, gateway, address = live
    exec(PYTHON.replace("127.0.0.1:7411", address), {})
    assert "['_due', '_number', '_stream', 'at', 'auction'" in capsys.readouterr().out
    before = gateway.status()["rows"]
    assert before > 100
    for line in COMMANDS:
        words = shlex.split(re.sub(r"--duration \d", "--duration 2", line).replace("/tmp/", f"{tmp_path}/"))
        assert main(words[1:]) == 0
        said = capsys.readouterr().out
        delivered, wanted = re.search(r"delivered: ([\d,]+) rows of ([\d,]+) acknowledged", said).groups()
        assert delivered == wanted
        assert gateway.status()["rows"] - before == int(delivered.replace(",", ""))
        before = gateway.status()["rows"]
    assert formats.sql("select 1").count() == 1  # the session is not ended by who did not start it
    assert main(["push", "bids", str(ROOT / "tests/plans/bids.csv")]) == 2
    assert "rows for 'bids' after its end" in capsys.readouterr().err
