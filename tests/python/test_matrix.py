"""The matrix of pairs of controllers: runs, cells and page."""

import csv
import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import sweep
from narrows.congestion import marked
from narrows.matrix.ask import Ask
from narrows.matrix.cells import FIGURES, Cell, cells, table
from narrows.matrix.page import maps, notes, summary, write
from narrows.matrix.plan import choose, helped, pairs, presets, scenario
from narrows.metrics.statistics import Interval
from narrows.report.kinds.heat import COLUMN_WIDTH, HARM, SHARE
from narrows.report.shade import contrast, text_on
from narrows.results.runs import Run, Runs
from narrows.scenario.load import expand

SMALL = Ask(("bbr", "vegas", "reno"), duration="6s", seeds=2, buffers=("1bdp", "2bdp"))


@pytest.fixture(scope="module")
def measured():
    results = sweep.run(scenario(SMALL))
    return results, cells(results, SMALL)


def cell(found, buffer, controller, rival):
    (hit,) = [c for c in found if (c.buffer, c.algorithm, c.rival) == (buffer, controller, rival)]
    return hit


FAIR = 0.5 * 1448 / 1500 * 100e6
"""Fair share of one of two flows at 100 Mbit/s, in application bit/s."""


def run_of(case: str, flows: dict[str, tuple[float, float, Iterable[float]]], seed: int = 1) -> Run:
    """A run of a case. Each flow has a goodput, a mean RTT, and a goodput in each bin of 500 ms."""
    ccs = [name.split("-")[0] for name in flows]
    samples = [
        (flow, 0.5 * (i + 1), rate) for flow, of in enumerate(flows.values()) for i, rate in enumerate(of[2])
    ]
    bins = max(len(list(of[2])) for of in flows.values())
    tables = {
        "flows": {
            "flow": np.arange(len(flows)),
            "cc": ccs,
            "goodput_bps": np.array([of[0] for of in flows.values()]),
            "rtt_mean_s": np.array([of[1] for of in flows.values()]),
        },
        "flow_samples": {
            "flow": np.array([s[0] for s in samples]),
            "t_s": np.array([s[1] for s in samples]),
            "goodput_bps": np.array([s[2] for s in samples]),
        },
        "links": {"link": np.array([0]), "name": ["tight"]},
        "link_samples": {
            "link": np.zeros(bins),
            "t_s": 0.5 * np.arange(1, bins + 1),
            "capacity_bps": np.full(bins, 100e6),
        },
    }
    return Run({"case": case, "buffer": "1bdp"}, seed, tables)


@pytest.fixture
def by_hand(monkeypatch):
    """The cells of made-up runs, in which reno and vegas are alone and together."""

    def make(met: dict[str, tuple[float, float, Iterable[float]]], warmup: float = 6.0) -> list[Cell]:
        ask = Ask(("reno", "vegas"), buffers=("1bdp",), seeds=1)
        steady = [FAIR] * 60
        every = [
            run_of("reno", {"reno": (90e6, 0.060, steady)}),
            run_of("vegas", {"vegas": (80e6, 0.040, steady)}),
            run_of("reno+reno", {"reno-1": (45e6, 0.060, steady), "reno-2": (45e6, 0.060, steady)}),
            run_of("reno+vegas", met),
            run_of("vegas+vegas", {"vegas-1": (40e6, 0.040, steady), "vegas-2": (40e6, 0.040, steady)}),
        ]
        monkeypatch.setattr("narrows.matrix.cells.read_runs", lambda *_: Runs(every))
        monkeypatch.setattr("narrows.matrix.cells.factor", str)
        return cells(SimpleNamespace(warmup_s=warmup), ask)

    return make


def harmed(**figures: float) -> dict[str, Interval]:
    """Figures whose value is the same for every seed. Figures that are not given are NaN."""
    return {name: Interval(value, value, value, 2) for name, value in figures.items()} | {
        name: Interval(math.nan, math.nan, math.nan, 0) for name in FIGURES if name not in figures
    }


