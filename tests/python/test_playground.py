"""The playground in a real browser: one file, opened from the file system, without a network.

`make web-test` builds the page and runs these tests. Without the page, the tests are skipped with a warning.
Without Chromium, they are skipped, too, or fail with NARROWS_REQUIRE_BROWSER=1.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import narrows
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from narrows import playground
from test_browser import chromium

ROOT = Path(__file__).parents[2]
PRESETS = sorted((ROOT / "web/presets").glob("*.toml"))
LARGEST_BYTES = 600_000
DONE = "#progress[data-complete=true]"
TEXT = "document.querySelector('#toml').value"
TWO_FLOWS = """
duration = "4s"

[topology]
kind = "dumbbell"
rate = "10mbit" # a comment that edits keep
rtt = "20ms"
queue = "1bdp"

[[flows]]
cc = "cubic"

[[flows]]
cc = "reno"
start = "1s"
"""


@pytest.fixture(scope="module")
def built() -> Path:
    """The built page."""
    path = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "web" / playground.PAGE.name
    if not path.exists():
        message = f"found no {path}: make web; the playground was not tested"
        warnings.warn(message, stacklevel=2)
        pytest.skip(message)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        if os.environ.get("NARROWS_REQUIRE_BROWSER") == "1":
            raise
        pytest.skip("playwright is not installed; the playground was not tested")
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield instance
        instance.close()


@contextmanager
def opened(
    browser: Any, built: Path, width: int = 1280, theme: str = "light", fragment: str = ""
) -> Iterator[Any]:
    """The page after its first run. Fails if the page reports an error or requests anything."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = context.new_page()
    troubles: list[str] = []
    requests: list[str] = []
    page.on(
        "console",
        lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(built.as_uri() + fragment)
    page.wait_for_selector(DONE, timeout=60_000)
    yield page
    assert not troubles
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


def write(page: Any, toml: str) -> None:
    """Types a scenario and waits for the end of its run."""
    page.fill("#toml", toml)
    page.wait_for_function("location.hash.length > 3")
    page.wait_for_timeout(400)  # the page waits until the author stops typing
    page.wait_for_selector(DONE, timeout=60_000)


def goodputs(page: Any) -> dict[str, float]:
    """Goodput of each flow in the table of results, Mbit/s."""
    rows = page.evaluate(
        """[...document.querySelectorAll('#results tbody tr')].map(row => [
             row.querySelector('th').textContent.trim(),
             row.querySelector('.goodput').firstChild.textContent,
           ])"""
    )
    return {name: float(value) for name, value in rows}


def test_the_page_is_one_small_file(built: Path) -> None:
    assert len(gzip.compress(built.read_bytes(), 9)) <= LARGEST_BYTES
    text = built.read_text(encoding="utf-8")
    assert re.findall(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?!data:)', text) == []


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_presets_are_valid_scenarios(preset: Path) -> None:
    title, note = preset.read_text(encoding="utf-8").splitlines()[:2]
    assert title.startswith("# ") and note.startswith("# ")
    assert narrows.load(preset).flows


def test_the_network_and_the_first_result_appear(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        assert page.evaluate(
            "[...document.querySelectorAll('#network .flow-path')].map(p => p.dataset.flow)"
        ) == [
            "cubic",
            "bbr",
        ]
        strokes = page.evaluate(
            "[...document.querySelectorAll('#network .flow-path')].map(p => getComputedStyle(p).stroke)"
        )
        swatches = page.evaluate(
            "[...document.querySelectorAll('#results .swatch')].map(s => getComputedStyle(s).backgroundColor)"
        )
        assert len(set(strokes)) == 2 and strokes == swatches
        native = narrows.run(narrows.load(ROOT / "web/presets/two-flows.toml")).flows.to_pydict()
        expected = dict(zip(native["name"], native["goodput_bps"], strict=True))
        assert goodputs(page) == {name: pytest.approx(bps / 1e6, rel=0.005) for name, bps in expected.items()}
        # Every figure has drawn something other than its background.
        drawn = page.evaluate(
            """[...document.querySelectorAll('.plot canvas')].map(canvas => {
              const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              return data.some(value => value !== 0);
            })"""
        )
        assert len(drawn) == 6 and all(drawn)


def test_results_equal_those_of_the_native_simulator(browser: Any, built: Path) -> None:
    native = narrows.run(narrows.loads(TWO_FLOWS))
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        page.click("#download")
        with page.expect_download() as download:
            page.click("text=Samples of flows (CSV)")
        rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    samples = native.flow_samples.to_pydict()
    # The file has the flows one after the other.
    order = sorted(range(len(samples["t_s"])), key=lambda i: (samples["flow"][i], samples["t_s"][i]))
    assert len(rows) == len(order) > 50
    for column in ("t_s", "goodput_bps", "cwnd", "srtt_s", "retransmits"):
        expected = [samples[column][i] for i in order]
        assert [float(row[column]) for row in rows] == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


SWEEP = """
duration = "3s"
topology = { kind = "dumbbell", rate = "10mbit", rtt = "20ms", loss = "0.5%" }
flows = [{ cc = "cubic" }, { cc = "bbr", start = "500ms" }]

[sweep]
seeds = 2

[sweep.vary]
"topology.rate" = ["5mbit", "10mbit", "20mbit"]
"""
PARQUET = {
    "Results of flows (Parquet)": "flows",
    "Results of links (Parquet)": "links",
    "Samples of flows (Parquet)": "flow_samples",
    "Samples of links (Parquet)": "link_samples",
}


def test_parquet_files_equal_those_of_the_command(browser: Any, built: Path, tmp_path: Path) -> None:
    """The files of the second point of a sweep with two seeds."""
    narrows.run(narrows.loads(SWEEP), out=tmp_path)
    with opened(browser, built) as page:
        write(page, SWEEP)
        page.select_option("#point", "1")
        page.wait_for_selector(f"{DONE}[data-point='1']")
        for label, name in PARQUET.items():
            page.click("#download")
            with page.expect_download() as download:
                page.click(f"text={label}")
            assert download.value.suggested_filename == f"{name}.parquet"
            page.keyboard.press("Escape")
            shown = pq.read_table(download.value.path())
            native = pq.read_table(tmp_path / f"{name}.parquet")
            expected = native.filter(pc.is_in(native["run"], pa.array([2, 3], pa.uint32())))
            assert [(f.name, f.type) for f in shown.schema] == [(f.name, f.type) for f in expected.schema]
            assert shown.num_rows == expected.num_rows > 1
            for column in shown.column_names:
                values, wanted = shown[column].to_pylist(), expected[column].to_pylist()
                assert list(map(repr, values)) == list(map(repr, wanted)), (name, column)


def test_the_points_of_a_sweep_can_be_chosen(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, SWEEP)
        labels = page.evaluate("[...document.querySelectorAll('#point option')].map(o => o.textContent)")
        assert labels == [f"{i + 1} of 3: topology.rate = {rate}mbit" for i, rate in enumerate((5, 10, 20))]
        for point, rate in enumerate((5, 10, 20)):
            if point > 0:
                page.click("#next-point")
            page.wait_for_selector(f"{DONE}[data-point='{point}']")
            assert 0.7 * rate < sum(goodputs(page).values()) < 1.1 * rate
            assert "over 2 seeds" in page.inner_text("#results caption")
        assert page.is_disabled("#next-point")
        # An edit keeps the point, unless the sweep has fewer points afterwards.
        write(page, SWEEP.replace(', "20mbit"', ""))
        assert page.input_value("#point") == "1"
        write(page, TWO_FLOWS)
        assert page.is_hidden("#point")


def test_all_points_of_a_sweep_are_drawn_and_listed(browser: Any, built: Path) -> None:
    native = narrows.run(narrows.loads(SWEEP)).flows.to_pydict()
    with opened(browser, built) as page:
        write(page, SWEEP)
        page.click("#run-all")
        page.wait_for_function("document.querySelectorAll('#points tbody tr').length === 3")
        rows = page.evaluate(
            "[...document.querySelectorAll('#points tbody tr')].map(row => row.innerText.split('\\t'))"
        )
        for point, row in enumerate(rows):
            assert row[0].strip() == f"topology.rate = {(5, 10, 20)[point]}mbit"
            for name in ("cubic", "bbr"):
                runs = [
                    bps
                    for run, flow, bps in zip(
                        native["run"], native["name"], native["goodput_bps"], strict=True
                    )
                    if run // 2 == point and flow == name
                ]
                shown = float(re.search(rf"{name} ([\d.]+)", row[1])[1])  # type: ignore[index]
                assert shown == pytest.approx(sum(runs) / 2e6, rel=0.006)
        page.click("#points tbody tr:last-child button")
        page.wait_for_selector(f"{DONE}[data-point='2']")
        # The other points stay as faint lines until the text changes.
        assert page.locator("#points tbody tr").count() == 3
        write(page, SWEEP.replace("20ms", "40ms"))
        assert page.locator("#points").count() == 0


def test_an_edit_ends_a_run_of_all_points(browser: Any, built: Path) -> None:
    long = SWEEP.replace("3s", "60s").replace("5mbit", "300mbit")
    with opened(browser, built) as page:
        write(page, long.replace('"300mbit", ', "").replace('"20mbit"', '"300mbit", "400mbit"'))
        page.click("#run-all")
        page.wait_for_function("document.querySelector('#run-all').disabled")
        write(page, TWO_FLOWS)
        assert set(goodputs(page)) == {"cubic", "reno"}
        write(page, SWEEP)
        page.wait_for_selector("#run-all:not([disabled])")


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
        # Edits follow each other, and the field shows the text's value after the last one.
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


def test_the_address_holds_the_scenario(browser: Any, built: Path) -> None:
    text = TWO_FLOWS + "\n# ä, €, and a last line without an end"
    with opened(browser, built) as page:
        before = page.evaluate("location.hash")
        page.fill("#toml", text)
        page.wait_for_function("before => location.hash !== before", arg=before)
        fragment = page.evaluate("location.hash")
    with opened(browser, built, fragment=fragment) as page:
        assert page.input_value("#toml") == text
        assert set(goodputs(page)) == {"cubic", "reno"}


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
        box = page.locator("#figure-goodput .u-over").bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 300, box["y"] + 40, steps=5)
        page.mouse.up()
        page.wait_for_selector("#unzoom")
        page.mouse.dblclick(box["x"] + 200, box["y"] + 40)
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


@pytest.mark.parametrize("number", range(len(PRESETS)))
def test_every_preset_runs(browser: Any, built: Path, number: int) -> None:
    with opened(browser, built) as page:
        buttons = page.locator(".preset")
        assert buttons.count() == len(PRESETS)
        buttons.nth(number).click()
        page.wait_for_function(
            f"{TEXT}.startsWith('# ' + document.querySelector('.preset[aria-pressed=true]').textContent)"
        )
        page.wait_for_selector(DONE, timeout=60_000)
        assert page.is_hidden("#problem")
        assert sum(goodputs(page).values()) > 1


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


def test_a_zoom_ends_with_its_run(browser: Any, built: Path) -> None:
    """A zoom of a longer run showed empty figures, and slow motion began at a time after the end."""
    with opened(browser, built) as page:
        write(page, TWO_FLOWS)
        figure = page.locator("#figure-goodput .u-over")
        figure.scroll_into_view_if_needed()
        box = figure.bounding_box()
        page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 40, steps=5)
        page.mouse.up()
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


