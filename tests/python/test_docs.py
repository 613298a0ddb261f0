"""The pages of docs/ and the README: their examples run, and their lists are complete."""

import contextlib
import importlib.util
import inspect
import io
import re
import shlex
import sys
import tomllib
from pathlib import Path

import narrows as package
import pytest
from narrows import metrics, rate, sweep
from narrows.results import columns
from narrows.scenario.load import expand
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).parents[2]
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
PAGES = [*sorted((ROOT / "docs").glob("**/*.md")), *sorted(ROOT.glob("*.md")), ROOT / "studies/README.md"]
LENGTH = {"duration": "6s"}
"""Each run ends one second after the last flow of the example has started."""
native = pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def generator(name="reference"):
    if (tools := str(ROOT / "tools")) not in sys.path:
        sys.path.append(tools)
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / f"tools/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses need this
    spec.loader.exec_module(module)
    return module


def example(change):
    """The first example of docs/reference/scenarios.md, with the changes of a later example on the page."""
    data = tomllib.loads(blocks("docs/reference/scenarios.md", "toml")[0])
    if "links" in change:
        data.pop("topology")
    if "topology" in change and not {"kind", "name"} & set(change["topology"]):
        change["topology"] = data["topology"] | change["topology"]
    return data | change


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text(blocks("docs/reference/scenarios.md", "toml")[0])
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    return tmp_path


# Lists on the pages


@native
@pytest.mark.parametrize("page", generator().PARTS)
def test_generated_parts_are_in_step(page):
    assert (ROOT / page).read_text() == generator().page(page), "run: python tools/reference.py"


def test_the_vectors_of_the_gain_model_are_the_generators():
    made = generator("bbr_gains")
    assert made.VECTORS.read_text() == made.text(), "run: python tools/bbr_gains.py"


def test_every_metric_is_defined_with_the_number_of_its_docstring():
    text = (ROOT / "docs/reference/metrics.md").read_text()
    rows = {
        name: line
        for line in text.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    functions = [name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))]
    assert not set(functions) - set(rows)
    for name in functions:
        for number in re.findall(r"MET-\d+", inspect.getdoc(getattr(metrics, name)) or ""):
            assert re.search(rf"{number}\b", rows[name]), (name, number)


@native
def test_every_congestion_controller_has_its_source_on_the_page():
    from narrows import _native

    text = (ROOT / "docs/reference/congestion-controllers.md").read_text()
    named = set(re.findall(r"`([\w-]+)`", text))
    # For variants such as `bbr-a-literal`, the page has only the suffixes `-literal` and `-recent`.
    variants = {f"{of}{kind}" for of in ("bbr-a", "bbr-b", "bbr-c") for kind in ("-literal", "-recent")}
    assert {"-literal", "-recent"} <= named
    assert {name for name, _ in _native.congestion_controllers()} <= named | variants


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            in_repository = re.match(rf"{re.escape(SOURCE)}/(?:blob|raw|tree)/main/", target)
            if target.startswith("http") and not in_repository:
                continue
            folder, local = (ROOT, target[in_repository.end() :]) if in_repository else (page.parent, target)
            path, _, anchor = local.partition("#")
            file = folder / path if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
                slugs = [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]
                assert anchor in slugs, f"{page.name}: {target}"


def test_links_of_the_readme_also_work_on_pypi():
    targets = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text())
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []


# Examples on the pages


@native
@pytest.mark.parametrize("number", range(len(blocks("docs/reference/scenarios.md", "toml"))))
def test_examples_of_scenarios_run(number, folder):
    text = blocks("docs/reference/scenarios.md", "toml")[number]
    shown = tomllib.loads(text)
    # Examples with a large network set a short duration, which the test keeps.
    data = example(shown) | ({} if str(shown.get("duration")).endswith("ms") else LENGTH)
    results = sweep.run(Scenario(**data).with_source(str(folder / "my.toml")), seeds=1)
    delivered = results.flows["delivered_bytes"].to_pylist()
    assert sum(delivered) > 10**6
    assert len(results.runs) == len(expand(Scenario(**data), seeds=1))


@native
def test_the_consoles_of_the_page_show_real_output(folder, narrows):
    shown = "".join(blocks("docs/reference/scenarios.md", "console"))
    said = ""
    for command in re.findall(r"^\$ (.*)$", shown, re.MULTILINE):
        _, out, err = narrows(*shlex.split(command)[1:])
        said += f"$ {command}\n{out}{err}"
    assert said == shown


@native
@pytest.mark.parametrize("page", ["docs/reference/results.md", "docs/reference/metrics.md"])
def test_python_of_the_pages_runs(page, folder):
    text = (folder / "my.toml").read_text().replace('"30s"', f'"{LENGTH["duration"]}"')
    (folder / "my.toml").write_text(text)
    namespace: dict = {}
    for block in blocks(page, "python"):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, page, "exec"), namespace)
    assert isinstance(namespace["results"], package.Results)
    assert sum(namespace["results"].flows["delivered_bytes"].to_pylist()) > 10**6


@native
def test_the_readmes_example_is_that_of_the_tour():
    (shown,) = blocks("README.md", "toml")
    assert shown == blocks("docs/reference/scenarios.md", "toml")[0]


@native
@pytest.mark.parametrize("mode", ["literal", "resolved"])
def test_brfs_parameters_are_those_that_a_scenario_takes(mode):
    """A scenario with all parameters of the page gives the same run as a scenario that sets only the mode."""
    row = rate.catalogue()["brf"]
    defaults = {p.name: p.default for p in row.parameters.values()} | (
        row.literal if mode == "literal" else {}
    )
    spelled = {p.name: p.spelled(defaults[p.name]) for p in row.parameters.values()}
    values = {name: tomllib.loads(f"v = {text}")["v"] for name, text in spelled.items()}
    assert values["mode"] == mode
    data = {
        "duration": "3s",
        "topology": {"kind": "dumbbell", "rate": "20mbit", "rtt": "20ms", "pairs": 2},
        "flows": [{"cc": "brf"}, {"cc": "brf", "start": "1s"}],
        "probes": {"traces": True},
    }
    outputs = []
    for params in ({"mode": mode}, values):
        controllers = [{"kind": "brf", "link": "bottleneck", "params": params}]
        outputs.append(sweep.run(Scenario(**data, rate_controllers=controllers)))
    preset, spelled_out = (output.pandas("traces") for output in outputs)
    assert len(preset) > 100
    # The method `equals` of pandas treats two NaN as equal.
    assert preset.equals(spelled_out)


@native
def test_the_table_of_runs_has_its_columns():
    scenario = Scenario(**example({}), sweep={"case": [{"name": "a", "set": {"duration": "6s"}}]})
    names = sweep.run(scenario).runs.column_names
    assert names == [column.name for column in columns.RUNS if column.name != "<key>"]


def test_defaults_of_topologies_are_as_the_tour_says():
    plan = resolve(Scenario(**example({})))
    named = {link["name"]: link for link in plan["links"]}
    assert named["bottleneck"]["queue"]["limit"]["bytes"] == 50_000_000 // 8 * 30 // 1000
    assert named["s1->r1"]["rate"]["steps"][0][1] == 10 * 50_000_000 // 8