def matrix_of(harms: dict[tuple[str, str], float], share: float = 0.5) -> list[Cell]:
    """A cell for each pair in `harms`: the harm that the first controller suffers from the second."""
    return [
        Cell("1bdp", own, rival, 2, **harmed(harm_goodput=harm, share=share))
        for (own, rival), harm in harms.items()
    ]


def test_each_controller_alone_and_each_pair_once_per_buffer_and_seed():
    runs = expand(scenario(SMALL))
    assert len(runs) == (3 + 6) * 2 * 2
    assert {len(run.scenario.flows) for run in runs} == {1, 2}
    met = {tuple(flow.cc.name for flow in run.scenario.flows) for run in runs}
    assert ("reno", "vegas") in met and ("vegas", "reno") not in met


def test_families_are_adjacent_in_any_order_of_names():
    known = ["bbr", "bic", "brf", "cubic", "dctcp", "reno", "vegas"]
    assert choose(known) == ("cubic", "reno", "bic", "vegas", "bbr")
    assert choose(known, ["vegas", "bbr", "cubic", "cubic"]) == ("cubic", "vegas", "bbr")


def test_controllers_that_need_the_network_are_run_only_on_request():
    known = [name for name, _ in sweep.simulator().congestion_controllers()]
    assert not set(choose(known)) & {*helped(), *marked()}
    assert set(choose(known, marks=True)) == {
        name for name in known if name not in helped() and name not in presets()
    }
    assert set(choose(known, everyone=True)) == set(known)


def test_an_unknown_name_gives_a_one_line_error_with_the_nearest_name(narrows, tmp_path):
    code, out, error = narrows("matrix", "bbr", "bbrr", "--out", tmp_path / "m")
    line = "NAME: found 'bbrr', expected a congestion controller; nearest is 'bbr'\n"
    assert (code, out, error) == (2, "", line)
    assert not (tmp_path / "m").exists()


def test_all_with_names_gives_a_one_line_error(narrows, tmp_path):
    said = narrows("matrix", "--all", "cubic", "--out", tmp_path / "m")
    assert said == (2, "", "--all: found also cubic, expected --all alone\n")
    assert not (tmp_path / "m").exists()


def test_a_port_has_one_rate_controller():
    ask = Ask(("cubic", "brf", "rcp"))
    assert ("rcp", "brf") not in pairs(ask) and ("brf", "rcp") not in pairs(ask)
    assert {("cubic", "brf"), ("cubic", "rcp"), ("brf", "brf")} <= set(pairs(ask))
    helped = [c for c in scenario(ask).raw()["sweep"]["case"] if "brf" in c["name"]]
    assert helped and all(c["set"]["rate_controllers"][0]["kind"] == "brf" for c in helped)
    assert "brf and rcp" in " ".join(notes(ask))


def test_marking_begins_at_a_queue_length():
    ask = Ask(("dctcp",), rate="100mbit", rtt="40ms", mark="0.17bdp")
    plan = sweep.Resolver(sweep.simulator())(expand(scenario(ask))[0].scenario)
    (tight,) = [link for link in plan["links"] if link["name"] == "tight"]
    assert tight["queue"]["mark"] == {"kind": "threshold", "packets": round(0.17 * 100e6 / 8 * 0.04 / 1500)}
    assert notes(ask) == []
    assert "Reno" in notes(Ask(("dctcp",)))[0]


def test_two_shares_sum_to_one_and_harm_is_relative_to_a_run_alone(measured):
    _, found = measured
    for buffer in SMALL.buffers:
        for a, b in product(("bbr", "vegas", "reno"), repeat=2):
            if a != b:
                one, other = cell(found, buffer, a, b), cell(found, buffer, b, a)
                assert one.share.mean + other.share.mean == pytest.approx(1)
                assert one.jain.mean == pytest.approx(other.jain.mean)
            alone = cell(found, buffer, a, None)
            beside = cell(found, buffer, a, b)
            # Harm is (solo - with) / solo (Ware et al., 2019). All seeds have nearly the same solo rate, so
            # the means can be divided.
            expected = 1 - beside.goodput_bps.mean / alone.goodput_bps.mean
            assert beside.harm_goodput.mean == pytest.approx(expected, abs=1e-2)
            assert beside.seeds == 2
            assert math.isnan(alone.share.mean)


