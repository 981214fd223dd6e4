"""The console in headless Chromium, of a deployment on Ray under load: seen, steered, refused, gone and back."""

from __future__ import annotations

import shutil
import time
from urllib.parse import urlsplit

import pytest
from support.live.console_rig import CHROMIUM, FLAGS, TOKEN, load, metric, rig
from support.live.console_rig import deploy_demo as deployed_anew

from actors.console.guard import FIRST_DELAY_S
from actors.console.poller import POLL_INTERVAL_S
from actors.deployment.actor_handles import wait_until

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(240),
    pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason="needs chromium (Debian's package of that name)"),
]
PATIENCE = 120.0  # seconds for a page to show what has happened: without a GPU, drawing takes half of two cores
CHART = "() => getElement(document.querySelectorAll('.nicegui-echart')[0].id.slice(1)).chart.getOption()"


@pytest.fixture(scope="module")
def watched(ray_cluster):
    with rig() as found, load(found.system):
        yield found


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Viewer:
    """A browser page that notes its errors and the hosts it asks."""

    def __init__(self, browser, url, scheme="light"):
        self.page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
        self.wrong, self.hosts = [], set()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.page.goto(url)
        self.sees("running", '[data-fact="state"]')

    def sees(self, text, where="body"):
        """Wait until it is there."""
        self.page.locator(where).filter(has_text=text).first.wait_for()

    def fact(self, name):
        return self.page.locator(f'[data-fact="{name}"]').inner_text()

    def drawn(self, name):
        """The points of a line over time."""
        found = next(one for one in self.page.evaluate(CHART)["series"] if one["name"] == name)
        return found["data"]

    def bands(self):
        """The policies in the band, the last one last."""
        found = next(one for one in self.page.evaluate(CHART)["series"] if one["name"] == "policy")
        return [begin["name"] for begin, _ in found["markArea"]["data"]]

    def ink(self):
        """The colour of a chart's title."""
        return self.page.evaluate(CHART)["title"][0]["textStyle"]["color"]

    def unlock(self, token=TOKEN):
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_label("Token").press("Enter")

    def keep(self, folder, name):
        self.page.screenshot(path=str(folder / f"{name}.png"))


@pytest.fixture
def viewer(watched, chromium, tmp_path, request):
    """A viewer of the page, of whom a picture is kept at the end."""
    made = []

    def come(scheme="light"):
        made.append(Viewer(chromium, watched.url, scheme))
        return made[-1]

    yield come
    for number, one in enumerate(made):
        one.keep(tmp_path, f"{request.node.name}-{number}")
        one.page.close()


def test_the_page_moves_with_the_system_and_asks_nobody_else(viewer, watched):
    one = viewer()
    assert wait_until(lambda: max((value for _, value in one.drawn("held")), default=0) > 0, PATIENCE)
    before = one.drawn("held")
    assert wait_until(lambda: one.drawn("held")[-1][0] >= before[-1][0] + 2.0, PATIENCE)
    bound, held = dict(one.drawn("least possible")), dict(one.drawn("held"))  # which may have moved on in between
    both = bound.keys() & held.keys()
    assert len(both) >= len(bound) - 5
    assert all(bound[at] <= held[at] for at in both)
    assert one.bands() == ["fifo"]
    for text in ("valid", "locate", "alarms", "clicks"):
        one.sees(text, ".nicegui-echart >> nth=1")
    one.sees("trends: valid → topic → seen")
    one.sees("the oldest tuple")
    assert one.page.locator('[aria-label="Last decisions"] tbody tr').count() > 3
    assert one.wrong == []
    assert one.hosts == {urlsplit(watched.url).netloc}


def test_without_the_token_nothing_can_be_changed_and_a_wrong_one_is_refused_slowly(viewer, watched):
    one = viewer()
    assert one.page.get_by_role("button", name="Swap").count() == 0
    begun = time.monotonic()
    one.unlock("open barley")
    one.sees("authentication failed: unknown token")
    assert time.monotonic() - begun > FIRST_DELAY_S
    assert one.page.get_by_role("button", name="Swap").count() == 0
    assert watched.status().swaps == 0
    one.unlock()
    one.page.get_by_role("button", name="Swap").wait_for()
    assert viewer().page.get_by_role("button", name="Swap").count() == 0  # another page is another viewer


