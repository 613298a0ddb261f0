"""The README's picture and output come from real runs."""

import importlib.util
import re
import tomllib

import pytest
from test_docs import ROOT, blocks, generator

native = pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")


@pytest.fixture
def tool():
    pytest.importorskip("altair", reason="the report extra is not installed")
    return generator("landing_picture")


def test_the_picture_is_drawn_from_the_measured_tables(tool):
    assert tool.PICTURE.read_text() == tool.picture(), "run: python tools/landing_picture.py"


def test_the_tables_figures_are_those_of_the_pages(tool):
    speeds = {(row["what"], row["simulator"]): row["value"] for row in tool.speeds()}
    errors = {(row["what"], row["simulator"]): row["value"] for row in tool.errors()}
    assert len(speeds) == 2 * len(tool.SCENARIOS)
    performance = (ROOT / "docs/explanation/performance.md").read_text()
    assert f"| A | narrows | {speeds['2 CUBIC flows, 100 Mbit/s', 'Narrows']:.3f} |" in performance
    assert f"|   | ns-3    | {speeds['2 CUBIC flows, 100 Mbit/s', 'ns-3']:.2f} |" in performance
    assert len(errors) == 2 * 15
    validation = (ROOT / "docs/explanation/validation.md").read_text()
    assert f"| CUBIC | 22 | {errors['CUBIC', 'Narrows']} |" in validation
    assert f" {errors['CUBIC', 'ns-3']} |" in validation


@native
def test_the_scenario_prints_the_output_that_is_shown(tmp_path, monkeypatch, narrows):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (scenario,) = blocks("README.md", "toml")
    (shown,) = blocks("README.md", "console")
    (tmp_path / "my.toml").write_text(scenario)
    command, _, output = shown.partition("\n")
    assert command == "$ narrows run my.toml"
    code, out, _ = narrows("run", "my.toml")
    assert code == 0
    assert [line.rstrip() for line in out.splitlines()] == output.splitlines()


def test_the_release_that_is_named_is_this_one():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"narrows=={version}\n" in (ROOT / "README.md").read_text()


def test_the_page_has_five_links():
    page = (ROOT / "README.md").read_text()
    assert len(re.findall(r"(?<!!)\[[^\]]+\]\(", page)) == 5
