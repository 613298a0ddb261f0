"""The controller's page in a real browser, in both themes and at any width.

Without Chromium, the tests are skipped with a warning. With NARROWS_REQUIRE_BROWSER=1, they fail instead.
NARROWS_SHOTS=FOLDER keeps pictures.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from narrows.controller import sample
from narrows.controller.alertmanager import Sender
from narrows.controller.alerts import AgentRule, QueueRule, Rules
from narrows.controller.messages import SwitchDown
from narrows.controller.watch import Watch
from playwright import sync_api
from shown_controller import an_hour, runtime, served

MANY = 2500
CONTRAST = """
() => {
  const parse = text => (text.match(/[0-9.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = new Map(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let t = walk.nextNode(); t; t = walk.nextNode()) {
    const e = t.parentElement;
    if (!t.data.trim() || !e.getClientRects().length || e.disabled) continue;
    const style = getComputedStyle(e), svg = e.namespaceURI.includes("svg");
    const [x, y] = [light(parse(svg ? style.fill : style.color)), light(behind(e))];
    const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    if (ratio < 4.5) found.set(`${e.tagName}.${e.getAttribute("class")}: ${t.data}`, ratio.toFixed(2));
  }
  return [...found];
}
"""


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("NARROWS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        message = "no Chromium: set NARROWS_CHROMIUM or install it; the controller's page was not tested"
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
    with contextlib.ExitStack() as stack:
        yield lambda shown, watch=None: stack.enter_context(served(shown, watch=watch))


@pytest.fixture
def visit(browser, site):
    """Opens pages. Checks for errors after the test."""
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
    assert page.locator("#drawing .link.l3").count() == 1, "the load of one link is 97 % of its capacity"
    assert page.locator("#drawing .hot").count() == 1
    assert page.locator("text.figure", has_text="97 %").count() == 1
    sync_api.expect(rows(page)).to_have_count(12)
    assert "22.0 Mbit/s" in rows(page).first.inner_text()
    assert "standing queue" in page.locator("#congestion").inner_text()
    assert page.locator("#links tbody tr").count() == 12
    assert page.locator("#live").inner_text() == "live"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
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
    visit.troubles.clear()  # the browser reports an error for the stopped controller


def test_names_from_the_network_are_shown_as_text(visit, site):
    shown = runtime()
    (agent,) = shown.domain.agents.by_name.values()
    agent.name = "<img src=x onerror=alert(1)>"
    url = site(shown)
    page = visit(url)
    assert "<img src=x" in page.locator("#congestion").inner_text()
    assert page.locator("#congestion img").count() == 0
    page.locator("#congestion a").first.click()
    sync_api.expect(page.locator("#port-name")).to_contain_text("<img src=x")
    assert page.locator("main img").count() == 0


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


def rows(page, table="#flows"):
    return page.locator(f"{table} tbody tr")


def test_flows_are_searched_at_2500_flows(visit, site):
    page = visit(site(runtime(MANY)))
    sync_api.expect(rows(page)).to_have_count(100)
    says = page.locator("#flow-list .count")
    sync_api.expect(says).to_have_text("1 to 100 of 2,500 flows")
    page.get_by_role("button", name="Next").click()
    sync_api.expect(says).to_have_text("101 to 200 of 2,500 flows")
    page.get_by_label("Search flows").fill("10.0.0.2:40007")
    sync_api.expect(rows(page)).to_have_count(1)
    assert "10.0.0.2:40007" in rows(page).inner_text()
    sync_api.expect(says).to_have_text("1 to 1 of 1 flows")
    page.get_by_label("Search flows").fill("no such flow")
    sync_api.expect(page.locator("#flows")).to_have_text("No flow matches.")
    page.get_by_label("Search flows").fill("")
    page.get_by_label("Class").select_option("rated")
    sync_api.expect(says).to_have_text("1 to 100 of 1,875 flows")
    page.get_by_label("Order").select_option("slowest")
    sync_api.expect(rows(page).first).to_contain_text("10.0.0.3:42498")


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_a_port_has_its_own_page(visit, site, width, theme):
    shown = runtime(MANY)
    page = visit(site(shown, an_hour(shown)), width, theme)
    page.locator("body[data-drawn]").wait_for(state="attached")
    assert page.locator("#overview canvas").count() == 2
    shot(page, f"controller-hour-{width}-{theme}")
    page.get_by_role("link", name="s2-3 of box-2").focus()
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("#port canvas")).to_have_count(3)
    assert page.evaluate("document.activeElement.id") == "port-name"
    assert page.locator("#port-name").inner_text() == "s2-3 of box-2"
    assert page.title() == "s2-3 of box-2 – Narrows controller"
    assert "standing queue" in page.locator("#port-facts").inner_text()
    said = page.locator("#chart-port-queue .plot").get_attribute("aria-label")
    assert "Longest queueing delay, last hour. Queue: now" in said and "maximum 3.2 ms" in said
    sync_api.expect(page.locator("#port-flow-list .count")).to_have_text("1 to 100 of 1,000 flows")
    sync_api.expect(page.locator("#port-events li")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shot(page, f"controller-port-{width}-{theme}")
    page.go_back()
    sync_api.expect(page.locator("#congestion")).to_be_visible()


def test_a_port_of_a_switch_has_its_own_page_too(visit, site):
    shown = runtime()
    page = visit(site(shown, an_hour(shown)))
    page.locator("#links").get_by_role("link", name="s1:1").click()
    sync_api.expect(page.locator("#port canvas")).to_have_count(1)
    assert "port 1 of s1" in page.locator("#port-name").inner_text()
    assert page.locator("#port-flow-list").is_hidden()


def test_a_selected_part_of_a_chart_stays_selected(visit, site):
    shown = runtime()
    page = visit(site(shown, an_hour(shown)))
    page.locator("body[data-drawn]").wait_for(state="attached")
    over = page.locator("#chart-queues .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 50, steps=4)
    page.mouse.up()
    span = "(({ min, max }) => max - min)(overview.drawn[1].plot.scales.x)"
    selected = page.evaluate(span)
    assert 900 < selected < 1300
    redraw = "() => { overview.drawn[1].draw(overview.drawn[1].data); return series(); }"
    page.evaluate(redraw)
    assert page.evaluate(span) == selected
    over.dblclick()
    page.evaluate(redraw)
    assert page.evaluate(span) > 3500


def test_a_port_that_is_new_to_the_history_does_not_shorten_the_others(visit, site):
    page = visit(site(runtime()))
    lengths = page.evaluate("""async () => {
      const names = ["tx_bps", "rx_bps", "flows_bps", "queue_s", "flows"];
      const part = (port, first, n) => ({ port, step_s: 5, first, last: first + n - 1, end_s: 1000,
        ...Object.fromEntries(names.map(name => [name, Array(n).fill(1)])) });
      const answers = [[part("a", 0, 100)], [part("a", 100, 1), part("b", 100, 1)]];
      const history = new HistoryOf();
      const before = window.fetch;
      window.fetch = async () => ({ ok: true, json: async () => answers.shift() });
      try { for (let i = 0; i < 2; i++) await history.update(["a", "b"]); } finally { window.fetch = before; }
      return [history.times.length, history.times[0], history.column("a", "flows").length,
        history.column("b", "flows").filter(v => v === null).length];
    }""")
    assert lengths == [101, 500, 101, 100]


def test_an_unknown_port_is_stated(visit, site):
    page = visit(site(runtime()) + "/#port=none%2Feth1")
    assert page.locator("#port-gone").is_visible()


def test_events_are_filtered_newest_first(visit, site):
    shown = runtime()
    shown._noted.kept[-1] = shown._noted.kept[-1].model_copy(update={"count": 2084, "seconds": 100.0})
    page = visit(site(shown))
    every = page.locator("#events li")
    every.nth(18).wait_for()
    numbers = [int(li.get_attribute("data-id")) for li in every.all()]
    assert numbers == sorted(numbers, reverse=True)
    assert every.first.locator(".times").inner_text() == "×2,084"
    says = page.locator("#event-list .count")
    assert says.inner_text() == "Events: 19. Errors: 0, warnings: 1, others: 18. Changes in them: 2,102."
    page.get_by_label("Severity").select_option("warning")
    sync_api.expect(every).to_have_count(1)
    assert "congested" in every.inner_text() and "warning" in every.inner_text()
    page.get_by_label("Severity").select_option("info")
    page.get_by_label("Search events").fill("link-up 0005")
    sync_api.expect(every).to_have_count(2)
    page.get_by_label("Search events").fill("none")
    sync_api.expect(says).to_have_text("No event matches.")


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_alerts_are_shown_with_their_delivery(visit, site, width, theme):
    shown = runtime()
    rules = Rules(QueueRule(10_000_000, 1_000_000_000), AgentRule(5_000_000_000, ("s9",)))
    watch = Watch(shown, 0, rules, [Sender("http://192.0.2.9:9093", "east", None, None)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("narrows.controller.sample.take", partial(_take, sample.take))
        for second in range(7):
            watch.look(second * 1_000_000_000)
    page = visit(site(shown, watch), width, theme)
    every = page.locator("#alerts li")
    sync_api.expect(every).to_have_count(2)
    assert "NarrowsQueueDelay" in every.first.inner_text() and "12.0 ms" in every.first.inner_text()
    assert "critical" in every.nth(1).inner_text() and "agent s9" in every.nth(1).inner_text()
    assert page.locator("#receivers").inner_text() == (
        "Alertmanager http://192.0.2.9:9093: nothing was sent yet"
    )
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shot(page, f"controller-alerts-{width}-{theme}")
    every.first.get_by_role("link").click()
    sync_api.expect(page.locator("#port-name")).to_have_text("s2-3 of box-2")


def _take(take, domain, now_ns):
    return replace(take(domain, now_ns), silent_s={"box-2": 0.1})


def test_without_thresholds_there_is_no_section_for_alerts(visit, site):
    assert visit(site(runtime())).locator("#alert-section").is_hidden()


def test_updates_keep_the_focus_and_the_search(visit, site):
    page = visit(site(runtime()))
    page.get_by_label("Search flows").fill("elephant")
    page.get_by_role("link", name="s2-2 of box-2").focus()
    for _ in range(2):
        number = page.locator("body").get_attribute("data-shown")
        sync_api.expect(page.locator("body")).not_to_have_attribute("data-shown", number)
    assert page.evaluate("document.activeElement.textContent") == "s2-2 of box-2"
    assert page.get_by_label("Search flows").input_value() == "elephant"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("where", ["", "/#port=box-2%2Fs2-3"])
def test_text_has_a_contrast_of_4_5(visit, site, theme, where):
    shown = runtime()
    page = visit(site(shown, an_hour(shown)) + where, theme=theme)
    page.locator("body[data-drawn]").wait_for(state="attached")
    assert page.evaluate(CONTRAST) == []


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(visit, site):
    page = visit(site(runtime(MANY)))
    sync_api.expect(rows(page)).to_have_count(100)
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"theme", "s2-3 of box-2", "flows-search", "Next"} <= reached
    unnamed = "e => !e.labels?.length && !e.textContent.trim() && !e.getAttribute('aria-label')"
    controls = "[...document.querySelectorAll('input, select, button, a, [tabindex=\"0\"], canvas')]"
    visible = f"{controls}.filter(e => e.getClientRects().length && e.tagName !== 'CANVAS')"
    assert page.evaluate(f"{visible}.filter({unnamed}).map(e => e.outerHTML)") == []


def test_an_update_at_2500_flows_draws_few_rows(visit, site):
    """Prints the drawing time, and checks that the page draws few elements."""
    shown = runtime(MANY)
    page = visit(site(shown, an_hour(shown)))
    sync_api.expect(rows(page)).to_have_count(100)
    spent_ms = page.evaluate(
        "(() => { const t = performance.now(); for (let i = 0; i < 20; i++) showOverview(state); "
        "return (performance.now() - t) / 20; })()"
    )
    print(f"{spent_ms:.1f} ms for an update of the overview")
    assert page.evaluate("document.querySelectorAll('*').length") < 2500
