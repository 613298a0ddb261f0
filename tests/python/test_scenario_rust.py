"""The crate narrows-scenario gives the same scenarios, sweeps, plans and errors as the Python package."""

import copy
import json
import os
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import both
import pytest
from narrows import _native, congestion, rate
from narrows.errors import ScenarioError
from narrows.scenario import reference, schema
from narrows.scenario.load import expand, loads, parse_override
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
TESTS = [
    *("test_scenario_errors.py", "test_resolve.py", "test_sweep.py", "test_traces.py", "test_patterns.py"),
    *("test_topology.py", "test_topology_scenarios.py", "test_programs.py", "test_expect.py"),
    *(
        "test_changes.py",
        "test_units.py",
        "test_choices.py",
        "test_published.py",
        "test_retired.py",
        "test_quic.py",
    ),
]
"""Tests of the format. Both implementations get all their scenarios."""
IN_PYTHON_ONLY = [
    # The test looks for the line of the test in the message, but the comparison calls the function.
    "test_retired.py::test_old_arguments_in_python_are_reported_with_the_line_that_has_them",
    # The tests replace the list of networks in Python.
    "test_topology.py::test_islands_are_an_error_that_links_mend",
    "test_topology_scenarios.py::test_a_missing_package_is_named",
]
MOST_POINTS = 100
"""Maximum number of points of a sweep whose plans are compared."""


def is_scenario(text: str) -> bool:
    return re.search(r"^\[\[?(flows|links|topology)", text, re.MULTILINE) is not None


