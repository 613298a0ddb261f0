"""Ticks, bands and markers of figures."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.metrics import mean_ci
from narrows.report.encode import axis, factor_axis, log_ticks, note_bursts, note_cut
from narrows.report.intervals import Frame, possible, reach, within
from narrows.report.kinds.points import overview
from narrows.results.summary import FLOW_FIGURES, LINK_FIGURES, Figure, Row


def row(point: str, name: str, goodput: float = 1e6, seeds: int = 5) -> Row:
    figures = dict.fromkeys((*FLOW_FIGURES, *LINK_FIGURES), Figure(math.nan))
    return Row({"cc": point}, name, "cubic", figures | {"goodput_bps": Figure(goodput, 3e5, seeds)})


@given(st.floats(1e-3, 1e4), st.floats(1.05, 50))
def test_a_logarithmic_axis_of_any_length_has_several_ticks(low: float, times: float) -> None:
    ticks = log_ticks(low, times * low)
    assert len(ticks) >= 2
    assert ticks == sorted(ticks)
    assert all(low <= tick <= times * low * (1 + 1e-5) for tick in ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (43, 85, [50, 60, 70, 80]),
        (1, 10, [1, 2, 5, 10]),
        (50, 58, [50, 52, 54, 56, 58]),
        (0.01, 150, [0.01, 0.1, 1, 10, 100]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == ticks


def test_explicit_ticks_are_not_thinned_out() -> None:
    made = axis("x", "X", log=True, domain=[0.1, 100], values=[0.1, 0.5, 1, 5, 10, 100])["axis"].to_dict()
    assert "tickCount" not in made
    assert "tickCount" in axis("x", "X")["axis"].to_dict()


def test_flows_of_one_controller_at_a_point_differ_in_fill() -> None:
    rows = [row(point, name) for point in ("codel", "red") for name in ("near", "far")]
    (figure,) = overview(rows, [])
    data = figure.panels[0].chart.to_dict()["data"]["values"]
    assert [(item["name"], item["fill"]) for item in data] == 2 * [("near", 1.0), ("far", 0.0)]
    assert "filled: near; open: far" in figure.caption
    assert [key.fill for key in figure.keys if key.label in {"near", "far"}] == [1.0, 0.0]


def test_a_flow_alone_at_each_point_needs_no_second_mark() -> None:
    (figure,) = overview([row("codel", "near"), row("red", "far")], [])
    assert "open" not in figure.caption
    assert [key.label for key in figure.keys] == ["CUBIC"]


@pytest.mark.parametrize(("seeds", "banded"), [(2, False), (3, True)])
def test_bands_need_three_seeds(seeds: int, banded: bool) -> None:
    rows = [replace(row("", "near", rate, seeds), factors={"n": rate / 1e6}) for rate in (1e6, 2e6, 4e6)]
    (figure,) = overview(rows, [])
    (chart,) = [panel.chart.to_dict() for panel in figure.panels]
    data = chart["data"]["values"]
    assert {item["band"] for item in data} == {banded}
    assert ("three seeds" in figure.caption) is not banded


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from(["jain", "share", "goodput"]))
def test_whiskers_stay_in_range_and_labels_near_their_value(values: list[float], measure: str) -> None:
    interval = mean_ci(values)
    low, high = within(interval, possible(measure))
    least, most = possible(measure)
    assert least <= low <= interval.mean + 1e-9 and interval.mean - 1e-9 <= high <= most
    top = 1.1 * reach(interval.mean, high, interval.n) or 1.0
    if interval.n < 3:
        assert top <= 1.1 * max(interval.mean, 1.0), "two seeds do not set an axis"
    item = {"y": interval.mean, "lo": low, "hi": high}
    cut = Frame(0.0, top, 0.08).end([item])
    assert 0.0 <= item["from"] <= item["upto"] <= top
    assert item["v"] <= item["at"] <= item["v"] + 0.081 * top
    assert cut is (high > top * (1 + 1e-6))


def test_a_label_is_at_its_value_if_the_whisker_is_long() -> None:
    long, short = ({"y": 0.2, "lo": 0.1, "hi": hi} for hi in (0.9, 0.25))
    assert not Frame(0.0, 1.0, 0.08).end([long, short])
    assert (long["at"], short["at"]) == (0.2, 0.25)


def test_harm_may_be_negative_but_is_at_most_one() -> None:
    assert possible("goodput", harm=True) == (-math.inf, 1.0)
    assert possible("goodput") == (0.0, math.inf)
    assert (possible("jain"), possible("drop_rate")) == ((0.0, 1.0), (0.0, 100.0)), (
        "each range is in the unit of its measure"
    )


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20), st.booleans())
def test_an_axis_of_a_factor_has_room_beyond_its_ends(values: list[float], log: bool) -> None:
    made = factor_axis("x", "X", values, log=log)
    low, high = made["scale"].to_dict()["domain"]
    assert low < min(values) and max(values) < high
    if len(set(values)) <= 10:
        assert made["axis"].to_dict()["values"] == sorted(set(values))


def test_captions_mention_cut_lines_and_bursts_only_if_present() -> None:
    assert note_cut([0.0, None, 1.0], 0.0, 1.0) == "" != note_cut([1.1], 0.0, 1.0)
    assert note_bursts([99.0, None], 100.0) == "" != note_bursts([101.0], 100.0)