def test_against_itself_a_controller_has_the_larger_of_both_shares(measured):
    _, found = measured
    own = [cell(found, buffer, name, name) for buffer in SMALL.buffers for name in ("bbr", "vegas", "reno")]
    assert all(one.share.mean >= 0.5 and one.ratio.mean >= 1 for one in own)
    assert all(one.harm_goodput.mean == pytest.approx(0.5, abs=0.1) for one in own)


def test_the_table_has_a_row_per_cell_and_an_interval_per_figure(measured):
    _, found = measured
    rows = table(found)
    assert len(rows) == 2 * (3 + 9)
    assert {"harm_rtt", "harm_rtt_ci95", "starved", "ratio"} <= set(rows.column_names)


def test_the_summary_names_controllers_that_leave_others_little(measured):
    _, found = measured
    assert all(c.share.mean > 0.1 for c in found if c.buffer == "1bdp" and c.rival)
    assert "No algorithm leaves less than 10 %" in " ".join(summary(found, "1bdp"))
    starved = [
        replace(c, share=replace(c.share, mean=0.05))
        if (c.buffer, c.algorithm, c.rival) == ("1bdp", "vegas", "bbr")
        else c
        for c in found
    ]
    (line,) = (line for line in summary(starved, "1bdp") if "leaves less than 10 %" in line)
    assert line.index("BBR") < line.index("Vegas")


STEADY = [FAIR] * 60


def test_figures_of_a_pair_follow_their_definitions(by_hand):
    found = by_hand({"reno": (60e6, 0.050, STEADY), "vegas": (20e6, 0.050, STEADY)})
    reno, vegas = cell(found, "1bdp", "reno", "vegas"), cell(found, "1bdp", "vegas", "reno")
    assert (reno.ratio.mean, vegas.ratio.mean) == (pytest.approx(3), pytest.approx(1 / 3))
    assert (reno.share.mean, vegas.share.mean) == (pytest.approx(0.75), pytest.approx(0.25))
    assert reno.harm_goodput.mean == pytest.approx(1 - 60 / 90)
    assert vegas.harm_goodput.mean == pytest.approx(1 - 20 / 80)
    # The harm to the RTT is divided by the RTT next to the rival (Ware et al., 2019).
    assert vegas.harm_rtt.mean == pytest.approx((50 - 40) / 50)
    assert reno.harm_rtt.mean == pytest.approx((50 - 60) / 50)


@pytest.mark.parametrize(
    ("low", "warmup", "starved"),
    [
        ((20, 41), 6.0, 1.0),  # low for 10.5 s
        ((20, 40), 6.0, 0.0),  # low for only 10 s
        ((0, 21), 6.0, 0.0),  # low for only 4.5 s after the warm-up
        ((0, 33), 6.0, 1.0),  # low from 6 s, the end of the warm-up, to 16.5 s
        ((0, 32), 6.0, 0.0),
        ((0, 21), 0.0, 1.0),
    ],
)
def test_a_flow_with_almost_no_goodput_for_over_ten_seconds_starves(by_hand, low, warmup, starved):
    rates = [0.04 * FAIR if low[0] <= i < low[1] else FAIR for i in range(60)]
    found = by_hand({"reno": (60e6, 0.05, STEADY), "vegas": (20e6, 0.05, rates)}, warmup)
    assert cell(found, "1bdp", "vegas", "reno").starved.mean == starved
    assert cell(found, "1bdp", "reno", "vegas").starved.mean == 0


