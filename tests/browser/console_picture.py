"""Takes the README's picture of the console: the demonstration under its bursts, with one policy after the other.

Run in tests/ as `python -m browser.console_picture FILE`; it needs Ray, and Debian's chromium.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from support.live.console_rig import CHROMIUM, FLAGS, load, rig

from actors.cluster import cluster

POLICIES = ("fifo", "fas-mcq", "chain")
SECONDS = 36.0  # under each policy: three times the load
BURST_ROWS = 1000  # queued rows: a picture with fewer shows no burst
HELD = "burst => Number(document.querySelector('[data-fact=held]').innerText.replaceAll(',', '')) > burst"
WIDE, HIGH = 1440, 1130
PICTURE_LIMIT_BYTES = 300_000


def main(file: Path) -> None:
    """Take the picture on a Ray of its own, and refuse one that is too large."""
    cluster.start_local_ray()
    try:
        take_picture(file)
    finally:
        cluster.disconnect()
    print(f"{file}: {file.stat().st_size:,} bytes")
    if file.stat().st_size > PICTURE_LIMIT_BYTES:
        sys.exit(f"{file} is larger than {PICTURE_LIMIT_BYTES:,} bytes")


def take_picture(file: Path, seconds: float = SECONDS, burst: int = BURST_ROWS) -> None:
    """Run the demonstration on the Ray that this process is connected to, and take a picture of its console."""
    with rig() as watched, load(watched.system):
        for policy in POLICIES:
            watched.system.ask("swap", policy, "for the picture")
            time.sleep(seconds)
        _take(watched.url, file, burst)


def _take(url: str, file: Path, burst: int) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDE, "height": HIGH}, color_scheme="light")
        page.goto(url)
        page.locator('[data-fact="state"]').filter(has_text="running").wait_for()
        page.wait_for_timeout(2000)  # charts are drawn
        page.wait_for_function(HELD, arg=burst, timeout=60_000)
        page.wait_for_timeout(200)
        page.screenshot(path=str(file))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
