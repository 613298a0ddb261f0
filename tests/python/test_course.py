"""The course (docs/course/): its scenarios run, and its pages and pictures show the results of these runs."""

import functools
import importlib.util
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from test_docs import generator

pytest.importorskip("narrows._native", reason="no simulator")

ROOT = Path(__file__).parents[2]
COURSE = ROOT / "docs/course"
SCENARIOS = sorted((ROOT / "scenarios/course").glob("*.toml"))
PAGES = sorted(COURSE.glob("[0-9]*.md"))
PARTS = ["Scenario", "Try", "Results", "Why", "Sources"]
LARGEST_SVG = 100_000
CHEAPEST = COURSE / "02-slow-start.md"


@functools.cache
def tool():
    return generator("course")


def name(path):
    return path.stem


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_shows_the_results_of_its_runs(path):
    page = tool().Page(path)
    assert page.generated() == page.text, "run: python tools/course.py"
    assert "<!-- holds:" in page.text
    assert page.broken() == []
    if importlib.util.find_spec("vl_convert") is None:
        pytest.skip("the extra `report` is not installed, so the pictures were not compared")
    drawn = page.pictures()
    assert drawn
    for file, svg in drawn.items():
        assert len(svg) < LARGEST_SVG, file
        assert file.read_text() == svg, "run: python tools/course.py"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_run_of_a_page_is_used(path):
    text = path.read_text()
    used = set(re.findall(r"^([\w-]+) [\w-]+ ", text, re.MULTILINE)) | {"base"}
    assert set(tool().Page(path).runs) <= used


def test_each_scenario_has_a_page_and_the_index_lists_it():
    assert len(PAGES) == 10
    assert [path.stem for path in PAGES] == [path.stem for path in SCENARIOS]
    index = (COURSE / "index.md").read_text()
    assert re.findall(r"^\| \[[^]]+\]\((.+?)\)", index, re.MULTILINE) == [path.name for path in PAGES]
    assert {file.name for file in (COURSE / "img").iterdir()} == {
        Path(target).name for path in PAGES for target in re.findall(r"\((img/.+?)\)", path.read_text())
    }


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_each_page_has_the_same_parts(path):
    text = path.read_text()
    number = int(path.stem[:2])
    assert text.startswith(f"# {number}. ")
    assert "\n**Question.** " in text
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS
    assert "../reference/glossary.md#" in text
    scenario = (ROOT / f"scenarios/course/{path.stem}.toml").read_text()
    assert text.count(f"<!-- scenario -->\n```toml\n{scenario}```\n") == 1
    assert f"`narrows play scenarios/course/{path.stem}.toml`" in text


@pytest.mark.parametrize("path", SCENARIOS, ids=name)
def test_a_scenario_works_in_the_playground_and_on_the_command_line(path, narrows):
    """The playground reads title and note from the first two lines. It cannot read other files."""
    text = path.read_text()
    title, note, third = text.splitlines()[:3]
    assert title == f"# {(COURSE / path.stem).with_suffix('.md').read_text().splitlines()[0][2:]}"
    assert note.startswith("# ") and not third.startswith("#")
    scenario = tomllib.loads(text)
    assert "trace" not in scenario["topology"]
    assert not [flow for flow in scenario["flows"] if str(flow["cc"]).endswith(".py")]
    code, out, err = narrows("check", str(path))
    assert (code, err) == (0, "")
    assert out.startswith(f"{path}: ")


def test_the_output_of_a_page_is_that_of_the_command(narrows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    command = tool().Page(CHEAPEST).runs["base"]
    _, out, _ = narrows(*shlex.split(command.text)[1:])
    assert out == command.output


def test_the_python_code_of_the_incast_page_finds_the_late_runs(narrows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    page = tool().Page(COURSE / "09-incast.md")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page.text, re.MULTILINE | re.DOTALL)
    command = page.runs["all"]
    narrows(*shlex.split(command.text)[1:])
    exec(compile(code, page.path.name, "exec"), {})
    printed = json.loads(capsys.readouterr().out)
    assert len(printed) == 20
    assert sum(last > 0.1 for last in printed) == command.value("late-runs", "-", 100)[0]


# A page with a mistake


@pytest.fixture
def changed(tmp_path):
    """The page with the shortest runs, with a change in its text."""

    def make(old, new):
        text = CHEAPEST.read_text()
        assert old in text
        path = tmp_path / CHEAPEST.name
        path.write_text(text.replace(old, new, 1))
        return tool().Page(path)

    return make


def test_a_wrong_figure_is_replaced(changed):
    right = re.search(r"drops \*\*(\d+)\*\*", CHEAPEST.read_text().replace("\n", " "))[1]
    wrong = changed(f"**{right}**", "**7**")
    assert "**7**" in wrong.text and wrong.generated() == CHEAPEST.read_text()


def test_a_wrong_statement_is_reported(changed):
    claim = "base drops bottleneck > 2 * plus drops bottleneck"
    assert changed(claim, claim.replace(">", "<")).broken() == [f"{CHEAPEST.name}: {claim.replace('>', '<')}"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("base window-max reno", "bass window-max reno", "found the run bass, expected base, "),
        ("base window-max reno", "base window-max cubic", "found no cubic, expected reno"),
        ("base window-max reno", "base window reno", "found the figure window, expected goodput, "),
        ("base window-max reno\n", "", "bold figures, expected 4"),
        ("--set flows.0.cc=cubic", "--on kernel", "found --on in "),
        ("--out results/02-plus", "--out results/02-cubic", "found two commands for cubic"),
        ("base drops bottleneck > 2", "base drops bottleneck 2", "expected A < B, A > B or A = B"),
    ],
)
def test_a_mistake_in_a_comment_is_one_line(changed, old, new, fault):
    def fill_in():
        wrong = changed(old, new)
        return wrong.generated(), wrong.broken()

    with pytest.raises(tool().CourseError, match=fault) as raised:
        fill_in()
    assert "\n" not in str(raised.value)
