"""Reports in a real browser, in both themes and at any width.

Without Chromium, the tests are skipped with a warning. With NARROWS_REQUIRE_BROWSER=1, they fail instead.
"""

from __future__ import annotations

import itertools
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narrows
import pytest
from narrows import sweep
from narrows.report import page as page_of
from narrows.report import single, write
from narrows.report.kinds import draw as draw_kind
from narrows.report.style import look
from narrows.studies import Runs, find_study, load_study
from narrows.studies.model import FigureSpec
from narrows.studies.real import run_on_both
from narrows.studies.runner import run_study
from sketch import Sketch
from test_judge import a_run


def chromium() -> str:
    """The browser's path. Skips the test without a browser."""
    path = os.environ.get("NARROWS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        message = "no Chromium: set NARROWS_CHROMIUM or install it; the report was not tested"
        if os.environ.get("NARROWS_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        warnings.warn(message, stacklevel=2)
        pytest.skip(message)
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NARROWS_DATA", "/nowhere")
        folder = tmp_path_factory.mktemp("report")
        # Together, these experiments and those of `both` have figures of every kind.
        study, only = load_study(find_study("brf")), ["E1", "E2", "E3", "E7"]
        outcome = run_study(study, folder, quick=True, only=only, backend=Sketch())
        yield write(outcome, folder, files=False)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with sketched simulations and sketched real runs."""
    folder = tmp_path_factory.mktemp("both")
    study = load_study(find_study("brf"))
    outcome = run_on_both(study, folder, Sketch(), quick=True, only=["E5", "E6"], simulator=Sketch())
    return write(outcome, folder, files=False)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a sweep without a study."""
    scenario = narrows.loads(
        """
        duration = "5s"
        [topology]
        kind = "dumbbell"
        rate = "10mbit"
        rtt = "20ms"
        queue = "100p"
        [[flows]]
        cc = "cubic"
        [[flows]]
        cc = "bbr"
        [sweep]
        seeds = 2
        vary = { "topology.rate" = ["10mbit", "20mbit", "40mbit"] }
        """
    )
    path = tmp_path_factory.mktemp("plain") / "report.html"
    path.write_text(single(sweep.run(scenario, backend=Sketch())), encoding="utf-8")
    return path


THEMES = pytest.mark.parametrize(("width", "theme"), [(1360, "light"), (1360, "dark"), (390, "light")])


@THEMES
def test_the_report_is_drawn(browser: Any, report: Path, width: int, theme: str) -> None:
    assert draw(browser, report, width, theme) == 25


@THEMES
def test_the_report_of_both_sides_is_drawn(browser: Any, both: Path, width: int, theme: str) -> None:
    assert draw(browser, both, width, theme) == 30


@THEMES
def test_the_report_of_any_results_is_drawn(browser: Any, plain: Path, width: int, theme: str) -> None:
    assert draw(browser, plain, width, theme) == 2 + 3 * 5


def draw(browser: Any, report: Path, width: int, theme: str) -> int:
    """Draws all charts of a report, checks that none is empty, and returns their number."""
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme).new_page()
    troubles: list[str] = []
    page.on(
        "console",
        lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: troubles.append(str(error)))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    page.evaluate("narrowsDrawAll()")
    page.wait_for_function(
        "[...document.querySelectorAll('.chart')].every(c => c.dataset.drawn)", timeout=30_000
    )
    charts = page.evaluate(
        """[...document.querySelectorAll('.chart')].map(chart => {
          const svg = chart.querySelector('svg');
          const kinds = ['line', 'symbol', 'rect', 'area'].map(kind => `.mark-${kind} path`);
          const marks = [...svg.querySelectorAll(kinds.join(', '))];
          return { id: chart.dataset.figure, panel: chart.dataset.panel,
                   width: svg.getBoundingClientRect().width,
                   marks: marks.filter(mark => (mark.getAttribute('d') || '').length > 4).length };
        })"""
    )
    empty = [chart for chart in charts if chart["marks"] == 0 or chart["width"] < 150]
    assert not empty
    assert not troubles
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    return len(charts)


def test_the_theme_can_be_switched(browser: Any, report: Path) -> None:
    page = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light").new_page()
    page.goto(report.as_uri())
    page.evaluate("narrowsDrawAll()")
    colours = "[...document.querySelectorAll('.chart .mark-line path')].map(p => p.getAttribute('stroke'))"
    background = "getComputedStyle(document.body).backgroundColor"
    before, page_before = set(page.evaluate(colours)), page.evaluate(background)
    page.click("#theme")
    page.wait_for_timeout(1500)
    after, page_after = set(page.evaluate(colours)), page.evaluate(background)
    assert page_before != page_after
    assert before and after and not before & after
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_charts_are_printed_on_white(browser: Any, plain: Path, theme: str, tmp_path: Path) -> None:
    """All charts are printed in light colours, also those outside of the visible part of the page."""
    page = browser.new_context(viewport={"width": 1200, "height": 400}, color_scheme=theme).new_page()
    strokes = "[...document.querySelectorAll('.chart .mark-line path')].map(p => p.getAttribute('stroke'))"
    page.add_init_script(
        f"""window.requestIdleCallback = () => 0;  // nothing is drawn in idle time
        window.addEventListener('afterprint', () => {{
          const drawn = document.querySelectorAll('.chart svg').length;
          window.printed = [drawn, {strokes}, getComputedStyle(document.body).backgroundColor];
        }});"""
    )
    page.goto(plain.as_uri())
    page.wait_for_timeout(500)
    whole = page.evaluate("document.querySelectorAll('.chart').length")
    assert page.evaluate("document.querySelectorAll('.chart svg').length") < whole
    page.pdf(path=tmp_path / "page.pdf")
    printed, colours, paper = page.evaluate("window.printed")
    assert printed == whole and paper == "rgb(255, 255, 255)"
    assert {look("cubic").light, look("bbr").light} <= set(colours)
    page.wait_for_timeout(1500)
    seen = look("cubic").dark if theme == "dark" else look("cubic").light
    assert seen in page.evaluate(strokes)
    page.close()


@pytest.mark.parametrize(("width", "is_inclined"), [(1360, False), (390, True)])
def test_labels_of_bars_do_not_overlap(browser: Any, tmp_path: Path, width: int, is_inclined: bool) -> None:
    names = ["cubic", "reno", "brf", "pacec", "pacec-equal", "pacec-literal", "rcp", "rcp-published", "xcp"]
    runs = Runs([a_run(name, seed, 50 + seed) for name in names for seed in (1, 2)])
    spec = FigureSpec(id="f", experiment="E", kind="bars", title="T", caption="C.", args={"y": "goodput"})
    report = tmp_path / "page.html"
    section = page_of.Section("E", "E", "", "", [draw_kind(spec, runs)])
    report.write_text(page_of.render(page_of.Page("T", "", "", [section])), encoding="utf-8")
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    page.goto(report.as_uri())
    page.evaluate("narrowsDrawAll()")
    page.wait_for_selector(".chart[data-drawn]")
    labels = page.evaluate(
        """[...document.querySelectorAll('.chart .role-axis-label text')].map(t => {
          const box = t.getBoundingClientRect();
          return [t.textContent, box.left, box.right, t.getAttribute('transform') || ''];
        }).filter(([text]) => /[A-Z]/.test(text))"""
    )
    assert len(labels) == len(names)
    assert {"rotate(-40)" in transform for *_, transform in labels} == {is_inclined}
    if not is_inclined:
        assert all(left[2] < right[1] for left, right in itertools.pairwise(labels))
    page.close()
