"""Parameters of the kernel's congestion control modules, which a run sets and restores.

The kernel has one value of a parameter for all sockets of the machine. A parameter must therefore have the
same value in all flows of an algorithm. A run that sets a parameter waits until no other run uses the
algorithm.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from narrows import congestion, locks
from narrows.backends.kernel import namespaces
from narrows.backends.kernel.shell import KernelError
from narrows.congestion import chosen, parameters
from narrows.errors import ScenarioError
from narrows.parameters import Parameter, Value
from narrows.plan import Plan

SYSFS = Path("/sys/module")
_FOLDER = namespaces.FILES / "modules"
"""Folder with a lock file for each module. While parameters are set by a run, the folder also contains the
values that they had before."""

OF_THE_AGENT = {("brf", "designate")}
"""Parameters that are options of the agent, not of a module (`agents`)."""

Settings = dict[str, dict[str, int]]
"""Values of module parameters, by module and parameter."""


def settings(plan: Plan) -> Settings:
    """Parameters that a plan's flows set, converted to the integers that the kernel's modules accept.

    Raises:
        ScenarioError: for a parameter that no module has, or if flows of one algorithm differ in a parameter.
    """
    found: Settings = {}
    firsts: dict[str, int] = {}
    for number, flow in enumerate(plan["flows"]):
        name, key = chosen(flow), f"flows.{number}.cc"
        wanted = dict(
            _setting(name, key, given, value)
            for given, value in parameters(flow).items()
            if (name, given) not in OF_THE_AGENT
        )
        first = firsts.setdefault(name, number)
        if first == number and wanted:
            found[name] = wanted
        elif wanted != found.get(name, {}):
            raise ScenarioError(
                f"found other parameters than in flows.{first}, expected the same: the kernel has one value "
                f"for all flows of {name}",
                key,
            )
    return {_module(name): values for name, values in found.items()}


def _module(name: str) -> str:
    """The module of an algorithm (empty: the algorithm is part of TCP itself, or is not in Linux)."""
    row = congestion.catalogue().get(name)
    return (row.linux.module or "") if row is not None and row.linux is not None else ""


def _setting(name: str, key: str, given: str, value: Value) -> tuple[str, int]:
    """Convert a parameter of the catalogue to the module's parameter and its value."""
    row = congestion.catalogue().get(name)
    usable = {p.name: p for p in row.parameters.values() if p.module} if row is not None and row.linux else {}
    if given not in usable:
        expected = f"one of {', '.join(usable)}" if usable else "none"
        raise ScenarioError(
            f"found a parameter of {name} that the kernel cannot change, expected {expected}",
            f"{key}.{given}",
        )
    return _number(usable[given], value, f"{key}.{given}")


def _number(parameter: Parameter, value: Value, key: str) -> tuple[str, int]:
    """The name of the module's parameter, and the integer that the module uses for a value."""
    module = parameter.module
    assert module is not None
    if module.words is not None:
        if value not in module.words:
            raise ScenarioError(
                f"found {value!r}, expected {' or '.join(map(repr, module.words))}: the kernel has no other",
                key,
            )
        return module.parameter, module.words[str(value)]
    return module.parameter, round(float(value) * module.factor)


def check(wanted: Settings) -> None:
    """Check that this kernel has the parameters.

    Raises:
        KernelError: if the kernel lacks a parameter, or if a parameter cannot be written.
    """
    for module, values in wanted.items():
        for parameter in values:
            path = _path(module, parameter)
            if not os.access(path, os.W_OK):
                what = "a read-only file" if path.exists() else "nothing"
                raise KernelError(f"{path}: found {what}, expected a parameter that can be set")


def _path(module: str, parameter: str) -> Path:
    return SYSFS / module / "parameters" / parameter


@contextmanager
def applied(plan: Plan, wanted: Settings) -> Iterator[None]:
    """Set parameters until the context ends. Then restore the earlier values.

    Runs that use an algorithm without setting parameters share the algorithm's lock. While they run, no other
    run can change the algorithm's parameters.

    Args:
        plan: the plan. The algorithms of its flows are locked.
        wanted: the values to set.

    Raises:
        KernelError: if a parameter cannot be written.
    """
    with ExitStack() as stack:
        for module in sorted({_module(chosen(flow)) for flow in plan["flows"]} - {""}):
            stack.enter_context(_using(module, wanted.get(module, {})))
        yield


@contextmanager
def in_use(algorithm: str) -> Iterator[None]:
    """Hold a shared lock on an algorithm until the context ends.

    While the context lasts, no run can change the algorithm's parameters.
    """
    module = _module(algorithm)
    with ExitStack() as stack:
        if module:
            stack.enter_context(_using(module, {}))
        yield


def load(algorithms: Iterable[str]) -> None:
    """Load the modules of these algorithms. Algorithms whose module this machine lacks are skipped."""
    wanted = sorted({_module(name) for name in algorithms} - {""})
    for module in wanted:
        with suppress(FileNotFoundError):
            subprocess.run(["modprobe", "-q", module], check=False, capture_output=True)


@contextmanager
def _using(module: str, values: dict[str, int]) -> Iterator[None]:
    """Hold a module's lock, and set its parameters to these values, while the context lasts."""
    _FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    saved = _FOLDER / f"{module}.json"
    file = os.open(_FOLDER / f"{module}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if locks.take(file):
            _restore(module, saved)  # values left by a killed run
        fcntl.flock(file, fcntl.LOCK_EX if values else fcntl.LOCK_SH)
        if not values:
            yield
            return
        try:
            before = {name: _path(module, name).read_text(encoding="ascii").strip() for name in values}
            saved.write_text(json.dumps(before), encoding="utf-8")
            _write(module, {name: str(value) for name, value in values.items()})
            yield
        finally:
            _restore(module, saved)
    finally:
        os.close(file)


def _restore(module: str, saved: Path) -> None:
    """If there are saved values, set the module's parameters to these values again."""
    if saved.exists():
        before = json.loads(saved.read_text(encoding="utf-8"))
        # If the module was unloaded after the values were saved, its files are missing, and the values are
        # lost.
        _write(module, {name: value for name, value in before.items() if _path(module, name).exists()})
        saved.unlink()


def _write(module: str, values: dict[str, str]) -> None:
    for name, value in values.items():
        try:
            _path(module, name).write_text(value, encoding="ascii")
        except OSError as error:
            raise KernelError(f"{_path(module, name)}: cannot be set to {value}: {error.strerror}") from None
