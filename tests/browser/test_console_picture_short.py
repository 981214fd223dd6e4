"""The short form of `make pictures`: the console is photographed after a second, whatever it shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from browser.console_picture import PICTURE_LIMIT_BYTES, take_picture
from support.live.console_rig import CHROMIUM

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason="needs chromium (Debian's package of that name)"),
]


def test_the_console_of_the_demonstration_is_photographed(ray_cluster: object, tmp_path: Path) -> None:
    file = tmp_path / "console.png"
    take_picture(file, seconds=0.5, burst=-1)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size < PICTURE_LIMIT_BYTES
