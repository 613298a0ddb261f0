"""Which files of this machine the guest needs: programs with their libraries, and Python with ours."""

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
"""Programs without which the kernel backend runs nothing."""
USED = ("iperf3", "ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-tool")
"""Programs for some scenarios."""

START = Path(__file__).with_name("start.py")
"""What the guest's Python starts."""
OURS = START.parents[2]
"""The folder of our package."""
_PACKAGES = "site-packages"
_LEFT_OUT = {"idlelib", "test", "tests", "tkinter", "lib2to3", "ensurepip", _PACKAGES, "turtledemo"}
_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x")


def programs() -> list[Path]:
    """Programs that are there."""
    found = [Path(path) for name in (*NEEDED, *USED) if (path := shutil.which(name))]
    ours = agent()
    return [*found, ours] if ours else found


def agent() -> Path | None:
    """narrows-agent, if it is there: for what `narrows cc` loads. The rest of it asks for Linux 6.12."""
    found = agents.find()
    return found.resolve() if found else None


def data() -> list[Path]:
    """Files that programs read."""
    return [path for path in SCHEMAS if path.exists()]


def libraries(files: Iterable[Path]) -> set[Path]:
    """Shared libraries of programs and libraries, as ldd(1) finds them."""
    found: set[Path] = set()
    for file in files:
        told = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
        found |= {Path(match[1]) for line in told.splitlines() if (match := _LIBRARY.match(line))}
    return found


def python() -> set[Path]:
    """The interpreter with its library, and what the worker imports: of others whole packages."""
    words = [sys.executable, str(START), "list"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    modules = {name: Path(file) for name, file in json.loads(told).items()}
    stdlib = Path(sysconfig.get_path("stdlib"))
    files = {Path(sys.executable), Path(sys.prefix, "pyvenv.cfg"), START, *_tree(stdlib)}
    for name, file in modules.items():
        if name.startswith("narrows."):
            files |= {file, *_compiled(file), *_packages(file.parent)}
        elif "." not in name and not (file.is_relative_to(stdlib) and _PACKAGES not in file.parts):
            files |= set(_tree(file.parent)) if file.stem == "__init__" else {file}
            beside = file.parent.with_name(f"{name}.libs")  # where wheels keep libraries of their own
            files |= set(_tree(beside)) if beside.is_dir() else set()
    shared = [Path(sys.executable), *(file for file in modules.values() if file.suffix == ".so")]
    return {path for path in files if path.is_file()} | libraries(shared)


def _compiled(file: Path) -> list[Path]:
    return [Path(importlib.util.cache_from_source(str(file)))] if file.suffix == ".py" else []


def _packages(folder: Path) -> Iterator[Path]:
    """The `__init__.py` of a folder of ours and of those above it."""
    while folder != OURS and folder.is_relative_to(OURS):
        yield folder / "__init__.py"
        folder = folder.parent


def _tree(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            if entry.name not in _LEFT_OUT:
                yield from _tree(entry)
        elif not entry.name.endswith((".a", ".h", ".pxd")):
            yield entry