def test_the_summary_ranks_by_the_harm_to_rivals():
    found = matrix_of(
        {
            ("cubic", "reno"): 0.2,
            ("vegas", "reno"): 0.4,
            ("cubic", "vegas"): 0.1,
            ("reno", "vegas"): 0.0,
            ("reno", "cubic"): 0.7,
            ("vegas", "cubic"): 0.9,
        }
    )
    assert (
        "On average over all rivals, CUBIC takes the most of the goodput that a rival has alone (80 %), "
        "and Vegas takes the least (5 %)." in summary(found, "1bdp")
    )


def around(harms: dict[tuple[str, str], float], half: float, seeds: int = 5) -> list[Cell]:
    """The cells of `matrix_of`. `half` is the half width of their intervals."""
    half = half if seeds > 1 else math.nan
    return [
        replace(c, seeds=seeds, harm_goodput=Interval(mean, mean - half, mean + half, seeds))
        for c, mean in zip(matrix_of(harms), harms.values(), strict=True)
    ]


def test_no_controller_is_first_if_intervals_overlap():
    both = {("cubic", "dctcp"): 0.514, ("dctcp", "cubic"): 0.508}
    said = "The intervals do not separate the algorithms by the goodput that they take from rivals: "
    assert f"{said}51 % on average over all rivals." in summary(around(both, 0.01), "1bdp")
    assert "DCTCP takes the most" in " ".join(summary(around(both, 0.001), "1bdp"))


def test_all_controllers_that_may_be_first_are_named():
    harms = {
        ("vegas", "cubic"): 0.81,
        ("reno", "cubic"): 0.81,
        ("vegas", "reno"): 0.8,
        ("cubic", "reno"): 0.8,
    }
    harms |= {("cubic", "vegas"): -0.004, ("reno", "vegas"): -0.001}
    assert (
        "On average over all rivals, one of CUBIC and Reno takes the most of the goodput that a rival has "
        "alone (80 to 81 %; the intervals do not separate them), and Vegas takes the least (0 %)."
        in summary(around(harms, 0.02), "1bdp")
    )


def test_with_one_seed_no_controller_is_first_or_more_harmful():
    harms = {("cubic", "cubic"): 0.5, ("cubic", "bbr"): 0.9, ("bbr", "cubic"): -0.001}
    said = " ".join(summary(around(harms, 0, seeds=1), "1bdp"))
    assert (
        "an algorithm takes 0 to 90 % of the goodput that a rival has alone. "
        "One seed gives no intervals, so there is no ranking" in said
    )
    assert "takes the most" not in said and "more harm" not in said and "-0" not in said


def test_help_names_the_controllers_that_are_left_out(narrows):
    help_text = " ".join(narrows("matrix", "--help")[1].replace("│", " ").split())
    assert "Without --mark, the default also omits controllers that react to ECN marks." in help_text


def test_the_summary_averages_defined_values():
    nothing = math.nan
    harms = {("vegas", "cubic"): 0.8, ("reno", "cubic"): nothing, ("cubic", "vegas"): 0.1}
    found = matrix_of({**harms, ("reno", "vegas"): nothing, ("cubic", "reno"): nothing})
    lines = " ".join(summary(found, "1bdp"))
    assert "CUBIC takes the most" in lines and "(80 %)" in lines and "nan" not in lines
    found = matrix_of(dict.fromkeys(harms, nothing), share=nothing)
    assert summary(found, "1bdp") == ["No flow delivered any data."]


def test_only_controllers_that_harm_cubic_more_than_cubic_are_named():
    harms = {("cubic", "cubic"): 0.5, ("cubic", "bbr"): 0.6, ("cubic", "vegas"): 0.1, ("cubic", "reno"): 0.5}
    harms |= {(rival, "cubic"): 0.9 for rival in ("bbr", "vegas", "reno")}
    *_, last = summary(matrix_of(harms), "1bdp")
    assert last == "These algorithms do more harm to CUBIC than another CUBIC flow does: BBR."
    del harms["cubic", "bbr"]
    assert not any("more harm" in line for line in summary(matrix_of(harms), "1bdp"))


