"""The console in the browser where looking takes a token: nothing of the system is on the page before."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.live.certificates import make_certificate
from support.live.console_rig import CHROMIUM, FLAGS
from support.live.fake_deployment import FakeDeployment

from actors.console.server import serve
from actors.control import client as asking
from actors.control.client import ControlClient
from dsms.net.tokens import Tokens

pytestmark = pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason="needs chromium (Debian's package of that name)")
PATIENCE = 120_000  # milliseconds, as in test_console.py
HIDDEN = "Enter a token under Controls to see this deployment."


def unlock(page: Any, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_label("Token").press("Enter")


def test_a_page_is_empty_until_a_token_is_shown_and_locked_until_it_is_for_control(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from playwright.sync_api import sync_playwright

    def ask(handle: Any, method: str, *given: Any, timeout: float, **named: Any) -> Any:
        return getattr(handle, method)(*given, **named)

    monkeypatch.setattr(asking, "ask", ask)
    tokens, made = Tokens.of(push="p", read="r", control="c"), make_certificate(tmp_path)
    with (
        serve(lambda: ControlClient("dsms", FakeDeployment()), "127.0.0.1", 0, tokens, made) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(ignore_https_errors=True)
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        page.get_by_text(HIDDEN).wait_for()
        unlock(page, "p")
        page.get_by_text("authentication failed: unknown token").wait_for()
        assert "high0" not in page.content()
        unlock(page, "r")
        page.get_by_text("high0.where").first.wait_for()
        assert page.get_by_role("button", name="Swap").count() == 0
        unlock(page, "c")
        page.get_by_role("button", name="Swap").wait_for()
        browser.close()
