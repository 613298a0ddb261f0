"""Builds the engine of a git revision, and runs scenarios with it.

A revision is exported to `target/diff/COMMIT` in the clone, with the native module that cargo builds from it.
A commit never changes, so its module is built only once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import NarrowsError, one_line
from narrows.locks import held
from narrows.results.results import is_finished

FOLDER = Path("target/diff")
"""Folder of the engines in a clone, relative to its root."""
CRATE = "narrows-py"
MODULE = "_native.abi3.so"
"""Name of the native module's file in the Python package."""
_BUILT = "lib_native.so"
"""Name of the native module's file in cargo's output."""
_FAILED = 1
"""Exit code of `narrows run` if an expectation is not met. Python has the same exit code after an
exception."""


@dataclass(frozen=True)
class Options:
    """Options of the runs."""

    override: tuple[str, ...] = ()
    seed: int | None = None
    seeds: int | None = None
    jobs: int | None = None

    @property
    def words(self) -> list[str]:
        """The options of `narrows run`."""
        found: list[str] = []
        for name, value in (("--seed", self.seed), ("--seeds", self.seeds), ("--jobs", self.jobs)):
            found += [name, str(value)] if value is not None else []
        for text in self.override:
            found += ["--set", text]
        return found


@dataclass(frozen=True)
class Engine:
    """The Python package of a revision, with its native module."""

    name: str
    """Name of the revision in messages."""
    package: Path
    """The folder to import `narrows` from."""

    def run(self, scenario: Path, out: Path, options: Options) -> None:
        """Run a scenario with all its variations and seeds, in a process of its own.

        Raises:
            NarrowsError: if the engine cannot run the scenario. The text contains the engine's message.
        """
        words = ["run", str(scenario), "--out", str(out), *options.words]
        # With -P, Python does not import from the current folder, which may hold another version.
        done = subprocess.run(
            [sys.executable, "-P", "-m", "narrows", *words],
            env={**os.environ, "PYTHONPATH": str(self.package)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        has_results = done.returncode == _FAILED and is_finished(out)
        if done.returncode and not has_results:
            raise NarrowsError(f"{self.name}: {_last_line(done.stderr)}")


def find_clone(folder: Path) -> Path:
    """The root of the clone of Narrows that contains a folder.

    Raises:
        NarrowsError: if there is no such clone, or if git or cargo is missing.
    """
    for program in ("git", "cargo"):
        if shutil.which(program) is None:
            raise NarrowsError(f"--scenario: found no {program}, expected it in PATH to build engines")
    found = _git(folder, "rev-parse", "--show-toplevel")
    root = Path(found.stdout.strip())
    if found.returncode or not (root / "crates" / CRATE / "Cargo.toml").is_file():
        raise NarrowsError(
            f"--scenario: found no clone of Narrows in {folder}, expected one to build engines"
        )
    return root


def find_commit(clone: Path, revision: str) -> str:
    """The commit of a revision.

    Raises:
        NarrowsError: if there is no such commit, or if it has no engine.
    """
    found = _git(clone, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found.returncode:
        raise NarrowsError(f"found {revision!r}, expected a git revision of {clone}")
    commit = found.stdout.strip()
    if _git(clone, "cat-file", "-e", f"{commit}:crates/{CRATE}/Cargo.toml").returncode:
        raise NarrowsError(f"{revision}: found no crates/{CRATE}, expected a revision of Narrows with it")
    return commit


def tree(clone: Path, commit: str, folder: str) -> str:
    """The digest of a folder's files in a commit.

    Raises:
        NarrowsError: if the commit has no such folder.
    """
    found = _git(clone, "rev-parse", "--verify", "--quiet", f"{commit}:{folder}")
    if found.returncode:
        raise NarrowsError(f"{commit[:8]}: found no folder {folder}")
    return found.stdout.strip()


def build(clone: Path, commit: str, say: Callable[[str], None]) -> Engine:
    """The engine of a commit, which is built unless an earlier call has built it.

    Raises:
        NarrowsError: if cargo cannot build it.
    """
    folder = clone / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / commit / "python"
    module = package / "narrows" / MODULE
    # Only one build at a time, because cargo writes the modules of all commits to the same file.
    with held(folder / "lock"):
        if not module.is_file():
            say(f"building {commit[:8]}, which takes minutes")
            shutil.rmtree(folder / commit, ignore_errors=True)
            export(clone, commit, folder / commit)
            compile_module(folder / commit, folder / "cargo", module)
    return Engine(commit[:8], package)


def export(clone: Path, commit: str, target: Path) -> None:
    """Write the files of a commit to a folder."""
    target.mkdir(parents=True)
    with subprocess.Popen(["git", "-C", str(clone), "archive", commit], stdout=subprocess.PIPE) as archive:
        # Give all files the current time (-m), because cargo does not recompile files that are older than its
        # last build.
        unpacked = subprocess.run(["tar", "-x", "-m", "-C", str(target)], stdin=archive.stdout, check=False)
    if archive.returncode or unpacked.returncode:
        raise NarrowsError(f"{commit[:8]}: git archive cannot export this revision to {target}")


def compile_module(source: Path, target: Path, module: Path) -> None:
    """Build the native module. The file `module` appears only when it is complete."""
    # Without link-time optimisation, the results are the same and the build takes a third of the time.
    profile = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
    done = subprocess.run(
        ["cargo", "build", "--release", "--locked", "--quiet", "-p", CRATE],
        cwd=source,
        env={**os.environ, **profile, "CARGO_TARGET_DIR": str(target)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NarrowsError(f"{source.name[:8]}: cargo cannot build {CRATE}: {_error_of(done.stderr)}")
    aside = module.with_name(f".{module.name}.part")
    shutil.copyfile(target / "release" / _BUILT, aside)
    aside.replace(module)


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)


def _error_of(text: str) -> str:
    """The first error of the compiler."""
    lines = [line for line in text.splitlines() if line.startswith("error")]
    return one_line(lines[0]) if lines else _last_line(text)


def _last_line(text: str) -> str:
    lines: Sequence[str] = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "found no message"
