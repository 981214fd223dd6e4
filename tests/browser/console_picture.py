"""Takes the README's picture of the console: the demonstration under its bursts, one policy after the other in charge.

Run in tests/ as `python -m browser.console_picture FILE`; it needs Ray, and Debian's chromium.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from console_rig import CHROMIUM, FLAGS, load, rig
from playwright.sync_api import sync_playwright

from actors import cluster

POLICIES = ("fifo", "fas-mcq", "chain")
SECONDS = 36.0  # under each: three times the load
BURST = 1000  # rows held: a picture with less shows nothing
HELD = "burst => Number(document.querySelector('[data-fact=held]').innerText.replaceAll(',', '')) > burst"
WIDE, HIGH = 1440, 1130
LARGEST = 300_000  # bytes


def main(file: Path) -> None:
    cluster.local()
    try:
        with rig() as watched, load(watched.system):
            for policy in POLICIES:
                watched.system.ask("swap", policy, "for the picture")
                time.sleep(SECONDS)
            _take(watched.url, file)
    finally:
        cluster.disconnect()
    print(f"{file}: {file.stat().st_size:,} bytes")
    if file.stat().st_size > LARGEST:
        sys.exit(f"{file} is larger than {LARGEST:,} bytes")


def _take(url: str, file: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDE, "height": HIGH}, color_scheme="light")
        page.goto(url)
        page.locator('[data-fact="state"]').filter(has_text="running").wait_for()
        page.wait_for_timeout(2000)
        page.wait_for_function(HELD, arg=BURST, timeout=60_000)
        page.wait_for_timeout(200)
        page.screenshot(path=str(file))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
