"""Ticks, bands and marks of figures."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.report.encode import axis, log_ticks
from narrows.report.kinds.points import overview
from narrows.results.summary import FLOW_FIGURES, LINK_FIGURES, Figure, Row


def row(point: str, name: str, goodput: float = 1e6, seeds: int = 5) -> Row:
    figures = dict.fromkeys((*FLOW_FIGURES, *LINK_FIGURES), Figure(math.nan))
    return Row({"cc": point}, name, "cubic", figures | {"goodput_bps": Figure(goodput, 3e5, seeds)})


@given(st.floats(1e-3, 1e4), st.floats(1.05, 50))
def test_a_logarithmic_axis_has_several_ticks_however_short_it_is(low: float, times: float) -> None:
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


def test_ticks_that_are_named_are_not_thinned_out() -> None:
    made = axis("x", "X", log=True, domain=[0.1, 100], values=[0.1, 0.5, 1, 5, 10, 100])["axis"].to_dict()
    assert "tickCount" not in made
    assert "tickCount" in axis("x", "X")["axis"].to_dict()


def test_flows_of_one_controller_at_a_point_differ_in_how_they_are_filled() -> None:
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