@pytest.mark.parametrize("fragment", ["#s=%%%", "#s=", "#s=" + "A" * 100_000])
def test_a_damaged_address_is_reported(browser: Any, built: Path, fragment: str) -> None:
    with opened(browser, built, fragment=fragment) as page:
        page.wait_for_selector("#notice:not([hidden])")
        assert "damaged" in page.inner_text("#notice")
        assert set(goodputs(page)) == {"cubic", "bbr"}
        write(page, TWO_FLOWS)
        assert page.is_hidden("#notice")


def test_names_are_text(browser: Any, built: Path) -> None:
    name = "<script>document.title=1</script>"
    with opened(browser, built) as page:
        write(page, TWO_FLOWS.replace('cc = "cubic"', f'cc = "cubic"\nname = "{name}"'))
        assert set(goodputs(page)) == {name, "reno"}
        assert page.title() == "Narrows playground"
        page.click("#download")
        with page.expect_download() as download:
            page.click("text=Figures (SVG)")
        figures = ElementTree.parse(download.value.path())
        assert not [element for element in figures.iter() if element.tag.endswith("script")]
        assert name in "".join(figures.getroot().itertext())


def test_ten_thousand_flows_leave_the_page_usable(browser: Any, built: Path) -> None:
    with opened(browser, built) as page:
        write(page, TWO_FLOWS.replace("10mbit", "1gbit").replace('"reno"', '"reno"\ncount = 10_000'))
        assert "100 of 1000 sampled flows" in page.inner_text("#figures")
        write(page, TWO_FLOWS)
        assert set(goodputs(page)) == {"cubic", "reno"}


def test_a_run_with_too_many_samples_ends(browser: Any, built: Path) -> None:
    long = TWO_FLOWS.replace("4s", "100000s").replace("10mbit", "100kbit")
    with opened(browser, built) as page:
        page.fill("#toml", long + '\n[probes]\ninterval = "20ms"\n')
        page.wait_for_selector("#problem:not([hidden])", timeout=120_000)
        assert re.match(r"The run ended at \d+ s, because it has more than", page.inner_text("#problem"))
        write(page, TWO_FLOWS)
        page.wait_for_selector("#problem", state="hidden")
        assert set(goodputs(page)) == {"cubic", "reno"}


def test_an_edit_replaces_a_long_run(browser: Any, built: Path) -> None:
    """The engine reads messages often, however many events a simulated second has."""
    with opened(browser, built) as page:
        page.fill("#toml", TWO_FLOWS.replace("4s", "3600s").replace("10mbit", "400gbit"))
        page.wait_for_selector("#progress[data-complete=false]")
        write(page, TWO_FLOWS)
        assert set(goodputs(page)) == {"cubic", "reno"}
