"""Colours, dashes and markers of algorithms in figures."""

from __future__ import annotations

import itertools
import math
import tomllib
import zlib

import pytest
from narrows.report import style
from narrows.report.shade import contrast
from narrows.report.style import dark_of, look, looks, order, shades
from narrows.studies import find_study


def test_controllers_that_are_drawn_together_differ_by_more_than_colour() -> None:
    together = ["cubic", "bbr", "brf", "brf-literal", "brf-measured"]
    assert len({looks()[name].marker for name in together}) == len(together) - 0
    assert len({(looks()[name].dash, looks()[name].marker) for name in looks()}) > len(looks()) / 2
    assert len({entry.light for entry in looks().values()}) == len(looks())


def test_colours_have_contrast_on_their_page() -> None:
    """WCAG 2.1 (1.4.11) requires a contrast of 3:1 for graphics."""
    for name, entry in looks().items():
        assert contrast(entry.light, "#ffffff") >= 3.0, name
        assert contrast(entry.dark, "#16181b") >= 3.0, name


def oklab(colour: str) -> tuple[float, float, float]:
    """A colour in OKLab (Ottosson 2020), where the distance of two colours is their visible difference."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    l_ = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    m_ = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    s_ = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * l_ + 0.7936177850 * m_ - 0.0040720468 * s_,
        1.9779984951 * l_ - 2.4285922050 * m_ + 0.4505937099 * s_,
        0.0259040371 * l_ + 0.7827717662 * m_ - 0.8086757660 * s_,
    )


@pytest.mark.parametrize(
    ("study", "file"),
    [("rates", "few"), ("pacec", "p1"), ("pacec", "line"), ("bdr", "b1-100"), ("bdr", "b3")],
)
def test_bars_of_one_chart_have_different_colours(study: str, file: str) -> None:
    """Bars have no dash or marker, so their colours must differ. Two colours 0.039 apart looked alike."""
    text = (find_study(study) / f"{file}.toml").read_text(encoding="utf-8")
    names = [case["name"] for case in tomllib.loads(text)["sweep"]["case"]]
    assert len(names) > 2
    for a, b in itertools.combinations(names, 2):
        assert math.dist(oklab(look(a).light), oklab(look(b).light)) >= 0.07, (a, b)
        assert math.dist(oklab(look(a).dark), oklab(look(b).dark)) >= 0.07, (a, b)


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


def test_a_picture_of_its_own_does_not_depend_on_earlier_names() -> None:
    """In a test of pages, the colours depended on the tests before it."""
    with style.own_looks():
        alone = look("bottleneck")
    # Find a name that takes the look of `bottleneck` if it is used before `bottleneck`.
    number = zlib.crc32(b"bottleneck") % style._DIFFERENT
    rival = next(
        name
        for i in itertools.count()
        if zlib.crc32((name := f"rival-{i}").encode()) % style._DIFFERENT == number
    )
    with style.own_looks():
        look(rival)
        before = dict(style._given)
        with style.own_looks():
            assert look("bottleneck") == alone
        assert style._given == before
        assert look("bottleneck") != alone
