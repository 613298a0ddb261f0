"""Which files of this machine the guest needs: programs with their libraries, and Python with ours."""

from __future__ import annotations

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

NEEDED = ("ip", "tc", "bridge", "ethtool", "nsenter", "chrt")
"""Programs without which the kernel backend runs nothing."""
USED = ("iperf3", "ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-tool")
"""Programs for some scenarios."""

OURS = Path(__file__).resolve().parents[2]
"""The folder of our package."""
WORKER = "narrows.backends.vm.guest"
_LEFT_OUT = {"idlelib", "test", "tests", "tkinter", "lib2to3", "ensurepip", "site-packages", "turtledemo"}
_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x")
_MODULES = """
import importlib, json, sys, types
bare = sys.modules["narrows"] = types.ModuleType("narrows")
bare.__path__ = [sys.argv[2]]
importlib.import_module(sys.argv[1])
files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
json.dump({name: file for name, file in files.items() if file}, sys.stdout)
"""


def programs() -> list[Path]:
    """Programs that are there, narrows-agent included."""
    found = [Path(path) for name in (*NEEDED, *USED) if (path := shutil.which(name))]
    agent = agents.find()
    return [*found, agent] if agent else found


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
    """The interpreter, its library, and the packages that the worker imports."""
    told = subprocess.run(
        [sys.executable, "-c", _MODULES, WORKER, str(OURS)], capture_output=True, text=True, check=True
    ).stdout
    modules: dict[str, str] = json.loads(told)
    stdlib = Path(sysconfig.get_path("stdlib"))
    files = {Path(sys.executable), *_tree(stdlib)}
    venv = Path(sys.prefix, "pyvenv.cfg")
    if venv.exists():
        files.add(venv)
    loaded = [Path(file) for file in modules.values()]
    outside = [path for path in loaded if not path.is_relative_to(stdlib) or "site-packages" in path.parts]
    files |= set(_tree(OURS))
    tops = {name.partition(".")[0] for name, file in modules.items() if Path(file) in set(outside)} - {
        "narrows"
    }
    for top in tops:
        file = Path(modules.get(top, ""))
        files |= set(_tree(file.parent)) if file.name.startswith("__init__.") else {file}
        beside = file.parent.parent / f"{top}.libs"  # where wheels keep libraries of their own
        files |= set(_tree(beside)) if beside.is_dir() else set()
    shared = [path for path in [*loaded, Path(sys.executable)] if path.suffix == ".so" or not path.suffix]
    return {path for path in files if path.is_file()} | libraries(shared)


def _tree(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            if entry.name not in _LEFT_OUT:
                yield from _tree(entry)
        elif not entry.name.endswith((".a", ".h", ".pxd")):
            yield entry
