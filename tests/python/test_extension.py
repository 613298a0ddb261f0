"""NARROWS_NATIVE with a file that is not the module."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"

[[flows]]
cc = "cubic"
"""


def _python(folder: Path, file: Path | str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NARROWS_NATIVE": str(file)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _run(folder: Path, file: Path | str) -> str:
    (folder / "own.toml").write_text(SCENARIO, encoding="utf-8")
    done = _python(folder, file, "-m", "narrows", "run", "own.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == []
    return done.stderr


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    expected = f"NARROWS_NATIVE: found no file {tmp_path / 'lib.so'}, expected a native module\n"
    assert _run(tmp_path, "lib.so") == expected


def test_a_file_that_is_not_a_library(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_text("text", encoding="utf-8")
    message = _run(tmp_path, "lib.so")
    assert message.startswith(f"NARROWS_NATIVE: {tmp_path / 'lib.so'}: ") and message.count("\n") == 1


def test_the_version_must_be_that_of_the_package(tmp_path: Path) -> None:
    native = pytest.importorskip("narrows._native").__file__
    program = "from narrows import extension; extension.release = lambda: '9.9.9'; import narrows._native"
    done = _python(tmp_path, native, "-c", program)
    found = pytest.importorskip("narrows._native").version
    expected = f"NarrowsError: NARROWS_NATIVE: {native}: found version {found}, expected 9.9.9"
    assert done.stderr.splitlines()[-1].endswith(expected)


def test_a_relative_path_is_that_of_the_first_process(tmp_path: Path) -> None:
    program = "import os, narrows; print(os.environ['NARROWS_NATIVE'])"
    assert _python(tmp_path, "lib.so", "-c", program).stdout == f"{tmp_path / 'lib.so'}\n"


def test_the_digest_of_the_file_identifies_results(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(b"module")
    program = "from narrows import extension; print(extension.digest())"
    expected = hashlib.sha256(b"module").hexdigest()
    assert _python(tmp_path, "lib.so", "-c", program).stdout == f"{expected}\n"
    assert _python(tmp_path, "", "-c", program).stdout == "None\n"


def test_without_the_simulator_nothing_is_loaded(tmp_path: Path) -> None:
    done = _python(tmp_path, "nothing.so", "-m", "narrows", "--version")
    assert (done.returncode, done.stderr) == (0, "")
