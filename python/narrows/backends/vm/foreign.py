"""The files of this machine that the programs of a plan need in a guest."""

from __future__ import annotations

import functools
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
_DEEPEST = 4
"""Maximum length of a chain in which each script is interpreted by the next script, as in the kernel
(fs/exec.c, exec_binprm)."""
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
            words[role] = [*first, *command[1:]]
            files |= needs
        named = {file for name in transport.get("files", []) for file in _below(Path(name))}
        files |= named | closure.libraries(file for file in named if _starts(file, _ELF))
        flows[number] = {
            **flows[number],
            "transport": {**transport, "server": words["server"], "client": words["client"]},
        }
    if (size := sum(file.stat().st_size for file in files if file.is_file())) > _MOST_BYTES:
        raise ScenarioError(
            f"found programs with {size >> 20} MB of files, expected at most {_MOST_BYTES >> 20} MB",
            "flows",
        )
    return Foreign({**plan, "flows": flows}, frozenset(files))


def _command(word: str, transport: ProgramTransportPlan, key: str) -> tuple[list[str], set[Path]]:
    """The first words of a command in the guest, and the files that the program needs."""
    place = program.place(word, transport)
    if place is None:
        raise ScenarioError(f"found {found(word)}, expected a program that is installed", key)
    words, needs = _program(place.absolute(), key)
    if "/" in word and not Path(word).is_absolute():
        words[-1] = word  # a file of the plan, which is also in the guest's working folder
    return words, needs


def _program(place: Path, key: str, depth: int = 0) -> tuple[list[str], set[Path]]:
    """The words that start a program in the guest, and the files that the program needs.

    The last word is the path of the program. A script is started by its interpreter. In the guest, the
    interpreter may not be at the path in the script's first line.
    """
    if _PYTHON.fullmatch(place.name):
        return _python(place, key)
    if _starts(place, _ELF):
        return [str(place)], {place, *closure.libraries([place])}
    if not _starts(place, b"#!") or depth == _DEEPEST:
        raise ScenarioError(
            f"found {found(str(place))}, expected a program for this processor, or a script whose first line "
            "names its interpreter",
            key,
        )
    name, *options = _interpreter(place, key)
    path = shutil.which(name)
    if path is None:
        raise ScenarioError(f"found no {name}, the interpreter of {place}", key)
    words, needs = _program(Path(path).absolute(), key, depth + 1)
    return [*words, *options, str(place)], {place, *needs}


def _interpreter(script: Path, key: str) -> list[str]:
    """The interpreter and options in a script's first line, e.g. `python3` in `#!/usr/bin/env python3`."""
    with script.open("rb") as file:
        words = file.readline().removeprefix(b"#!").decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    if not words:
        raise ScenarioError(f"found no interpreter in the first line of {script}, expected one", key)
    return words


@functools.cache
def _facts_of_python(path: Path) -> list[Path] | None:
    done = subprocess.run([path, "-c", _PYTHON_FACTS], capture_output=True, text=True, check=False)
    return None if done.returncode else [Path(fact) for fact in json.loads(done.stdout)]


def _python(path: Path, key: str) -> tuple[list[str], set[Path]]:
    """A Python interpreter and its standard library.

    If `path` is a shim, such as pyenv's, the result has the interpreter that the shim starts.
    """
    facts = _facts_of_python(path)
    if facts is None:
        raise ScenarioError(f"found {path}, which does not run, expected a Python interpreter", key)
    executable, *libraries = facts
    tree = {file for folder in set(libraries) if folder.is_dir() for file in closure.tree(folder)}
    shared = [executable, *(file for file in tree if file.suffix == ".so")]
    settings = executable.parent.parent / "pyvenv.cfg"
    files = {executable, *tree, *closure.libraries(shared)}
    return [str(executable)], files | ({settings} if settings.is_file() else set())


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
