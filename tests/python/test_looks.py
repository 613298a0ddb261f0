"""Looks of algorithms in figures: colours, dashes and markers."""

from __future__ import annotations

import pytest
from narrows.report import style
from narrows.report.shade import contrast
from narrows.report.style import dark_of, look, looks, order, shades


def test_controllers_that_are_drawn_together_differ_by_more_than_colour() -> None:
    together = ["cubic", "bbr", "brf", "brf-literal", "brf-measured"]
    assert len({looks()[name].marker for name in together}) == len(together) - 0
    assert len({(looks()[name].dash, looks()[name].marker) for name in looks()}) > len(looks()) / 2
    assert len({entry.light for entry in looks().values()}) == len(looks())


def test_colours_have_contrast_on_their_page() -> None:
    """The contrast with the page is at least 3:1, which WCAG 2.1 (1.4.11) requires of graphics."""
    for name, entry in looks().items():
        assert contrast(entry.light, "#ffffff") >= 3.0, name
        assert contrast(entry.dark, "#16181b") >= 3.0, name


def test_names_without_a_look_of_their_own_never_look_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "_given", {})
    few = ["copa-0.05", "copa-0.5", "cubic(beta=0.5)", "cubic(beta=0.05)", "mine", "enim"]
    many = [f"vegas(alpha={n})" for n in range(400)]
    drawn = {name: look(name) for name in order([*few, *many, *looks()])}
    assert len({drawn[name].light for name in few} | {looks()["cubic"].light}) == len(few) + 1
    seen = {(item.light, item.dash, item.marker) for item in drawn.values()}
    assert len(seen) == len(drawn) == len(few) + len(many) + len(looks())
    for name in few + many:
        assert contrast(drawn[name].light, "#ffffff") >= 3.0, name
        assert contrast(drawn[name].dark, "#16181b") >= 3.0, name
    assert look("cubic(beta=0.5)").label == "CUBIC, beta=0.5"
    assert order(["bbr", "cubic(beta=0.5)", "reno", "cubic"]) == ["cubic", "cubic(beta=0.5)", "reno", "bbr"]


def test_unknown_names_have_a_look() -> None:
    assert look("my-own") == look("my-own") and look("my-own").label == "my-own"
    assert order(["zzz", "brf", "cubic"]) == ["cubic", "brf", "zzz"]
    assert len({item.light for item in shades("brf", 5)}) == 5
    assert dark_of({look("link-0").light}) == {look("link-0").light: look("link-0").dark}
