"""Crates meet the requirements of crates.io, and another crate can use their packages.

`make crates` packages and builds all crates.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = ("narrows-control", "narrows-plan", "narrows-scenario", "narrows-sim")
"""Crates whose libraries other projects use."""
PARTS = ("narrows-capture", "narrows-channel", "narrows-emulator", "narrows-quinn", "narrows-py")
"""`narrows-py` and crates that it needs. With them, other crates can add controllers to `narrows-py`."""
PUBLISHED = LIBRARIES + PARTS


@pytest.fixture(scope="module")
def packages() -> dict[str, dict[str, Any]]:
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {package["name"]: package for package in json.loads(out)["packages"]}


def test_only_these_crates_are_published(packages: dict[str, dict[str, Any]]) -> None:
    assert {name for name, package in packages.items() if package["publish"] != []} == set(PUBLISHED)


@pytest.mark.parametrize("crate", PUBLISHED)
def test_a_published_crate_is_described(packages: dict[str, dict[str, Any]], crate: str) -> None:
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
    assert 1 <= len(package["keywords"]) <= 5 and all(len(word) <= 20 for word in package["keywords"])
    assert 1 <= len(package["categories"]) <= 5


@pytest.mark.parametrize("crate", LIBRARIES)
def test_a_library_has_examples_and_a_semver_policy(packages: dict[str, dict[str, Any]], crate: str) -> None:
    package = packages[crate]
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


@pytest.mark.parametrize("crate", [crate for crate in PUBLISHED if crate != "narrows-py"])
def test_the_requirement_on_a_crate_is_the_version_of_the_workspace(crate: str) -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    assert workspace["dependencies"][crate]["version"] == workspace["package"]["version"]


@pytest.fixture(scope="module")
def own_crate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `examples/own-controller`, built with local packages."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    folder = tmp_path_factory.mktemp("own")
    flags = [flag for crate in PUBLISHED for flag in ("--package", crate)]
    command = ["cargo", "package", "--no-verify", "--allow-dirty", "--locked", "--offline", "--quiet"]
    subprocess.run([*command, "--target-dir", folder / "target", *flags], cwd=ROOT, check=True)
    patches = []
    for package in sorted((folder / "target/package").glob("*.crate")):
        subprocess.run(["tar", "--extract", "--gzip", "--file", package], cwd=folder, check=True)
        crate = package.stem.rpartition("-")[0]
        patches += ["--config", f'patch.crates-io.{crate}.path="{folder / package.stem}"']
    crate = shutil.copytree(ROOT / "examples/own-controller", folder / "own-controller")
    shutil.copy(ROOT / "Cargo.lock", crate)
    built = ROOT / "target/own-crate"
    command = ["cargo", "build", "--workspace", "--offline", "--quiet", "--target-dir", str(built), *patches]
    subprocess.run(command, cwd=crate, check=True)
    (crate / "bin").symlink_to(built / "debug")
    return crate


def _narrows(folder: Path, *arguments: str, own: bool = True) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "120", "NO_COLOR": "1"}
    if own:
        environment["NARROWS_NATIVE"] = str(folder / "bin/libown_controller_extension.so")
    command = [sys.executable, "-m", "narrows", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _goodputs(text: str) -> dict[str, float]:
    rows = re.findall(r"^(default|half)\s+constant(?:\(segments=20\))?\s+([\d.]+)", text, re.MULTILINE)
    return {name: float(goodput) for name, goodput in rows}


def test_a_controller_of_another_crate_is_used_by_name(own_crate: Path) -> None:
    plan = _narrows(own_crate, "check", "scenario.toml", "--plan")
    assert plan.returncode == 0, plan.stderr
    (own_crate / "plan.json").write_text(plan.stdout, encoding="utf-8")
    program = [own_crate / "bin/own-controller", "plan.json"]
    printed = subprocess.run(program, cwd=own_crate, capture_output=True, text=True, check=True).stdout
    goodputs = _goodputs(printed)
    # The sender sends one window per RTT. Devices and queue add 0.5 ms to the RTT.
    assert goodputs["default"] == pytest.approx(40 * 1448 * 8 / 0.0405 / 1e6, rel=0.01)
    assert goodputs["half"] == pytest.approx(goodputs["default"] / 2, rel=0.01)
    ran = _narrows(own_crate, "run", "scenario.toml")
    assert ran.returncode == 0, ran.stderr
    assert _goodputs(ran.stdout) == pytest.approx(goodputs, rel=0.01)


def test_a_controller_with_a_header_of_its_own_keeps_the_queue_short(own_crate: Path) -> None:
    ran = _narrows(own_crate, "run", "telemetry.toml", "--json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    (link,) = (row for row in report["links"] if row["name"] == "bottleneck")
    # HPCC keeps each link at 95 % of its rate. Together, the additive steps of both flows add at most 2 %.
    assert link["utilisation"] == pytest.approx(0.96, abs=0.02)
    assert link["dropped_packets"] == 0
    assert link["sojourn_p95_s"] < 1e-3
    goodputs = [row["goodput_bps"] for row in report["flows"]]
    assert min(goodputs) / max(goodputs) > 0.7
    # Without the rate controller, headers stay empty, and the window stays at 10 segments. Each flow sends
    # one window per RTT.
    alone = ["run", "telemetry.toml", "--set", "rate_controllers=[]"]
    assert "no [[rate_controllers]] of kind 'telemetry' exists" in _narrows(own_crate, *alone).stdout
    (first, second) = json.loads(_narrows(own_crate, *alone, "--json").stdout)["flows"]
    expected = 10 * (1448 - 52) * 8 / 0.02
    assert first["goodput_bps"] == pytest.approx(expected, rel=0.05)
    assert second["goodput_bps"] == pytest.approx(expected, rel=0.05)


def test_a_controller_of_another_crate_is_listed_and_its_parameters_are_checked(own_crate: Path) -> None:
    listed = _narrows(own_crate, "list", "congestion")
    assert re.search(r"^constant +a constant window$", listed.stdout, re.MULTILINE)
    rates = _narrows(own_crate, "list", "rate").stdout
    assert re.search(r"^telemetry +in-band telemetry for HPCC$", rates, re.MULTILINE)
    assert "constant" not in _narrows(own_crate, "list", "congestion", own=False).stdout.split()
    wrong = _narrows(own_crate, "run", "scenario.toml", "--set", "flows.1.cc.segments=0")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    expected = "flows.1.cc.segments: found 0, expected a whole number from 1 to 1000000"
    assert wrong.stderr == f"scenario.toml: {expected}\n"
