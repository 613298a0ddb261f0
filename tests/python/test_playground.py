"""The playground in a real browser: one file, opened from the file system, without a network.

`make web-test` builds the page and runs these tests. Without the page, the tests are skipped with a warning.
Without Chromium, they are skipped, too, or fail with NARROWS_REQUIRE_BROWSER=1.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import narrows
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from playground_lab import DONE, TEXT, TWO_FLOWS, goodputs, opened, write

ROOT = Path(__file__).parents[2]
PRESETS = sorted((ROOT / "web/presets").glob("*.toml"))
LARGEST_BYTES = 600_000


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
