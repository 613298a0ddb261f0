"""The page in a real browser: drawn, live, in both themes, at any width, without requests to other hosts.

Skipped, loudly, where no Chromium is found; an error instead if NARROWS_REQUIRE_BROWSER=1.
NARROWS_SHOTS=FOLDER keeps pictures.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from pathlib import Path

import pytest
from narrows.controller.messages import SwitchDown
from playwright import sync_api
from shown_controller import runtime, served


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("NARROWS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        message = "no Chromium: set NARROWS_CHROMIUM or install it; the controller's page was NOT looked at"
        if os.environ.get("NARROWS_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        warnings.warn(message, stacklevel=2)
        pytest.skip(message)
    with sync_api.sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield instance
        instance.close()


@pytest.fixture
def site():
    """Serves a controller until the browser has closed."""
    with contextlib.ExitStack() as stack:
        yield lambda shown: stack.enter_context(served(shown))


@pytest.fixture
def visit(browser, site):
    """Opens the page, and checks for errors when it is closed."""
    contexts, troubles, requests = [], [], []

    def visit(url, width=1280, theme="light", login=None):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, http_credentials=login
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: troubles.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        page.locator("body[data-shown]").wait_for(state="attached")
        return page

    visit.troubles = troubles
    yield visit
    for context in contexts:
        context.close()
    assert not troubles
    assert [url for url in requests if not url.startswith(("http://127.0.0.1:", "data:"))] == []


def shot(page, name):
    folder = os.environ.get("NARROWS_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_page_shows_everything(visit, site, width, theme):
    url = site(runtime())
    page = visit(url, width, theme)
    page.locator("#events li").nth(5).wait_for()
    assert page.locator("#drawing .switch").count() == 5
    assert page.locator("#drawing .host").count() == 6
    assert page.locator("#drawing .link").count() == 12
    assert page.locator("#drawing .link.l3").count() == 1, "97 % of its capacity"
    assert page.locator("#drawing .hot").count() == 1
    assert page.locator("text.figure", has_text="97 %").count() == 1
    assert page.locator("#flows tbody tr").count() == 12
    assert "22.0 Mbit/s" in page.locator("#flows tbody tr").first.inner_text()
    assert "standing queue" in page.locator("#congestion").inner_text()
    assert page.locator("#links tbody tr").count() == 12
    assert page.locator("#live").inner_text() == "live"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # No label covers another: the boxes of switches do not overlap.
    boxes = page.evaluate(
        "[...document.querySelectorAll('#drawing .switch rect')].map(r => r.getBoundingClientRect().toJSON())"
    )
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            apart = (
                a["right"] <= b["left"]
                or b["right"] <= a["left"]
                or a["bottom"] <= b["top"]
                or b["bottom"] <= a["top"]
            )
            assert apart
    shot(page, f"controller-{width}-{theme}")


def test_the_page_updates(visit, site):
    shown = runtime()
    url = site(shown)
    page = visit(url)
    with shown._lock:
        shown.domain.handle(shown.domain.next_timer_ns(), SwitchDown(5))
    sync_api.expect(page.locator("#drawing .switch")).to_have_count(4)
    assert page.locator("#drawing .link").count() == 8


def test_an_empty_network_is_stated(visit, site):
    url = site(runtime(empty=True, authenticated=False))
    page = visit(url)
    assert page.locator("#no-switches").is_visible()
    assert "none, this host only" in page.locator("#facts").inner_text()
    shot(page, "controller-empty")


def test_a_lost_controller_is_stated(visit):
    with served(runtime()) as url:
        page = visit(url)
    sync_api.expect(page.locator("#live")).to_have_text("no controller", timeout=30_000)
    visit.troubles.clear()  # the browser's own messages about it


def test_names_from_the_network_are_shown_as_text(visit, site):
    shown = runtime()
    (agent,) = shown.domain.agents.by_name.values()
    agent.name = "<img src=x onerror=alert(1)>"
    url = site(shown)
    page = visit(url)
    assert "<img src=x" in page.locator("#congestion").inner_text()
    assert page.locator("#congestion img").count() == 0


def test_the_theme_can_be_switched(visit, site):
    url = site(runtime())
    page = visit(url)
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.click("#theme")
    assert page.evaluate(background) != before


def test_the_page_works_with_a_login(visit):
    with served(runtime(), loopback=False, token="5e" * 32) as url:
        page = visit(url, login={"username": "any", "password": "5e" * 32})
        assert page.locator("#live").inner_text() == "live"
        assert page.locator("#drawing .switch").count() == 5
        page.context.close()
