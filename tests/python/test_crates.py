"""The requirements of crates.io for the crates that are published. `make crates` packages and builds them."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PUBLISHED = ("narrows-control", "narrows-plan", "narrows-sim")


@pytest.fixture(scope="module")
def packages() -> dict[str, dict[str, Any]]:
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {package["name"]: package for package in json.loads(out)["packages"]}


def test_only_these_crates_are_published(packages: dict[str, dict[str, Any]]) -> None:
    assert {name for name, package in packages.items() if package["publish"] != []} == set(PUBLISHED)


@pytest.mark.parametrize("crate", PUBLISHED)
def test_a_published_crate_has_a_description(packages: dict[str, dict[str, Any]], crate: str) -> None:
    package = packages[crate]
    for key in (
        "description",
        "documentation",
        "homepage",
        "repository",
        "license",
        "readme",
        "rust_version",
    ):
        assert package[key], key
    # Limits of crates.io.
    assert 1 <= len(package["keywords"]) <= 5 and all(len(word) <= 20 for word in package["keywords"])
    assert 1 <= len(package["categories"]) <= 5
    examples = {target["name"] for target in package["targets"] if target["kind"] == ["example"]}
    readme = (ROOT / "crates" / crate / "README.md").read_text(encoding="utf-8")
    assert len(examples) >= 2
    assert examples == set(re.findall(r"--example (\w+)", readme))
    assert "## Versions" in readme


@pytest.mark.parametrize("crate", PUBLISHED)
def test_a_package_contains_its_licences_and_its_readme(crate: str) -> None:
    command = ["cargo", "package", "--list", "--allow-dirty", "--locked", "--offline", "-p", crate]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = set(out.splitlines())
    assert {"LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"} <= files


@pytest.mark.parametrize("crate", ["narrows-control", "narrows-plan"])
def test_the_requirement_on_a_crate_is_the_version_of_the_workspace(crate: str) -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    assert workspace["dependencies"][crate]["version"] == workspace["package"]["version"]