def test_with_the_keyboard_alone_another_policy_is_put_in_charge(viewer, watched):
    one = viewer()
    keyboard = one.page.keyboard

    def tab_to(label):
        for _ in range(40):
            if one.page.evaluate("() => document.activeElement.getAttribute('aria-label')") == label:
                return
            keyboard.press("Tab")
        pytest.fail(f"no way to {label!r} by Tab")

    tab_to("Token")
    keyboard.type(TOKEN)
    keyboard.press("Enter")
    one.page.get_by_role("button", name="Swap").wait_for()
    tab_to("Policy")
    keyboard.press("Enter")
    one.page.get_by_role("option", name="rr", exact=True).wait_for()
    for _ in range(20):
        if (
            one.page.locator('[role="option"][aria-selected="true"], .q-manual-focusable--focused').last.inner_text()
            == "rr"
        ):
            break
        keyboard.press("ArrowDown")
    keyboard.press("Enter")
    tab_to("Parameters")
    keyboard.type("tuples=30")
    tab_to("Reason")
    keyboard.type("by hand")
    keyboard.press("Enter")
    assert wait_until(lambda: one.fact("policy") == "rr:tuples=30", PATIENCE)
    assert wait_until(lambda: one.bands()[-1] == "rr", PATIENCE)
    last = watched.status().phases[-1]
    assert (last.policy, last.reason) == ("rr:tuples=30", "by hand")
    active = metric(watched.system, "dsms_policy_active")
    assert {labels.partition('policy="')[2].partition('"')[0]: value for labels, value in active.items()} == {
        "fifo": 0.0,
        "rr:tuples=30": 1.0,
    }
    assert one.wrong == []


def test_weights_wishes_and_pauses_are_set_and_every_page_sees_them(viewer, watched):
    one, other = viewer(), viewer()
    one.unlock()
    field = one.page.get_by_label("delay", exact=True)
    field.fill("1.5")
    field.press("Enter")
    assert wait_until(lambda: watched.status().qos == "memory=0.25,delay=0.75", PATIENCE)
    one.page.get_by_label("Query", exact=True).click()
    one.page.get_by_role("option", name="fraud").click()
    one.page.get_by_label("Weight", exact=True).fill("8")
    one.page.get_by_role("button", name="Set weight").click()
    assert wait_until(lambda: {q.name: q.weight for q in watched.status().queries}["fraud"] == 8.0, PATIENCE)
    one.page.get_by_role("button", name="Pause").click()
    other.sees("paused", '[data-fact="state"]')
    assert watched.status().state == "paused"
    one.page.get_by_role("button", name="Resume").click()
    other.sees("running", '[data-fact="state"]')
    assert one.wrong == other.wrong == []


def test_what_the_system_refuses_is_said_on_the_page(viewer, watched):
    one = viewer()
    one.unlock()
    one.page.get_by_label("Parameters").fill("luck=3")
    one.page.get_by_role("button", name="Swap").click()
    one.sees("has no parameter 'luck'")


def test_the_page_is_light_or_dark_as_the_system_is_or_as_is_wished(viewer):
    one = viewer("dark")
    assert wait_until(lambda: one.page.evaluate("() => document.body.classList.contains('body--dark')"), PATIENCE)
    assert wait_until(lambda: one.ink() == "#e3e8f0", PATIENCE)
    one.page.get_by_role("button", name="light").click()
    assert wait_until(lambda: one.ink() == "#2b3445", PATIENCE)
    assert not one.page.evaluate("() => document.body.classList.contains('body--dark')")
    one.page.get_by_role("button", name="system").click()
    one.page.emulate_media(color_scheme="light")
    one.page.emulate_media(color_scheme="dark")
    assert wait_until(lambda: one.ink() == "#e3e8f0", PATIENCE)


def test_several_browsers_cost_as_much_as_one(viewer, watched):
    for _ in range(3):
        viewer()
    before, begun = watched.system.asked.count("status"), time.monotonic()
    time.sleep(1.5)
    asked, seconds = watched.system.asked.count("status") - before, time.monotonic() - begun
    assert 1 <= asked <= seconds / POLL_INTERVAL_S + 1


def test_a_system_that_goes_is_said_to_be_gone_and_seen_again_when_it_comes_back(viewer, watched):
    one = viewer()
    watched.system.ask("down")
    one.sees("The deployment does not answer")
    assert one.page.locator(".dsms-gone").count() == 1
    watched.system = deployed_anew()
    assert wait_until(lambda: one.page.locator(".dsms-gone").count() == 0, PATIENCE)
    assert not one.page.get_by_text("The deployment does not answer").is_visible()
    assert wait_until(lambda: len(one.drawn("held")) > 0, PATIENCE)
    assert one.bands() == ["fifo"]
    assert one.wrong == []
