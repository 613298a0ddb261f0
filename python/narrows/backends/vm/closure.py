"""Finds the files of this machine that the guest needs: programs, libraries, Python and this package."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from narrows.backends.kernel import agents
from narrows.backends.kernel.ovs import SCHEMAS

NEEDED = ("ip", "tc", "bridge", "ethtool", "nsenter", "setpriv", "chrt")
"""Programs that every run of the kernel backend needs."""
USED = (
    "iperf3",
    "ping",
    "ovs-vswitchd",
    "ovsdb-server",
    "ovs-vsctl",
    "ovs-ofctl",
    "ovs-appctl",
    "ovsdb-tool",
)
"""Programs that some scenarios need."""

START = Path(__file__).with_name("start.py")
"""The script that the guest's Python runs."""
OURS = START.parents[2]
"""The folder of the package `narrows`."""
_PACKAGES = "site-packages"
_LEFT_OUT = {"idlelib", "test", "tests", "tkinter", "lib2to3", "ensurepip", _PACKAGES, "turtledemo"}
_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x")


def programs() -> list[Path]:
    """The paths of the needed programs that this machine has."""
    found = [Path(path) for name in (*NEEDED, *USED) if (path := shutil.which(name))]
    ours = agent()
    return [*found, ours] if ours else found


def agent() -> Path | None:
    """The path of narrows-agent, if it is installed.

    On Linux 6.1, guests use the agent only to load algorithms. On Linux 6.10 or later, they also run BRF's
    agents.
    """
    found = agents.find()
    return found.resolve() if found else None


def data() -> list[Path]:
    """The data files that the programs read."""
    return [path for path in SCHEMAS if path.exists()]


def libraries(files: Iterable[Path]) -> set[Path]:
    """The shared libraries of these files, according to ldd(1)."""
    words = ["ldd", *map(str, files)]
    if len(words) == 1:
        return set()
    # For a static program, ldd prints no library and fails.
    output = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return {Path(match[1]) for line in output.splitlines() if (match := _LIBRARY.match(line))}


def python() -> set[Path]:
    """The interpreter, its standard library, and all modules that the worker imports."""
    words = [sys.executable, str(START), "list"]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    modules = {name: Path(file) for name, file in json.loads(output).items()}
    stdlib = Path(sysconfig.get_path("stdlib"))
    files = {Path(sys.executable), Path(sys.prefix, "pyvenv.cfg"), START, *tree(stdlib)}
    for name, file in modules.items():
        if name.startswith("narrows."):
            files |= {file, *_compiled(file), *_packages(file.parent)}
        elif "." not in name and not (file.is_relative_to(stdlib) and _PACKAGES not in file.parts):
            files |= set(tree(file.parent)) if file.stem == "__init__" else {file}
            beside = file.parent.with_name(f"{name}.libs")  # the folder of a wheel's own shared libraries
            files |= set(tree(beside)) if beside.is_dir() else set()
    shared = [Path(sys.executable), *(file for file in modules.values() if file.suffix == ".so")]
    return {path for path in files if path.is_file()} | libraries(shared)


def _compiled(file: Path) -> list[Path]:
    return [Path(importlib.util.cache_from_source(str(file)))] if file.suffix == ".py" else []


def _packages(folder: Path) -> Iterator[Path]:
    """The files `__init__.py` of a folder in the package, and of its parent folders in the package."""
    while folder != OURS and folder.is_relative_to(OURS):
        yield folder / "__init__.py"
        folder = folder.parent


def tree(folder: Path) -> Iterator[Path]:
    """The files of a Python library, without tests and other parts that no program needs."""
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            if entry.name not in _LEFT_OUT:
                yield from tree(entry)
        elif not entry.name.endswith((".a", ".h", ".pxd")):
            yield entry