def test_more_harm_than_by_cubic_needs_disjoint_intervals():
    harms = {("cubic", "cubic"): 0.5, ("cubic", "bbr"): 0.6, ("bbr", "cubic"): 0.9}
    assert "BBR" in summary(matrix_of(harms), "1bdp")[-1]
    wide = [
        replace(c, harm_goodput=Interval(c.harm_goodput.mean, c.harm_goodput.mean - 0.2, 1.0, 2))
        for c in matrix_of(harms)
    ]
    assert not any("more harm" in line for line in summary(wide, "1bdp"))


def test_a_heat_map_has_a_cell_for_each_pair_and_readable_text(measured):
    _, found = measured
    (share, *_) = maps(found, SMALL, "1bdp")
    drawn = re.findall(r'"r": "([^"]+)", "c": "([^"]+)"', json.dumps(share.specs()[0]))
    assert set(drawn) == set(product(("BBR", "Vegas", "Reno"), repeat=2))
    assert SHARE.text(0.5) == "#000000" and SHARE.text(0.0) == SHARE.text(1.0) == "#ffffff"
    assert HARM.text(1.0) == "#ffffff" and HARM.text(-1.0) == "#000000"


def test_the_map_of_harm_says_which_side_suffers(measured):
    _, found = measured
    titles = {}
    for drawn in maps(found, SMALL, "1bdp"):
        encoding = drawn.panels[0].chart.to_dict()["layer"][0]["encoding"]
        titles[drawn.id] = (encoding["y"]["title"], encoding["x"]["title"])
    assert titles["harm-rtt-1bdp"] == titles["harm-goodput-1bdp"] == ("suffered by", "from")
    assert titles["share-1bdp"] == ("of", "against")


def test_the_width_of_a_map_follows_its_columns(measured):
    _, found = measured
    (share, *_) = maps(found, SMALL, "1bdp")
    assert share.panels[0].width == 3 * COLUMN_WIDTH
    assert share.specs()[0]["width"] == 3 * COLUMN_WIDTH
    (wide,) = replace(share, panels=[replace(share.panels[0], width=20 * COLUMN_WIDTH)]).specs()
    assert wide["width"] == "container"


@given(st.floats(-3, 3), st.sampled_from([SHARE, HARM]))
def test_text_is_legible_on_any_fill(value, ramp):
    """WCAG 2.1 (1.4.3) requires a contrast of 4.5:1 for text."""
    assert contrast(ramp.text(value), ramp.fill(value)) >= 4.5
    assert ramp.text(value) == text_on(ramp.fill(value))


