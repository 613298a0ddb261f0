"""The packages of `narrows` import each other only in the ways that ARCHITECTURE.md allows."""

import ast
import functools
from graphlib import TopologicalSorter
from pathlib import Path

import narrows
import pytest

PACKAGE = Path(narrows.__file__).parent
BASICS = {
    "_native",
    "bandwidth_model",
    "congestion",
    "errors",
    "extension",
    "extras",
    "locks",
    "markdown",
    "packets",
    "parameters",
    "plan",
    "rate",
    "retired",
    "signals",
    "stacks",
    "units",
    "version",
}
"""Modules that every package may import."""
LAYERS = {
    "metrics": set(),
    "data": set(),
    "controller": set(),
    "scenario": set(),
    "results": {"metrics"},
    "training": {"results"},
    "custom": set(),
    "backends": {"controller", "custom", "scenario"},
    "cache": {"backends", "results"},
    "executors": {"backends", "results"},
    "sweep": {"backends", "executors", "results", "scenario"},
    "studies": {"backends", "data", "executors", "metrics", "results", "scenario", "sweep"},
    "expect": {"metrics", "results", "scenario", "studies"},
    "playground": {"results", "scenario"},
    "report": {"metrics", "playground", "results", "scenario", "studies"},
    "matrix": {"metrics", "report", "results", "scenario"},
    "diff": {"metrics", "report", "results"},
    "validate": {"backends", "executors", "report", "results", "scenario", "sweep"},
    "cli": {
        "backends",
        "cache",
        "controller",
        "data",
        "diff",
        "executors",
        "expect",
        "export",
        "matrix",
        "metrics",
        "playground",
        "report",
        "results",
        "scenario",
        "studies",
        "sweep",
        "training",
        "validate",
    },
    "export": {"metrics", "results"},
    "testing": {"cli", "expect", "results", "scenario", "sweep"},
}
"""The packages that each package may import."""
TOP = {"__init__", "__main__"}


def imported(tree):
    """The parts of `narrows` that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            if node.module == "narrows":
                yield from (name.name for name in node.names)
            elif node.module.startswith("narrows."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("narrows."))


@functools.cache
def arrows():
    """For each part of `narrows`, the parts that it imports, each with a file that contains the import."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        part = file.relative_to(PACKAGE).with_suffix("").parts[0]
        for other in imported(ast.parse(file.read_text(encoding="utf-8"))):
            if other != part:
                found.setdefault(part, {}).setdefault(other, file.relative_to(PACKAGE))
    return found


@pytest.mark.parametrize("part", sorted(LAYERS))
def test_a_package_imports_only_its_layers(part):
    beyond = {
        other: str(file)
        for other, file in arrows().get(part, {}).items()
        if other not in LAYERS[part] | BASICS
    }
    assert not beyond


def test_basic_modules_import_only_each_other():
    found = {part: set(others) - BASICS for part, others in arrows().items() if part in BASICS}
    assert not any(found.values()), found


def test_every_part_has_its_layer():
    parts = {path.stem.removesuffix(".abi3") for path in PACKAGE.iterdir() if not path.name.startswith(".")}
    assert parts - {"__pycache__", "py"} == set(LAYERS) | BASICS | TOP


def test_no_parts_import_each_other_in_a_circle():
    assert list(TopologicalSorter(arrows()).static_order())
    assert list(TopologicalSorter(LAYERS).static_order())
