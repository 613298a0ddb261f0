"""Reports: the page, its files, and the reduction of data."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import narrows
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import sweep
from narrows.cli.study import _show as show_study
from narrows.report import build, export, figure, folder, single, tables, write
from narrows.report.claims import number
from narrows.report.figure import Figure
from narrows.report.kinds.completion import completion
from narrows.report.kinds.points import overview
from narrows.report.kinds.time import single_run
from narrows.report.results_page import MOST_POINTS
from narrows.report.series import rows, short, thin
from narrows.report.spread import spread
from narrows.report.study import figures
from narrows.report.style import INK, look, looks
from narrows.results import summary
from narrows.results.results import Results
from narrows.results.runs import Run
from narrows.studies import find_study, load_study
from narrows.studies.load import known_studies
from narrows.studies.runner import Outcome, run_study
from rich.console import Console
from sketch import Sketch


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NARROWS_DATA", "/nowhere")
        folder = tmp_path_factory.mktemp("study")
        yield run_study(load_study(find_study("brf")), folder, quick=True, backend=Sketch())


@pytest.fixture(scope="module")
def page(outcome: Outcome) -> str:
    return build(outcome)


@pytest.fixture(scope="module")
def drawn(outcome: Outcome) -> dict[str, Figure]:
    return {item.id: item for group in figures(outcome).values() for item in group}


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    assert page.count("<script") == 4
    page = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    outside = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=[\"']?([^\"'>]*)", page)
    assert all(address.startswith("data:") for address in outside)
    assert "url(" not in page[: page.index("</style>")]
    assert "@import" not in page[: page.index("</style>")]


def test_claims_and_figures_are_linked_both_ways(outcome: Outcome, page: str) -> None:
    study = outcome.study
    for claim in study.claims:
        assert f'id="claim-{claim.id}"' in page
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page, target
    for spec in study.figures:
        assert f'id="fig-{spec.id}"' in page


def test_the_page_names_its_experiments_and_missing_data(outcome: Outcome, page: str) -> None:
    assert "This is a quick run" in page
    assert "recorded traces are not in the data folder" in page
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
def test_every_chart_is_valid_vega_lite(
    outcome: Outcome, drawn: dict[str, Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    networks = [name for name in drawn if name.startswith("network-")]
    assert len(networks) == len(outcome.runs)
    assert len(drawn) == len(outcome.study.figures) + len(networks)
    monkeypatch.setattr(figure, "VALIDATE", True)
    # The validation of a figure takes seconds. All figures of a kind have the same code, so one of each kind
    # is validated.
    of_each_kind = {spec.kind: spec.id for spec in outcome.study.figures}
    for name in [*of_each_kind.values(), networks[0]]:
        assert drawn[name].specs()
        assert drawn[name].spec()["vconcat"]


@pytest.mark.filterwarnings("ignore")
def test_shares_are_stacked_to_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class AnyName(Sketch):
        def congestion_controllers(self) -> list[tuple[str, str]]:
            return [(name, "") for name in looks()]

    study = load_study(find_study("bbr-gain"))
    done = run_study(study, tmp_path, quick=True, only=["G1", "G7"], backend=AnyName())
    monkeypatch.setattr(figure, "VALIDATE", True)
    drawn = {item.id: item for group in figures(done).values() for item in group}
    split = drawn["g7-split"]
    assert [panel.title for panel in split.panels] == ["(a) buffer 100kB", "(b) buffer 1MB"]
    assert [key.label for key in split.keys] == ["10 ms", "50 ms"]
    for spec in split.specs():
        bars, even, whiskers, *_ = spec["layer"]
        values = bars["data"]["values"]
        assert len(values) == 2 * 8
        for label in {row["label"] for row in values}:
            assert sum(row["y"] for row in values if row["label"] == label) == pytest.approx(1.0, abs=1e-3)
        assert even["data"]["values"] == [{"y": 0.5}]
        assert all(row["from"] <= row["y"] <= row["upto"] for row in whiskers["data"]["values"])
    assert drawn["g1-split"].spec()["vconcat"]
    assert [key.label for key in drawn["g1-rates"].keys] == ["10 ms", "50 ms", "fair share"]


def test_a_legend_of_flows_is_valid_in_all_panels_or_grey(drawn: dict[str, Figure]) -> None:
    *flows, fair = drawn["newcomers"].keys
    assert [key.label for key in flows] == [f"flow.{i}" for i in range(5)] and fair.label == "fair share"
    greys = [key.look.light for key in flows]
    assert greys == sorted(greys) and all(grey[1:3] == grey[3:5] == grey[5:7] for grey in greys)
    assert "from strong (flow.0) to faint (flow.4)" in drawn["newcomers"].caption
    two = drawn["rtt-fairness"]
    dashes = [key.look for key in two.keys if key.label != "fair share"]
    assert {look.light for look in dashes} == {INK}, "each panel has its own colour, so the legend is neutral"
    for panel in two.panels:
        scale = panel.chart.to_dict()["layer"][0]["encoding"]["strokeDash"]["scale"]
        assert scale["range"] == [list(look.dash) or [1, 0] for look in dashes]


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
        rows = list(csv.DictReader(file))
    words = {(row["group"], row["verdict"]) for row in rows}
    for finding in outcome.findings:
        mine = [
            row["case_verdict"] for row in rows if row["claim"] == finding.claim.id and row["on"] == "sim"
        ]
        assert not any(row["reading"] for row in rows)
        assert mine == [finding.words_of(case.verdict) for case in finding.cases]
    assert {word for group, word in words if group == "paper"} == {
        "reproduced",
        "not reproduced",
        "cannot be judged",
    }
    assert {word for group, word in words if group == "ours"} <= {"met", "not met", "cannot be judged"}


def test_both_readings_are_on_the_page_in_the_table_and_on_the_terminal(
    outcome: Outcome, page: str, tmp_path: Path
) -> None:
    assert "<h4>Repaired</h4>" in page and "<h4>As printed</h4>" in page
    assert page.count('<span class="side">As printed') == len(outcome.second) > 10
    write(outcome, tmp_path, files=False)
    with (tmp_path / "claims.csv").open(newline="") as file:
        readings = {(row["claim"], row["reading"]) for row in csv.DictReader(file)}
    assert {("C13", "repaired"), ("C13", "as printed"), ("C10", ""), ("O3", "")} <= readings
    console = Console(record=True, width=200, file=io.StringIO())
    show_study(outcome, console)
    lines = console.export_text().splitlines()
    for reading in ("repaired", "as printed"):
        assert any(line.startswith(f"claims of the paper, {reading}: ") for line in lines)


def test_the_measures_of_a_ranking_are_in_the_table(tmp_path: Path) -> None:
    study = load_study(find_study("survey"))
    done = run_study(study, tmp_path, quick=True, only=["T1"])
    write(done, tmp_path, files=False)
    with (tmp_path / "measures.csv").open(newline="") as file:
        arguments = {row["arguments"] for row in csv.DictReader(file)}
    assert {"column=throughput_mbit", "column=rtt"} <= arguments


@pytest.mark.filterwarnings("ignore")
def test_a_figure_has_a_panel_for_each_value_of_a_free_input(
    outcome: Outcome, drawn: dict[str, Figure]
) -> None:
    assert len(drawn["shares-start"].panels) == 4
    assert "start at 2 s" in str([panel.title for panel in drawn["shares-start"].panels])
    none = {figure.id for group in figures(replace(outcome, varied={})).values() for figure in group}
    assert "shares-start" not in none and "shares" in none


def test_own_expectations_are_met_or_not_met_on_the_terminal(outcome: Outcome) -> None:
    console = Console(record=True, width=200, file=io.StringIO())
    show_study(outcome, console)
    ours = [line for line in console.export_text().splitlines() if re.match(r"O\d", line)]
    assert ours and not any("reproduced" in line for line in ours)
    assert all(re.search(r"\bmet\b|cannot be judged", line) for line in ours)


# --- any results


SWEEP = """
    name = "two"
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
    vary = { VARY }
    """


def data_of(spec: dict[str, Any]) -> list[list[dict[str, Any]]]:
    if "data" in spec:
        return [spec["data"]["values"]]
    return [rows for layer in spec["layer"] for rows in data_of(layer)]


def swept(vary: str) -> Results:
    return sweep.run(narrows.loads(SWEEP.replace("VARY", vary)), backend=Sketch())


def test_a_report_of_any_results() -> None:
    results = swept('"topology.rate" = ["10mbit", "20mbit"]')
    page = single(results)
    # Two charts show all points. Each of the two points has five more charts.
    assert page.count('class="chart"') == 2 + 2 * 5
    assert "4 runs, 2 points of a sweep over topology.rate" in page
    for words in ("Warm-up", "0.5 s", "1, 2", results.metadata["narrows"], "first 0.5 s of a run"):
        assert words in page
    shown = re.search(r"<summary>The scenario as it ran.*?<pre>(.*?)</pre>", page, re.DOTALL)
    assert shown and json.loads(html.unescape(shown[1])) == results.metadata["scenario"]


@pytest.mark.parametrize(
    ("values", "scale"), [([0.5, 1, 2, 4, 8], "log"), ([1, 2, 3, 4, 5], None), ([1, 2, 4], None)]
)
def test_a_geometric_series_has_a_logarithmic_axis(values: list[float], scale: str | None) -> None:
    """On a linear axis, the labels of 0.5 and 1 would overlap."""
    results = swept(f'"topology.queue" = {[f"{value}bdp" for value in values]}')
    (figure,) = overview(summary.flows(results), summary.links(results))
    for panel in figure.panels:
        for layer in panel.chart.to_dict()["layer"]:
            assert layer["encoding"]["x"]["scale"].get("type") == scale
            assert layer["encoding"]["x"]["axis"]["values"] == values


def test_the_page_marks_the_points_whose_seeds_gave_the_same_run() -> None:
    class Settled(Sketch):
        """All runs of Reno are the same."""

        def run(self, plan: Any) -> Any:
            reno = plan["flows"][0]["transport"]["cc"] == "reno"
            return super().run(plan | ({"seed": 1} if reno else {}))

    text = SWEEP.replace("VARY", '"flows.0.cc" = ["reno", "cubic"]')
    results = sweep.run(narrows.loads(text), backend=Settled())
    page = single(results)
    assert page.count("All seeds gave the same run.") == 1
    assert "=: all seeds of this point give the same result." in page
    marks: dict[str, set[str]] = {}
    for line in rows_of(results):
        marks.setdefault(line[0].text, set()).update(cell.half[:1] for cell in line)
    assert "=" in marks["reno"] and tables.PLUS_MINUS not in marks["reno"]
    assert tables.PLUS_MINUS in marks["cubic"] and "=" not in marks["cubic"]


def rows_of(results: Results) -> list[list[tables.Cell]]:
    flows = summary.flows(results)
    return tables.flow_table(flows, summary.same_runs(results, flows)).rows


def test_figures_of_a_report_are_written_as_files_on_request(tmp_path: Path) -> None:
    page = single(swept('"topology.rate" = ["10mbit", "20mbit"]'), files=tmp_path / "figures")
    names = {path.stem for path in (tmp_path / "figures").glob("*.pdf")}
    assert "points" in names and {name[-2:] for name in names - {"points"}} == {"-0", "-1"}
    assert len(names) == page.count("<figure")
    for path in (tmp_path / "figures").glob("*.svg"):
        assert path.stem in names and "<svg" in path.read_text()[:200]


def test_a_report_removes_only_figures_that_an_earlier_report_wrote(tmp_path: Path) -> None:
    single(swept('"topology.rate" = ["10mbit", "20mbit"]'), files=tmp_path)
    index = tmp_path / folder.INDEX
    rows = {entry.file: entry for entry in folder.read(tmp_path)}
    assert set(rows) == {path.name for path in tmp_path.iterdir()} - {index.name, folder.PAGE}
    assert rows["points.pdf"].point == ""
    assert [rows[f"flows-{i}.pdf"].point for i in (0, 1)] == [
        "topology.rate 10mbit",
        "topology.rate 20mbit",
    ]
    assert all(entry.title for entry in rows.values())

    outside = tmp_path.parent / "outside.pdf"
    with index.open("a") as file:
        file.write(f"../{outside.name},x,,report\nnotes.txt,x,,report\nmap.pdf,Map,,matrix\n")
    kept = [outside, *(tmp_path / name for name in ("flows-7.pdf", "notes.txt", "map.pdf"))]
    for path in kept:
        path.touch()
    single(swept('"topology.rate" = ["10mbit"]'), files=tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.stem.endswith("-1")]
    assert (tmp_path / "flows-0.pdf").exists()
    assert all(path.exists() for path in kept)
    listed = {entry.file for entry in folder.read(tmp_path)}
    others = {index.name, folder.PAGE, "flows-7.pdf", "notes.txt"}
    assert listed == {path.name for path in tmp_path.iterdir()} - others


def test_the_page_of_a_folder_has_each_figure_once_with_one_sentence(tmp_path: Path) -> None:
    made = [
        (figure.Figure(f"share-{size}", f"Share <{size}>", caption, []), point)
        for size, caption, point in [
            (
                "0.5bdp",
                "Goodput of A & B over time. The paper's Figures 5 and 6. First seed. Blue is A.",
                "p=1",
            ),
            ("5bdp", "Percent, e.g. of the link. More.", ""),
        ]
    ]
    folder.replace(made, tmp_path, "matrix")
    page = (tmp_path / folder.PAGE).read_text()
    assert re.findall("<h2[^>]*>(.*?)</h2>", page) == ["Share &lt;0.5bdp&gt;", "Share &lt;5bdp&gt;"]
    for line in ("<p>p=1. Goodput of A &amp; B over time.</p>", "<p>Percent, e.g. of the link.</p>"):
        assert page.count(line) == 1
    links = re.findall('(?:src|href)="([^"]+)"', page)
    assert all((tmp_path / link).exists() for link in links)
    assert len(links) == 2 * (1 + len(export.SUFFIXES))
    folder.replace([], tmp_path, "matrix")
    assert not tmp_path.exists()


def test_each_figure_of_a_study_has_a_sentence_in_the_index(outcome: Outcome, tmp_path: Path) -> None:
    few = [spec for spec in outcome.study.figures if spec.id in ("shares-jain", "queueing-cdf")]
    study = outcome.study.model_copy(update={"figures": few})
    write(Outcome(study, True, outcome.runs, outcome.findings), tmp_path)
    entries = {entry.file: entry for entry in folder.read(tmp_path / "figures")}
    names = [*(spec.id for spec in few), *(f"network-{identity}" for identity in outcome.runs)]
    assert set(entries) == {f"{name}.{suffix}" for name in names for suffix in export.SUFFIXES}
    sentence = "RTT minus the RTT of the empty network, over all ACKs of all seeds."
    assert entries["queueing-cdf.svg"].summary == sentence
    assert entries["queueing-cdf.svg"].point.startswith("E")
    assert {entry.command for entry in entries.values()} == {"study"}
    assert (tmp_path / "figures" / folder.PAGE).exists()


@pytest.mark.parametrize("name", known_studies())
def test_each_figure_of_the_library_has_a_sentence_that_is_not_a_source(name: str) -> None:
    for spec in load_study(find_study(name)).figures:
        sentence = figure.Figure(spec.id, spec.title, spec.caption, []).summary
        assert len(sentence.split()) >= 4, spec.id
        assert not sentence.startswith("The paper's "), spec.id


def test_a_damaged_index_of_figures_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / folder.INDEX).write_bytes(b"file,title\n\xff\x00")
    (tmp_path / "a.pdf").touch()
    folder.replace([], tmp_path, "report")
    assert (tmp_path / "a.pdf").exists()


def test_a_long_legend_is_at_most_as_wide_as_the_panels() -> None:
    looks = [look(name) for name in ("bbr", "cubic", "reno") * 5]
    keys = [figure.Key("a name of some length", item, marks=True) for item in looks]
    (legend,) = figure.Figure("f", "", "", [], keys).spec()["vconcat"]
    assert legend["width"] <= 2 * figure.PANEL_WIDTH + 100
    lines = {layer["encoding"]["y"]["value"] for layer in legend["layer"]}
    assert len(lines) == 4 and max(lines) < legend["height"]
    (short,) = figure.Figure("f", "", "", [], keys[:2]).spec()["vconcat"]
    assert len({layer["encoding"]["y"]["value"] for layer in short["layer"]}) == 1


def test_the_tables_have_the_numbers_of_the_summary() -> None:
    results = swept('"topology.rate" = ["10mbit", "20mbit"]')
    page = single(results)
    flows = summary.flows(results)
    assert len(tables.flow_table(flows).rows) == len(flows) == 4
    for row, line in zip(flows, tables.flow_table(flows).rows, strict=True):
        goodput = row.figures["goodput_bps"]
        shown = next(cell for cell in line if cell.half)
        assert float(shown.text) == pytest.approx(goodput.mean / 1e6, abs=0.05)
        assert float(shown.half.split()[1]) == pytest.approx(goodput.half / 1e6, abs=0.05)
        assert f'{shown.text}<span class="half">{shown.half}</span>' in page


def test_the_overview_has_every_point_that_is_not_drawn_over_time() -> None:
    rates = [f"{rate}mbit" for rate in range(10, 30)]
    results = swept(f'"topology.rate" = {rates}')
    page = single(results)
    assert page.count('class="chart"') == 2 + MOST_POINTS * 5
    assert f"{MOST_POINTS} of the points are drawn over time; the tables have all of them." in page
    assert "more points" not in page
    (overall,) = overview(summary.flows(results), summary.links(results))
    for panel in overall.specs():
        assert {row["x"] for row in data_of(panel)[0]} == set(range(10, 30))


@pytest.mark.parametrize(
    ("vary", "channel", "values"),
    [
        ('"topology.queue" = ["10p", "100p", "1000p"]', "x", [10.0, 100.0, 1000.0]),
        ('"topology.rate" = ["10mbit", "0.02gbit", "30mbit"]', "x", [10.0, 20.0, 30.0]),
        ('"topology.loss" = ["0%", "0.001", "0.5%"]', "x", [0.0, 0.1, 0.5]),
        ('"topology.queue" = ["codel", "fq-codel"]', "p", ["codel", "fq-codel"]),
        ('"topology.queue" = ["codel", "10p", "20p"]', "p", ["codel", "10p", "20p"]),
    ],
)
def test_the_overview_is_over_numbers_or_names(vary: str, channel: str, values: list[object]) -> None:
    results = swept(vary)
    (overall,) = overview(summary.flows(results), summary.links(results))
    data = data_of(overall.specs()[0])[0]
    assert list(dict.fromkeys(row[channel] for row in data)) == values


def many_flows(count: int, finished: int, sampled: list[int]) -> Run:
    sizes = np.linspace(2e3, 2e6, count)
    fct = np.where(np.arange(count) < finished, 0.02 + sizes * 1e-6, np.nan)
    flows = {
        "flow": np.arange(count),
        "name": [f"short.{i}" for i in range(count)],
        "source": ["short"] * count,
        "cc": ["cubic"] * count,
        "size_bytes": sizes,
        "fct_s": fct,
        "ideal_fct_s": 0.01 + sizes * 4e-7,
        "delivered_bytes": sizes,
    }
    times = np.tile([0.1, 0.2], len(sampled))
    samples = {name: np.ones(times.size) for name in ("goodput_bps", "cwnd", "rtt_s")}
    samples |= {"t_s": times, "flow": np.repeat(sampled, 2)}
    links = {"link": np.arange(1), "name": ["bottleneck"], "utilisation": np.ones(1)}
    series = {
        "link": np.zeros(2),
        "t_s": np.arange(2),
        "throughput_bps": np.ones(2),
        "queue_packets": np.ones(2),
    }
    return Run({}, 1, {"flows": flows, "flow_samples": samples, "links": links, "link_samples": series})


def test_every_sampled_flow_is_drawn_at_any_position_in_the_table() -> None:
    for sampled in ([1999], list(range(1900, 2000, 5))):
        drawn = single_run(many_flows(2000, 2000, sampled))[0]
        shown = {row["s"] for row in data_of(drawn.specs()[0])[0]}
        assert shown == {f"short.{i}" for i in sampled}
    assert [key.label for key in drawn.keys] == ["CUBIC"]


def test_links_over_time_are_the_links_that_had_a_queue() -> None:
    names = ["access", "bottleneck", "idle"]

    def drawn(queues: list[float]) -> list[str]:
        run = many_flows(1, 0, [0])
        links = {"link": np.arange(3), "name": names, "utilisation": np.array([1.0, 0.9, 0.0])}
        series = {
            "link": np.repeat(np.arange(3), 2),
            "t_s": np.tile([0.1, 0.2], 3),
            "throughput_bps": np.ones(6),
            "queue_packets": np.repeat(queues, 2),
        }
        figures = single_run(Run({}, 1, {**run.tables, "links": links, "link_samples": series}))
        return [key.label for key in figures[1].keys]

    assert drawn([1, 90, 0]) == ["bottleneck"]
    assert drawn([40, 90, 0]) == ["access", "bottleneck"]
    assert drawn([0, 0, 0]) == names  # no link has a queue, so the links with the highest load are drawn


@pytest.mark.parametrize(("rate", "said"), [(0.5, False), (1.0, True), (3.0, False)])
def test_goodput_above_the_link_rate_is_explained_if_it_occurs(rate: float, said: bool) -> None:
    """The flow's goodput is 1 bit/s on average, and 2 at most. A link of 0.5 bit/s cannot be on its path."""
    run = many_flows(1, 0, [0])
    run.tables["flow_samples"]["goodput_bps"] = np.array([0.0, 2.0])
    run.tables["link_samples"]["capacity_bps"] = np.full(2, rate)
    assert ("above the link's rate" in single_run(run)[0].caption) is said