def sources() -> list[tuple[str, str]]:
    """Every scenario of the repository: files, and the examples in documents."""
    tomls = [
        path
        for folder in ("scenarios", "python", "examples", "tools")
        for path in (ROOT / folder).rglob("*.toml")
    ]
    found = [(str(path), path.read_text(encoding="utf-8")) for path in sorted(tomls)]
    for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("crates/*/README.md")]):
        blocks = re.findall(r"```toml[^\n]*\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        found += [(f"{path}#{i}", block) for i, block in enumerate(blocks)]
    return [(source, text) for source, text in found if is_scenario(text)]


def compare(tally: both.Tally, request: dict[str, Any], **known: Any) -> None:
    """Compare a scenario, its sweep, and the plans of its points."""
    if "text" in request:
        scenario = both.outcome(lambda: loads(request["text"], request["source"]))
    else:
        scenario = both.outcome(lambda: Scenario(**copy.deepcopy(request["data"])))
    both.both_scenarios(tally, request, scenario)
    if isinstance(scenario, dict):
        return
    scenario.with_source(request["source"])
    runs = both.outcome(lambda: expand(scenario))
    both.both_sweeps(tally, request, runs)
    if isinstance(runs, dict) or sum(flow.count for flow in scenario.flows) > 20_000:
        return
    for point in list({id(run.point): run.point for run in runs}.values())[:MOST_POINTS]:
        plan = both.outcome(lambda point=point: resolve(point, **known))
        both.both_plans(tally, {"data": point.raw(), "source": point.source, **known}, plan)


def explained(tally: both.Tally) -> str:
    return json.dumps(tally.differences[:3], indent=1, default=str)[:4000]


def test_every_scenario_of_the_repository_has_the_same_plans():
    tally = both.Tally()
    for source, text in sources():
        compare(tally, {"text": text, "source": source})
    assert not tally.differences, explained(tally)
    assert tally.equal["plans"] > 1000 and tally.equal["scenarios"] > 100, tally.equal


def test_the_tests_of_the_format_get_the_same_answers_from_both(tmp_path):
    report = tmp_path / "both.json"
    deselected = [f"--deselect=tests/python/{name}" for name in IN_PYTHON_ONLY]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "both", "-p", "no:cacheprovider", *deselected, *TESTS],
        cwd=HERE,
        env=os.environ
        | {"NARROWS_BOTH": str(report), "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    assert not found["differences"], json.dumps(found["differences"][:3], indent=1)[:4000]
    errors = sum(count for kind, count in found["equal"].items() if kind.endswith("errors"))
    assert errors > 500 and found["equal"]["plans"] > 500, found["equal"]


def test_the_errors_that_the_crate_tests_are_those_of_python():
    file = ROOT / "crates/narrows-scenario/tests/errors.json"
    for text, message in json.loads(file.read_text(encoding="utf-8")):
        assert both.outcome(lambda text=text: loads(text)) == {"error": message}, text


def plain_schema(part: Any) -> Any:
    """A part of a JSON schema without titles, nulls and defaults. Defaults have no units in Python."""
    if isinstance(part, list):
        return [plain_schema(item) for item in part]
    if not isinstance(part, dict):
        return part
    result = {
        key: {name: plain_schema(inner) for name, inner in value.items()}
        if key == "properties"
        else plain_schema(value)
        for key, value in part.items()
        if key not in ("title", "default")
    }
    if "anyOf" in result:
        choices = [choice for choice in result.pop("anyOf") if choice != {"type": "null"}]
        flat = [
            inner
            for choice in choices
            for inner in (choice["anyOf"] if set(choice) == {"anyOf"} else [choice])
        ]
        result |= flat[0] if len(flat) == 1 else {"anyOf": flat}
    if isinstance(result.get("required"), list):
        result["required"] = sorted(result["required"])
    return result


def test_the_schema_has_the_same_keys_ranges_and_meanings():
    python, rust = (plain_schema(json.loads(text)) for text in (schema.text(), _native.scenario_schema()))
    assert len(python.pop("description")) > len(rust.pop("description"))  # how to use it in Python
    (shape,) = (
        choice
        for choice in rust["$defs"]["RateController"]["properties"]["shape"]["anyOf"]
        if choice.get("type") == "array"
    )
    assert shape.pop("minItems") == 1  # pydantic leaves it out
    assert python == rust


# fmt: off
WORDS = [
    "10", "10mbit", "0mbit", "5bit", "20ms", "1us", "3h", "0.5%", "50%", "1bdp", "0.3bdp", "infinite",
    "100p", "1.5p", "64kB", "1MiB", "-1ms", "auto", "all", "*", "h*", "hop?", "sndlib", "distance",
    "fifo", "red", "codel", "fq-codel", "htb", "priority", "threshold", "bernoulli", "none", "dumbbell",
    "star", "parking-", "lot", "named", "abilene", "gfc-1", "fat-tree", "s1", "d1", "r1", "bottleneck",
    "hop1", "a", "b", "quinn", "udp", "tcp", "brf", "pacec", "rcp", "bbr", "cubic", "bbr3",
    "narrows:cubic", "x.py:Y", "permutation", "all-to-all", "random", "incast", "gfc", "web-search",
    "pareto", "fixed", "95%", "é", "it's", "1e99ms",
]
# fmt: on
NUMBERS = [
    0,
    1,
    2,
    3,
    10,
    64,
    1000,
    4097,
    65536,
    -1,
    2**31,
    2**63 - 1,
    0.0,
    0.5,
    1.0,
    -0.5,
    1e-9,
    1e300,
    True,
    False,
]
LETTERS = "0159.- %kMGbBsp\u200bé'\"\\*"


class Mutator:
    """Changes scenarios at random."""

    def __init__(self, seed: int, scenarios: list[dict[str, Any]]) -> None:
        self.random = random.Random(seed)
        self.values = [value for scenario in scenarios for _, _, value in self.places(scenario)]
        fields = [field for table in reference.reachable() for field in table.model_fields.items()]
        self.keys = sorted({field.alias or name for name, field in fields})

    def places(self, value: Any) -> list[tuple[Any, Any, Any]]:
        """Each value inside a table or list, with the table or list and its key."""
        pairs = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        return [place for key, inner in pairs for place in ((value, key, inner), *self.places(inner))]

    def value(self, depth: int = 0) -> Any:
        """A random value."""
        kind = self.random.random()
        if kind < 0.4:
            return self.random.choice(WORDS)
        if kind < 0.65 or depth > 2:
            return self.random.choice(NUMBERS)
        if kind < 0.8:
            return copy.deepcopy(self.random.choice(self.values))
        if kind < 0.9:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.random.choice(self.keys): self.value(depth + 1) for _ in range(self.random.randrange(4))}

    def change(self, scenario: dict[str, Any]) -> None:
        """Change one to three places."""
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            places = self.places(scenario)
            if not places:
                return
            inside, key, old = self.random.choice(places)
            kind = self.random.randrange(6)
            if kind == 0:
                del inside[key]
            elif kind == 1 and isinstance(inside, dict):
                inside[self.random.choice(self.keys)] = self.value()
            elif kind == 2 and isinstance(inside, dict):
                at = self.random.randrange(len(key)) if key else 0
                inside[key[:at] + self.random.choice("abcxe_") + key[at + 1 :]] = inside.pop(key)
            elif kind == 3 and isinstance(old, str):
                at = self.random.randrange(len(old) + 1)
                inside[key] = old[:at] + self.random.choice(LETTERS) + old[at + self.random.randrange(2) :]
            elif kind == 4 and isinstance(inside, list):
                inside.insert(key, copy.deepcopy(old))
            else:
                inside[key] = self.value()


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_get_the_same_answers_from_both(seed, capsys):
    scenarios = []
    for _, text in sources():
        try:
            scenarios.append(tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            continue
    mutator, tally = Mutator(seed, scenarios), both.Tally()
    known = {
        "congestion_controllers": [name for name, _, _ in congestion.names()],
        "rate_controllers": list(rate.catalogue()),
    }
    for number in range(600):
        data = copy.deepcopy(mutator.random.choice(scenarios))
        mutator.change(data)
        source = str(ROOT / "scenarios" / "x.toml")
        try:
            compare(tally, {"data": data, "source": source}, **(known if number % 2 else {}))
        except ScenarioError:
            raise
        except TypeError:
            continue  # a key of the top level is no name of an argument
    assert not tally.differences, explained(tally)
    assert tally.equal["scenarios errors"] > 100 and tally.equal["plans"] > 20, tally.equal


def dotted_key(mutator: Mutator) -> str:
    """A random dotted key, which is often wrong."""
    choice = mutator.random.choice
    names = ["*", "0", "1", "bbr", "cubic", "x", '"a.b"', "'x'", '""', 'a"b', "bands", "controllers"]
    start = choice(["flows", "flows", "topology", "links", "sweep.vary", "rate_controllers", "x"])
    parts = [
        choice(names if mutator.random.random() < 0.4 else mutator.keys) for _ in range(choice([1, 2, 2, 3]))
    ]
    return ".".join([start, *parts])


def test_random_overrides_get_the_same_answers_from_both(capsys):
    texts = sources()
    mutator, tally = Mutator(0, []), both.Tally()
    written = [
        "1",
        "-1",
        "1.5",
        "true",
        "10mbit",
        '"20ms"',
        "[1]",
        "[]",
        "{}",
        "{ a = 1 }",
        '["a"]',
        "x y",
        "1\nx = 2",
    ]
    for _ in range(600):
        source, text = mutator.random.choice(texts)
        override = parse_override(f"{dotted_key(mutator)}={mutator.random.choice(written)}")
        request = {"text": text, "source": source, "overrides": [override]}
        scenario = both.outcome(lambda: loads(text, source, dict([override])))  # noqa: B023
        both.both_scenarios(tally, request, scenario)
    assert not tally.differences, explained(tally)
    assert tally.equal["scenarios errors"] > 200, tally.equal
