"""The files of this machine that the programs of a plan need in a guest."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from narrows.backends.kernel import program
from narrows.backends.vm import closure
from narrows.errors import ScenarioError, found
from narrows.plan import Plan, ProgramTransportPlan

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_PYTHON_FACTS = (
    "import json, sys, sysconfig; "
    "print(json.dumps([sys.executable, sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib')]))"
)
_ELF = b"\x7fELF"
_MOST_BYTES = 512 << 20
"""Maximum size of a plan's additional files, which the guest keeps in its memory of 2 GB."""


class Foreign(NamedTuple):
    """The programs of a plan, prepared for a guest."""

    plan: Plan
    """The plan with the absolute path of each program."""
    files: frozenset[Path]
    """The files that the guest needs in addition to the files that every guest has."""


def prepared(plan: Plan) -> Foreign:
    """Find the programs of a plan, their interpreters and libraries, and the files that the plan names.

    A script's interpreter is found by its first line. Python's standard library is included. Packages and
    programs that a script uses are not found: the plan has to name them as files.

    Raises:
        ScenarioError: if a program cannot run in a guest.
    """
    flows = list(plan["flows"])
    files: set[Path] = set()
    for number, transport in program.transports(plan).items():
        key = f"flows.{number}.program"
        words = {}
        for role, command in (("server", transport["server"]), ("client", transport["client"])):
            first, needs = _command(command[0], transport, f"{key}.{role}")
            words[role] = [first, *command[1:]]
            files |= needs
        named = {file for name in transport.get("files", []) for file in _below(Path(name))}
        files |= named | closure.libraries(file for file in named if _starts(file, _ELF))
        flows[number] = {
            **flows[number],
            "transport": {**transport, "server": words["server"], "client": words["client"]},
        }
    own = {file for file in files if file.is_file()}
    if (size := sum(file.stat().st_size for file in own)) > _MOST_BYTES:
        raise ScenarioError(
            f"found programs with {size >> 20} MB of files, expected at most {_MOST_BYTES >> 20} MB",
            "flows",
        )
    return Foreign({**plan, "flows": flows}, frozenset(files))


def _command(word: str, transport: ProgramTransportPlan, key: str) -> tuple[str, set[Path]]:
    """The first word of a command in the guest, and the files that the program needs."""
    place = program.place(word, transport)
    if place is not None and "/" in word and not Path(word).is_absolute():
        # A program among the files: its path is relative to the working folder there, too.
        return word, _program(str(place), key)[1]
    path, needs = _program(word, key)
    return str(path), needs


def _program(name: str, key: str) -> tuple[Path, set[Path]]:
    """The path under which a program runs in the guest, and the files that it needs."""
    path = shutil.which(name)
    if path is None:
        raise ScenarioError(f"found {found(name)}, expected a program that is installed", key)
    if _PYTHON.fullmatch(Path(path).name):
        return _python(Path(path), key)
    place = Path(path).absolute()
    if _starts(place, b"#!"):
        interpreter = _interpreter(place, key)
        _, needs = _program(interpreter, key)
        return place, {place, *needs}
    if _starts(place, _ELF):
        return place, {place, *closure.libraries([place])}
    raise ScenarioError(
        f"found {found(name)}, expected a program for this processor, or a script whose first line names its "
        "interpreter",
        key,
    )


def _interpreter(script: Path, key: str) -> str:
    """The interpreter that a script's first line names (`#!/usr/bin/env python3` names python3)."""
    with script.open("rb") as file:
        words = file.readline().removeprefix(b"#!").decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    if not words:
        raise ScenarioError(f"found no interpreter in the first line of {script}, expected one", key)
    return words[0]


def _python(path: Path, key: str) -> tuple[Path, set[Path]]:
    """A Python interpreter and its standard library.

    If `path` is a shim, such as pyenv's, the result has the interpreter itself instead.
    """
    done = subprocess.run([path, "-c", _PYTHON_FACTS], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ScenarioError(f"found {path}, which does not run, expected a Python interpreter", key)
    executable, *libraries = (Path(fact) for fact in json.loads(done.stdout))
    tree = {file for folder in set(libraries) if folder.is_dir() for file in closure.tree(folder)}
    shared = [executable, *(file for file in tree if file.suffix == ".so")]
    settings = executable.parent.parent / "pyvenv.cfg"
    files = {executable, *tree, *closure.libraries(shared)}
    return executable, files | ({settings} if settings.is_file() else set())


def _below(path: Path) -> Iterator[Path]:
    """A file, or all files in a folder."""
    if path.is_dir():
        yield path
        for entry in sorted(path.iterdir()):
            yield from _below(entry)
    else:
        yield path


def _starts(file: Path, magic: bytes) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(magic)) == magic
