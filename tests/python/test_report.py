"""Reports: what is in the page and the files, and how data is made small."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import narrows
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import sweep
from narrows.report import build, figure, single, write
from narrows.report.claims import number
from narrows.report.series import rows, short, thin
from narrows.report.study import figures
from narrows.report.style import LOOKS, look, order, shades
from narrows.studies import find_study, load_study
from narrows.studies.runner import Outcome, run_study
from sketch import Sketch


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """A quick BRF study of sketched results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NARROWS_DATA", "/nowhere")
        folder = tmp_path_factory.mktemp("study")
        yield run_study(load_study(find_study("brf")), folder, quick=True, backend=Sketch())


def test_the_page_needs_nothing_from_outside(outcome: Outcome) -> None:
    page = build(outcome)
    assert page.count("<script") == 4
    page = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    outside = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=[\"']?([^\"'>]*)", page)
    assert all(address.startswith("data:") for address in outside)
    assert "url(" not in page[: page.index("</style>")]
    assert "@import" not in page[: page.index("</style>")]


def test_claims_and_figures_are_linked_both_ways(outcome: Outcome) -> None:
    page = build(outcome)
    study = outcome.study
    for claim in study.claims:
        assert f'id="claim-{claim.id}"' in page
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page, target
    for spec in study.figures:
        assert f'id="fig-{spec.id}"' in page


def test_the_page_tells_what_it_is(outcome: Outcome) -> None:
    page = build(outcome)
    assert "This is a quick run" in page
    assert "the recorded traces are not at hand" in page
    for experiment in study_scenarios(outcome):
        assert experiment in page


def study_scenarios(outcome: Outcome) -> list[str]:
    return [text.splitlines()[0].split(":")[0] for text in outcome.scenarios.values()]


def test_text_from_outside_is_escaped(outcome: Outcome) -> None:
    hostile = "</script><script>alert(1)</script>"
    changed = outcome.study.model_copy(update={"title": hostile})
    page = build(Outcome(changed, True, {}, [], {"E1": hostile}))
    assert hostile not in page


@pytest.mark.filterwarnings("ignore")
def test_every_chart_is_valid_vega_lite(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [item for group in figures(outcome).values() for item in group]
    assert len(drawn) == len(outcome.study.figures)
    monkeypatch.setattr(figure, "VALIDATE", True)
    for item in drawn:
        assert item.specs()
        assert item.spec()["vconcat"]


def test_files_for_papers(outcome: Outcome, tmp_path: Path) -> None:
    few = outcome.study.figures[:1] + [f for f in outcome.study.figures if f.id == "convergence"]
    study = outcome.study.model_copy(update={"figures": few})
    smaller = Outcome(study, True, outcome.runs, outcome.findings)
    target = write(smaller, tmp_path)
    assert target.stat().st_size < 3_000_000
    for spec in few:
        folder = tmp_path / "figures"
        assert (folder / f"{spec.id}.svg").read_text().startswith("<svg")
        assert (folder / f"{spec.id}.pdf").read_bytes().startswith(b"%PDF")
        assert (folder / f"{spec.id}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "measures.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert {"goodput", "convergence"} <= {row["measure"] for row in table}
    assert any(row["lower_bound"] == "1" for row in table)
    with (tmp_path / "claims.csv").open(newline="") as file:
        assert {row["verdict"] for row in csv.DictReader(file)} == {
            "reproduced",
            "not reproduced",
            "cannot be judged",
        }


def test_a_report_of_any_results() -> None:
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
        vary = { "topology.rate" = ["10mbit", "20mbit"] }
        """
    )
    page = single(sweep.run(scenario, backend=Sketch()))
    assert page.count('class="chart"') == 2 * 5
    assert "4 runs" in page


# --- small data


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.integers(1, 50))
def test_thinning_keeps_extremes_and_order(values: list[float], buckets: int) -> None:
    t, y = thin(np.arange(len(values)), values, buckets)
    assert len(y) <= max(2 * buckets, 2)
    assert y.min() == min(values) and y.max() == max(values)
    assert (np.diff(t) > 0).all()


def test_rows_are_short_and_json_safe() -> None:
    assert rows(x=[1.23456789, float("nan")], s="a") == [{"x": 1.2346, "s": "a"}, {"x": None, "s": "a"}]
    assert short(123456.0) == 123500.0 and short(float("inf")) is None


# --- one look


def test_controllers_that_are_drawn_together_differ_by_more_than_colour() -> None:
    together = ["cubic", "bbr", "brf", "brf-literal", "brf-measured"]
    assert len({LOOKS[name].marker for name in together}) == len(together) - 0
    assert len({(LOOKS[name].dash, LOOKS[name].marker) for name in LOOKS}) > len(LOOKS) / 2
    assert len({entry.light for entry in LOOKS.values()}) == len(LOOKS)


def test_colours_can_be_read_on_their_page() -> None:
    """At least 3:1 against the page, as WCAG 2.1 (1.4.11) asks of graphics."""
    for name, entry in LOOKS.items():
        assert contrast(entry.light, "#ffffff") >= 3.0, name
        assert contrast(entry.dark, "#16181b") >= 3.0, name


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_unknown_names_have_a_look_too() -> None:
    assert look("my-own") == look("my-own") and look("my-own").label == "my-own"
    assert order(["zzz", "brf", "cubic"]) == ["cubic", "brf", "zzz"]
    assert len({item.light for item in shades("brf", 5)}) == 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (912.34, "912"),
        (1959.1, "1,959"),
        (0.0, "0"),
        (-2.125, "\N{MINUS SIGN}2.12"),
        (0.000546, "0.000546"),
        (10.0, "10"),
        (0.9, "0.9"),
    ],
)
def test_numbers_in_the_table(value: float, text: str) -> None:
    assert number(value) == text
