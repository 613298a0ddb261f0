"""The libraries in the page match their pinned versions and have their licences."""

from __future__ import annotations

import hashlib
import tomllib
from importlib import resources
from pathlib import Path

import pytest

FOLDER = Path(str(resources.files("narrows.controller"))) / "page" / "vendor"
LIBRARIES = sorted(folder.name for folder in FOLDER.iterdir())
ROOT = Path(__file__).parents[3]


def test_the_page_has_exactly_these_libraries():
    assert LIBRARIES == ["uplot"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_files_are_those_of_the_pinned_version(library):
    folder = FOLDER / library
    source = tomllib.loads((folder / "source.toml").read_text())
    files = {path.name for path in folder.iterdir()} - {"source.toml"}
    assert files == set(source["sha256"]) and "LICENSE" in files
    for name, expected in source["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected, name
    scripts = [(folder / name).read_text() for name in files if name.endswith(".js")]
    assert scripts and all(f"(v{source['version']})" in text.split("\n")[0] for text in scripts)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_table_of_dependencies_names_them(library):
    source = tomllib.loads((FOLDER / library / "source.toml").read_text())
    (row,) = [line for line in (ROOT / "ARCHITECTURE.md").read_text().split("\n") if f"`{library}`" in line]
    assert source["version"] in row and source["licence"] in row