def test_a_ramp_is_exact_at_its_values_and_constant_outside():
    assert [SHARE.fill(value) for value in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [
        SHARE.colours[i] for i in (0, 0, 1, 2, 2)
    ]


def test_the_command_writes_tables_and_a_page_and_prints_starvation(tmp_path, narrows):
    out = tmp_path / "m"
    arguments = ["matrix", "cubic", "vegas", "--buffer", "1bdp", "--seeds", "1", "--duration", "5s"]
    arguments += ["--out", str(out), "--no-figures"]
    code, printed, _ = narrows(*arguments)
    assert code == 0
    assert "1bdp:" in printed and "so there is no ranking" in printed
    with (out / "matrix.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 + 4
    assert "Harm to the goodput" in (out / "report.html").read_text()
    before = (out / "matrix.csv").read_bytes()
    code, again, error = narrows(*arguments, "--reuse")
    assert code == 0 and again == printed and "runs" not in error
    assert (out / "matrix.csv").read_bytes() == before


def test_a_second_matrix_removes_the_figures_of_the_first(tmp_path, narrows):
    arguments = ["matrix", "reno", "--seeds", "1", "--duration", "1s", "--out", tmp_path]
    figures = tmp_path / "figures"
    code, printed, _ = narrows(*arguments, "--buffer", "1bdp")
    assert code == 0 and "replaced" not in printed
    assert (figures / "share-1bdp.pdf").exists()
    (figures / "share-mine.pdf").touch()
    code, printed, _ = narrows(*arguments, "--buffer", "2bdp", "--no-figures")
    assert code == 0
    assert printed.endswith(f"page in {tmp_path / 'report.html'} (earlier results replaced)\n")
    assert [path.name for path in figures.iterdir()] == ["share-mine.pdf"]


def test_random_loss_and_marks_are_on_the_page(tmp_path, narrows):
    """Figures do not show that a link has random loss or marks, so the page must state both."""
    arguments = ["matrix", "cubic", "--buffer", "1bdp", "--seeds", "1", "--duration", "2s", "--no-figures"]
    _, printed, _ = narrows(*arguments, "--loss", "0.5%", "--mark", "0.2bdp", "--out", str(tmp_path / "a"))
    text = (tmp_path / "a/report.html").read_text()
    assert (
        "note: The link loses 0.5 % of packets at random" in printed
        and "The link loses 0.5 % of packets at random" in text
    )
    assert "RTT of 40ms and random loss of 0.5 %." in text
    assert "Random loss" in text and "Marks above" in text and "0.2 BDP" in text
    _, printed, _ = narrows(*arguments, "--out", str(tmp_path / "b"))
    text = (tmp_path / "b/report.html").read_text()
    assert "loses" not in printed and "Random loss" not in text and "Marks above" not in text


def test_a_wrong_unit_gives_a_one_line_error(tmp_path, narrows):
    code, _, error = narrows("matrix", "--rate", "fast", "--out", str(tmp_path))
    assert code == 2 and error.count("\n") == 1 and "--rate" in error


@pytest.mark.parametrize("seed", ["-1", "9" * 20])
def test_an_invalid_seed_names_the_option(tmp_path, narrows, seed):
    line = f"--seed: found {seed}, expected a whole number from 0 to 9223372036854775807\n"
    assert narrows("matrix", "reno", "--seed", seed, "--out", tmp_path / "m") == (2, "", line)
    (tmp_path / "x.toml").write_text("")
    assert narrows("run", tmp_path / "x.toml", "--seed", seed, "--out", tmp_path / "m") == (2, "", line)
    assert not (tmp_path / "m").exists()


def test_a_marking_threshold_above_the_queue_names_the_option(tmp_path, narrows):
    said = narrows("matrix", "reno", "--mark", "infinite", "--out", tmp_path / "out")
    assert said[:2] == (2, "") and said[2].startswith("--mark: found 'infinite', expected a length such as ")


@pytest.mark.parametrize("rate", ["0mbit", "0bit"])
def test_a_bottleneck_rate_of_zero_gives_a_one_line_error(tmp_path, narrows, rate):
    code, out, error = narrows("matrix", "reno", "--rate", rate, "--out", tmp_path / "m")
    assert (code, out, error) == (2, "", f"--rate: found '{rate}', expected more than zero\n")


def test_a_buffer_in_two_spellings_is_run_once(tmp_path, narrows):
    arguments = ["matrix", "reno", "--seeds", "1", "--duration", "1s", "--out", tmp_path, "--no-figures"]
    buffers = ["1bdp", "1.0bdp", "20p", "1BDP"]
    code, out, _ = narrows(*arguments, *(word for buffer in buffers for word in ("--buffer", buffer)))
    assert code == 0
    assert [line for line in out.splitlines() if line.endswith(":")] == ["1bdp:", "20p:"]


def test_all_with_network_help_runs(tmp_path):
    ask = Ask(("cubic", *helped()), duration="3s", seeds=1, buffers=("1bdp",))
    found = cells(sweep.run(scenario(ask)), ask)
    assert all(c.goodput_bps.mean > 0 for c in found)
    write(found, sweep.run(scenario(Ask(("cubic",), duration="1s", seeds=1))), ask, tmp_path, files=False)
