"""Versions and URLs of all packages agree with those of the workspace."""

import re
import subprocess
import tomllib
from importlib.metadata import distributions, metadata, version
from pathlib import Path

import pytest
from narrows import _native
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = WORKSPACE["package"]["version"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_workspace_states_the_only_version():
    assert "version" in PROJECT["dynamic"]
    assert version("narrows") == VERSION
    assert _native.version == VERSION


@pytest.mark.parametrize(
    "manifest", sorted(ROOT.glob("crates/*/Cargo.toml")), ids=lambda path: path.parent.name
)
def test_every_crate_inherits_the_version_and_the_urls(manifest):
    package = tomllib.loads(manifest.read_text())["package"]
    for key in ("version", "license", "repository", "homepage", "keywords", "categories"):
        assert package[key] == {"workspace": True}, key


def test_dependencies_between_crates_ask_for_the_same_version():
    own = {name: given for name, given in WORKSPACE["dependencies"].items() if name.startswith("narrows-")}
    assert own
    assert {given["version"] for given in own.values() if "version" in given} <= {VERSION}


def test_python_and_rust_name_the_same_repository():
    repository, homepage = WORKSPACE["package"]["repository"], WORKSPACE["package"]["homepage"]
    urls = PROJECT["urls"]
    assert (urls["Source"], urls["Homepage"]) == (repository, homepage)
    assert all(url.startswith((repository, homepage)) for url in urls.values())


def test_the_installed_metadata_has_a_readme_and_a_licence():
    found = metadata("narrows")
    assert found["License-Expression"] == PROJECT["license"]
    assert "# Narrows" in found["Description"]


def test_the_citation_has_the_version_and_the_urls():
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    package = WORKSPACE["package"]
    assert f"version: {VERSION}" in citation
    assert f"repository-code: {package['repository']}" in citation
    assert f"url: {package['homepage']}" in citation


def test_the_release_notes_are_the_dated_section_of_the_changelog():
    """The awk program of the release workflow cuts the section out of the changelog."""
    text = (ROOT / ".github/workflows/release.yml").read_text()
    (program,) = re.findall(r"awk -v v=\"\[\$\{GITHUB_REF_NAME#v\}\]\" '([^']+)'", text)
    command = ["awk", "-v", f"v=[{VERSION}]", program, ROOT / "CHANGELOG.md"]
    notes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    (dated,) = [line for line in notes if line.startswith("## ")]
    date = re.fullmatch(rf"## \[{re.escape(VERSION)}\] - (\d{{4}}-\d\d-\d\d)", dated)[1]
    assert f"date-released: {date}" in (ROOT / "CITATION.cff").read_text().splitlines()
    assert len(notes) > 20


def test_the_security_policy_supports_this_version_and_points_to_pages_that_exist():
    policy = (ROOT / "SECURITY.md").read_text()
    assert f"| {VERSION.rpartition('.')[0]} | yes |" in policy
    links = re.findall(r"\]\(([^)]+)\)", policy)
    assert all(
        link.startswith(WORKSPACE["package"]["repository"]) or (ROOT / link).exists() for link in links
    )


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_of_the_makefile_and_pins_its_actions(workflow):
    text = workflow.read_text()
    rules = re.findall(r"^([\w -]+):(?!=)", (ROOT / "Makefile").read_text(), re.M)
    targets = {target for rule in rules for target in rule.split()}
    called = set(re.findall(r"\bmake ([\w-]+)$", text, re.M))
    scripts = set(re.findall(r"(\.ci/\w+)$", text, re.M))
    assert called or scripts
    assert called <= targets
    assert all((ROOT / script).exists() for script in scripts)
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", pin) for pin in re.findall(r"uses: [^@\s]+@(\S+)", text))


def test_make_help_lists_every_public_target():
    public, _parts = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.M)
    out = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    listed = {line.split()[1] for line in out.splitlines() if line.startswith("  make ")}
    assert listed == set(public.split())


def test_every_pinned_package_accepts_the_oldest_python():
    """Debian 12 has Python 3.11.2, and pip fails if a pinned version requires a newer one."""
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    needs = {
        found.name: found.metadata["Requires-Python"] for found in distributions() if found.name in pinned
    }
    assert len(needs) > 0.9 * len(pinned)
    assert [name for name, range_ in needs.items() if range_ and "3.11.0" not in SpecifierSet(range_)] == []


def test_the_files_that_start_first_exist():
    from conftest import LONGEST

    assert all((Path(__file__).parent / name).is_file() for name in LONGEST)
