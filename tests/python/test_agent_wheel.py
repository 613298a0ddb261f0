"""The agent's wheel, and how `narrows` finds the program that the wheel installs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from narrows.backends.kernel import agents

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "packaging/agent-wheel/build.py"


def build(binary: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BUILD, binary, folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def wheel(tmp_path, agent_binary):
    """A wheel of the binary that `make agent` builds."""
    done = build(agent_binary, tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def test_pip_installs_the_agent_where_narrows_finds_it(wheel, tmp_path, monkeypatch):
    environment = tmp_path / "environment"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-index",
            "--no-deps",
            "--prefix",
            environment,
            wheel,
        ],
        check=True,
    )
    program = environment / "bin/narrows-agent"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.split() == ["narrows-agent", wheel.name.split("-")[1]]
    monkeypatch.delenv(agents.VARIABLE, raising=False)
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "no-target"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert agents.find() is None
    monkeypatch.setattr(sys, "executable", str(environment / "bin/python"))
    assert agents.find() == program


def test_the_wheel_carries_licences_and_tags_for_every_c_library(wheel):
    assert wheel.name.endswith(".whl") and "manylinux2014_" in wheel.name and "musllinux_1_1_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = [name.rsplit("/", 1)[1] for name in archive.namelist()]
    assert sorted(names) == [
        *("LICENSE-APACHE", "LICENSE-MIT", "METADATA", "RECORD", "WHEEL", "copyright", "narrows-agent")
    ]


def test_the_program_contains_no_path_of_the_build_machine(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/scripts/narrows-agent")]
        program = archive.read(name)
    cargo = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    for path in (ROOT, cargo):
        found = re.search(rb"[ -~]*" + re.escape(f"{path}/".encode()) + rb"[ -~]*", program)
        assert found is None, found


@pytest.mark.parametrize("name", ["plain", "with a space"])
def test_compiler_flags_are_separated_by_a_byte_that_no_path_contains(tmp_path, name):
    folder = tmp_path / name
    (folder / "packaging").mkdir(parents=True)
    script = folder / "packaging/rustflags.sh"
    shutil.copy2(ROOT / "packaging/rustflags.sh", script)
    environment = {**os.environ, "CARGO_HOME": str(folder / "cargo")}
    flags = [f"--remap-path-prefix={folder}=narrows", f"--remap-path-prefix={folder}/cargo=cargo"]
    for given in ([], ["-Ctarget-feature=+crt-static"]):
        printed = subprocess.run(
            [script, *given], capture_output=True, text=True, check=True, env=environment
        )
        assert printed.stdout.split("\x1f") == [*flags, *given]


def test_the_same_binary_makes_the_same_wheel(wheel, tmp_path):
    again = build(ROOT / "target/release/narrows-agent", tmp_path / "again")
    assert Path(again.stdout.strip()).read_bytes() == wheel.read_bytes()


def elf(machine: int, segment: int) -> bytes:
    header = bytearray(120)
    header[:6] = b"\x7fELF\x02\x01"
    header[18:20] = machine.to_bytes(2, "little")
    header[32:40] = (64).to_bytes(8, "little")
    header[54:58] = bytes([56, 0, 1, 0])
    header[64:68] = segment.to_bytes(4, "little")
    return bytes(header)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#!/bin/sh\n", "found no little-endian ELF file of 64 bits"),
        (elf(40, 1), "found ELF machine 40, expected one of x86_64, aarch64"),
        (elf(62, 3), "found a dynamically linked binary, expected a static one: make agent"),
    ],
)
def test_other_files_are_refused_in_one_line(content, message, tmp_path):
    binary = tmp_path / "narrows-agent"
    binary.write_bytes(content)
    done = build(binary, tmp_path / "dist")
    assert (done.returncode, done.stderr) == (2, f"{binary}: {message}\n")
    assert not (tmp_path / "dist").exists()


def test_the_machine_of_a_static_binary_is_read_from_its_header():
    spec = importlib.util.spec_from_file_location("agent_wheel", BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.machine(elf(62, 1)) == "x86_64"
    assert module.machine(elf(183, 1)) == "aarch64"


def test_the_metadata_has_the_links_and_classifiers_of_the_python_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().partition("\n\n")[0].splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    links = {line.removeprefix("Project-URL: ") for line in lines if line.startswith("Project-URL: ")}
    assert links == {f"{label}, {address}" for label, address in project["urls"].items()}
    classifiers = {line.removeprefix("Classifier: ") for line in lines if line.startswith("Classifier: ")}
    assert classifiers < set(project["classifiers"])
    assert "Topic :: System :: Networking" in classifiers
    assert not any("Python" in classifier for classifier in classifiers)
