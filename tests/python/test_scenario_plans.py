"""Scenario files keep their meaning: the plans of all their points have the recorded digests.

The first digests come from version 0.3.0, in which Python code made the plans. A change of a comment or title
keeps the digest. After an intended change, or for a new file, record the plans with
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
"""Scenarios with controllers that only the crate in the same folder has."""


def paths():
    """All scenario files of the repository, except those that tests and documents contain."""
    for folder in ("scenarios", "python", "examples", "tools"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            if re.search(r"^\[\[?(flows|links|topology)", path.read_text(encoding="utf-8"), re.MULTILINE):
                yield path


def plans_of(path):
    """The digest of the plans of a scenario's points."""
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
    return digest.hexdigest()[:16]


def test_scenario_files_keep_their_plans():
    if hub.folder() is None:
        pytest.skip("no topohub, which some scenarios need")
    found = {str(path.relative_to(ROOT)): plans_of(path) for path in paths()}
    assert len(found) > 50
    if os.environ.get("NARROWS_PLANS") == "write":
        FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    changed = sorted(name for name in found.keys() & recorded.keys() if found[name] != recorded[name])
    assert not changed, "these files have other plans; see the first lines of this test"
    assert found.keys() == recorded.keys(), "files were added or removed; see the first lines of this test"
