"""Scenario files keep their meaning: the plans of all their points have the recorded digests.

The first digests come from the Python package of version 0.3.0, which had an implementation of its own. If
a change of the format or of a scenario file is intended, record the plans again with
`NARROWS_PLANS=write .venv/bin/pytest tests/python/test_scenario_plans.py`.
"""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from narrows.errors import ScenarioError
from narrows.scenario import hub
from narrows.scenario.load import expand, loads
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/vectors/scenario-plans.json"
MOST_POINTS = 100
"""Maximum number of points per scenario."""
WITH_ERRORS = {"examples/own-controller/telemetry.toml"}
"""Scenarios with controllers of a crate's own."""


def paths():
    """All scenario files of the repository, except those that tests and documents contain."""
    for folder in ("scenarios", "python", "examples", "tools"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            if re.search(r"^\[\[?(flows|links|topology)", path.read_text(encoding="utf-8"), re.MULTILINE):
                yield path


def digests(path):
    """The digest of a scenario's text, and the digest of the plans of its points."""
    text = path.read_text(encoding="utf-8")
    points = {id(run.point): run.point for run in expand(loads(text, str(path)), 1)}.values()
    digest = hashlib.sha256()
    for point in list(points)[:MOST_POINTS]:
        try:
            made = json.dumps(resolve(point), sort_keys=True)
        except ScenarioError as error:
            assert str(path.relative_to(ROOT)) in WITH_ERRORS, error
            made = str(error)
        digest.update(made.replace(str(ROOT), "").encode())
    return {"text": hashlib.sha256(text.encode()).hexdigest()[:16], "plans": digest.hexdigest()[:16]}


def test_scenario_files_keep_their_plans():
    if hub.folder() is None:
        pytest.skip("no topohub, which some scenarios need")
    found = {str(path.relative_to(ROOT)): digests(path) for path in paths()}
    assert len(found) > 50
    if os.environ.get("NARROWS_PLANS") == "write":
        FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    same_text = [name for name in found if recorded.get(name, {}).get("text") == found[name]["text"]]
    changed = [name for name in same_text if recorded[name] != found[name]]
    assert not changed, "the same files have other plans"
    assert found == recorded, "files have changed; see the first lines of this test"
