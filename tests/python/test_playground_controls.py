"""The controls and figures of the playground's page in a browser (see test_playground.py)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playground_lab import DONE, TEXT, TWO_FLOWS, drag, goodputs, opened, write


def test_the_rate_field_changes_the_text_and_the_result(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        before = sum(goodputs(page).values())
        page.fill("#rate", "40mbit")
        page.press("#rate", "Enter")
        page.wait_for_function(f"{TEXT}.includes('40mbit')")
        page.wait_for_selector(DONE)
        assert page.input_value("#toml") == TWO_FLOWS.replace("10mbit", "40mbit")
        assert 3 < sum(goodputs(page).values()) / before < 5


def test_the_rate_slider_changes_the_text(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        slider = page.locator("input[type=range][aria-label='Rate, slider']")
        before = float(slider.input_value())
        slider.focus()
        for _ in range(5):
            slider.press("ArrowRight")
        page.wait_for_function(f"""!{TEXT}.includes('"10mbit"')""")
        # Each press of the key edits the text. The field shows the text's value after the last edit.
        page.wait_for_function(f"{TEXT}.includes(`rate = \"${{document.querySelector('#rate').value}}\"`)")
        page.wait_for_selector(DONE)
        rate = float(page.input_value("#rate").removesuffix("mbit"))
        assert 10 < rate < 13
        assert float(slider.input_value()) > before


def test_adding_and_removing_a_flow_changes_the_lines(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        assert page.get_attribute("#figure-goodput", "data-lines") == "2"
        page.click("#add-bbr")
        page.wait_for_selector("#figure-goodput[data-lines='3']")
        page.wait_for_selector(DONE)
        assert 'cc = "bbr"' in page.input_value("#toml")
        assert "bbr" in goodputs(page)
        page.click("[aria-label='Remove reno']")
        page.wait_for_selector("#figure-goodput[data-lines='2']")
        page.wait_for_selector(DONE)
        assert set(goodputs(page)) == {"cubic", "bbr"}


def test_the_controller_and_its_parameters_can_be_chosen(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        page.select_option("[aria-label='Congestion controller of reno']", "vegas")
        page.wait_for_function(f"""{TEXT}.includes('cc = "vegas"')""")
        page.wait_for_selector(DONE)
        assert "vegas" in goodputs(page)
        page.click("text=Parameters of cubic")
        page.fill("#flows-0-cc-beta", "0.5")
        page.press("#flows-0-cc-beta", "Enter")
        page.wait_for_function(f"{TEXT}.includes('beta = 0.5')")
        assert page.inner_text("text=Parameters of cubic") == "Parameters of cubic (1 set)"


def test_the_queue_and_the_rate_controller_can_be_chosen(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        page.select_option("#aqm", "codel")
        page.wait_for_function(f"""{TEXT}.includes('queue = {{ kind = "codel", limit = "1bdp" }}')""")
        page.select_option("#rate-controller", "brf")
        page.wait_for_function(f"""{TEXT}.includes('kind = "brf"\\nlink = "bottleneck"')""")
        page.wait_for_selector(DONE)
        assert page.is_hidden("#problem")
        page.select_option("#rate-controller", "")
        page.wait_for_function(f"!{TEXT}.includes('rate_controllers')")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [('"10mbit"', '"fast"', 6), ('cc = "reno"', 'cc = "rhino"', 14), ('start = "1s"', "start = 1", 15)],
)
def test_an_error_is_the_line_of_the_command_line(
    browser: Any, built: Path, tmp_path: Path, old: str, new: str, line: int
) -> None:
    wrong = TWO_FLOWS.replace(old, new)
    (tmp_path / "scenario.toml").write_text(wrong, encoding="utf-8")
    command = [sys.executable, "-m", "narrows", "check", "scenario.toml"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 2
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        page.fill("#toml", wrong)
        page.wait_for_selector("#problem:not([hidden])")
        assert (
            page.evaluate("document.querySelector('#problem').firstChild.textContent")
            == checked.stderr.strip()
        )
        assert page.inner_text(".gutter .wrong") == str(line)
        # The error is visible next to the text, without scrolling.
        page.locator("#toml").scroll_into_view_if_needed()
        assert 0 <= page.locator("#problem").bounding_box()["y"] < 800
        write(page, TWO_FLOWS)
        page.wait_for_selector("#problem", state="hidden")


def test_playback_steps_and_shows_packets(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        page.click("#rewind")
        assert page.inner_text("#clock") == "0.000 s"
        page.click("#step")
        assert page.inner_text("#clock") == "0.100 s"
        page.focus("#figures")
        page.keyboard.press(".")
        assert page.inner_text("#clock") == "0.200 s"
        page.keyboard.press("End")
        assert page.inner_text("#clock") == "4.000 s"
        page.click("#slow-motion")
        page.wait_for_function("parseFloat(document.querySelector('#clock').textContent) > 2")
        page.click("#pause")
        colours = page.evaluate(
            """(() => {
              const canvas = document.querySelector('.packets canvas');
              const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              const found = new Set();
              for (let i = 0; i < data.length; i += 4) found.add(data.slice(i, i + 4).join());
              return [...found];
            })()"""
        )
        assert "0,114,178,255" in colours  # CUBIC's blue


def test_the_figures_zoom_together(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        drag(page, 0.2, 0.5)
        page.wait_for_selector("#unzoom")
        page.dblclick("#figure-goodput .u-over")
        page.wait_for_selector("#unzoom", state="detached")


def test_two_runs_are_compared(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        first = goodputs(page)
        page.click("#pin")
        page.fill("#rate", "20mbit")
        page.press("#rate", "Enter")
        page.wait_for_function(f"{TEXT}.includes('20mbit')")
        page.wait_for_selector(DONE)
        shown = page.evaluate(
            "[...document.querySelectorAll('#results .before')].map(cell => parseFloat(cell.textContent))"
        )
        assert shown == list(first.values())
        page.select_option("#compare", "side")
        page.wait_for_function("document.querySelectorAll('#figure-rtt .plot').length === 2")
        page.click("#swap")
        page.wait_for_function(f"{TEXT}.includes('10mbit')")
        page.wait_for_selector(DONE)
        assert goodputs(page) == first


def test_seeds_have_a_range(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS.replace("queue", 'loss = "1%"\nqueue') + "\n[sweep]\nseeds = 3\n")
        assert "over 3 seeds" in page.inner_text("#results caption")
        low, high = re.search(r"\(([\d.]+) to ([\d.]+)\)", page.inner_text("#results .goodput")).groups()  # type: ignore[union-attr]
        assert float(low) < float(high)


@pytest.mark.parametrize("width", [390, 768, 1280, 1680])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_any_width_and_theme(browser: Any, built: Path, width: int, theme: str) -> None:
    with opened(browser, built, width, theme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        lightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
        assert (lightness < 60) == (theme == "dark")
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


def test_every_control_has_a_name(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        unnamed = page.evaluate(
            """[...document.querySelectorAll('button, select, input, textarea, [role=button], [role=img]')]
               .filter(element => {
                 const text = element.tagName === 'SELECT' ? '' : element.textContent.trim();
                 return !(element.getAttribute('aria-label') || text || element.labels?.length);
               })
               .map(element => element.outerHTML.slice(0, 120))"""
        )
        assert unnamed == []


def test_an_experiment_of_the_course_opens_from_the_head(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        options = page.locator("#course option")
        assert options.count() == 1 + 10
        page.select_option("#course", label="7. BBR next to CUBIC")
        page.wait_for_function(f"{TEXT}.startsWith('# 7. BBR next to CUBIC')")
        assert "BBR takes almost the whole link" in page.inner_text(".about")
        page.wait_for_selector(DONE, timeout=60_000)
        # Its flows start at random times, so the same flow has different numbers in its five seeds.
        shares = goodputs(page)
        assert list(shares) == ["cubic", "bbr"]
        assert shares["bbr"] > 5 * shares["cubic"]
        assert page.locator(".preset[aria-pressed=true]").count() == 0
        # The first entry is only a heading.
        page.select_option("#course", "-1")
        assert page.evaluate("document.querySelector('#course').value") == "6"
        # A preset takes the place of the experiment.
        page.locator(".preset").first.click()
        page.wait_for_function("document.querySelector('#course').value === '-1'")


def test_the_pointer_reads_values_of_all_figures(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        readouts = "[...document.querySelectorAll('.readout')].map(readout => readout.textContent)"
        at_the_end = page.evaluate(readouts)
        page.hover("#figure-goodput .u-over")
        page.wait_for_selector("#figure-goodput .at")
        under_the_pointer = page.evaluate(readouts)
        assert page.inner_text("#figure-goodput .at") == "at 10 s", "the middle of 20 s"
        assert all(one != other for one, other in zip(at_the_end, under_the_pointer, strict=True))


def test_a_zoom_ends_with_its_run(browser: Any, built: Path) -> None:
    """A zoom into a longer run would show empty figures, and slow motion would begin after the end."""
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        drag(page, 0.7, 0.9)
        page.wait_for_selector("#unzoom")
        page.select_option("#course", label="9. Incast")
        page.wait_for_selector("#unzoom", state="detached")
        page.wait_for_selector(DONE, timeout=60_000)


@pytest.mark.parametrize("width", [320, 360])
def test_menus_stay_on_a_phone(browser: Any, built: Path, width: int) -> None:
    with opened(browser, built, width=width) as page:
        for button in ("#download", "#run-elsewhere"):
            page.click(button)
            items = page.locator(f"{button} + .items").bounding_box()
            assert items["x"] >= 0 and items["x"] + items["width"] <= width, button
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.keyboard.press("Escape")


def test_the_windows_have_ticks_at_retransmissions(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        lossy = TWO_FLOWS.replace('"1bdp"', '"20p"')
        write(page, lossy)
        assert int(page.get_attribute("#figure-window", "data-ticks")) > 5
        assert "ticks: retransmissions" in page.inner_text("#figure-window")
        write(page, lossy.replace('"20p"', '"10000p"'))
        assert page.get_attribute("#figure-window", "data-ticks") == "0"