def test_completion_times_keep_the_slowest_and_count_the_unfinished() -> None:
    run = many_flows(3000, 2990, [])
    run.tables["flows"]["fct_s"][1234] = 60.0
    drawn = completion([run])
    assert drawn is not None and "2,990 of 3,000 flows" in drawn.caption
    dots, median, high = data_of(drawn.specs()[0])
    assert len(dots) <= 1300
    assert max(row["f"] for row in dots) == 60_000.0
    assert len(median) == len(high) == 10
    assert all(low["y"] <= up["y"] for low, up in zip(median, high, strict=True))
    assert completion([many_flows(20, 0, [])]) is None


@pytest.mark.filterwarnings("ignore")
def test_figures_of_any_results_are_valid_vega_lite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "VALIDATE", True)
    done = completion([many_flows(3000, 2990, [])])
    assert done is not None
    drawn = [done]
    for vary in ('"topology.queue" = ["codel", "fq-codel"]', '"topology.queue" = ["10p", "100p", "1000p"]'):
        results = swept(vary)
        drawn += overview(summary.flows(results), summary.links(results))
    for item in drawn:
        assert item.specs() and item.spec()["vconcat"]


def test_a_figure_that_is_drawn_twice_has_the_same_svg() -> None:
    drawn = single_run(many_flows(2, 0, [0, 1]))[0]
    first = export.svg(drawn)
    assert 'id="clip1"' in first
    assert export.svg(drawn) == first


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.integers(1, 50))
def test_thinning_keeps_extremes_and_order(values: list[float], buckets: int) -> None:
    t, y = thin(np.arange(len(values)), values, buckets)
    assert len(y) <= max(2 * buckets, 2)
    assert y.min() == min(values) and y.max() == max(values)
    assert (np.diff(t) > 0).all()


def test_rows_are_short_and_json_safe() -> None:
    assert rows(x=[1.23456789, float("nan")], s="a") == [{"x": 1.2346, "s": "a"}, {"x": None, "s": "a"}]
    assert short(123456.0) == 123500.0 and short(float("inf")) is None


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


def test_a_selection_of_points_has_every_level_of_every_factor() -> None:
    points = [{"a": a, "b": b} for a in range(4) for b in range(100)]
    for most in (16, 80):
        chosen = [points[i] for i in spread(points, most)]
        assert len(chosen) == most
        assert {point["a"] for point in chosen} == set(range(4))
        assert len({point["b"] for point in chosen}) >= most - 4
    assert spread(points[:3], 16) == [0, 1, 2]
