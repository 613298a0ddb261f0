"""Loads congestion controllers with `narrows-agent cc`, for runs and for `narrows cc`."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from narrows import locks
from narrows.backends.kernel import agents, namespaces
from narrows.backends.kernel.shell import KernelError
from narrows.congestion import EBPF, chosen
from narrows.errors import one_line
from narrows.plan import Plan

PREFIX = "narrows_"
"""Prefix of the controllers' names in the kernel (crates/narrows-agent/src/cc/place.rs)."""
NAMES = {kernel if name == "bbr" else name: kernel for name, kernel in EBPF.items()}
"""The name in the kernel for each name in scenarios. In scenarios, `bbr` means the kernel's own BBR."""
_FOLDER = namespaces.FILES / "cc"
"""Folder with a lock file for each controller that a run has used."""
_RUNS = b"loaded by a run"
_PATIENCE_SECONDS = 5.0
"""Time to wait for the end of a run's sockets, which disappear shortly after its namespaces."""
_POLL_SECONDS = 0.1


def needed(plan: Plan) -> list[str]:
    """Kernel names of the controllers that a plan's flows use and that the agent must load."""
    given = {chosen(flow) for flow in plan["flows"]}
    return [NAMES[name] for name in NAMES if name in given]


def call(*arguments: str, done_so_far: Callable[[str], object] = lambda _: None) -> str:
    """Run `narrows-agent cc` and return its output.

    Args:
        arguments: the command's arguments.
        done_so_far: called with the output of a command that fails. The output names the controllers that the
            command loaded before it failed.

    Raises:
        KernelError: if the command fails (the message is the last line of its standard error), or if the
            agent is not installed.
    """
    done = subprocess.run(
        [str(agents.program("which loads congestion controllers")), "cc", *arguments],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if done.returncode:
        done_so_far(done.stdout)
        complaint = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise KernelError(one_line(complaint.removeprefix(f"{agents.NAME}: ")))
    return done.stdout


def loaded() -> dict[str, dict[str, Any]]:
    """The agent's report on each loaded controller, by the controller's name in the kernel."""
    rows: list[dict[str, Any]] = json.loads(call("list", "--json"))
    return {row["registered"]: row for row in rows if row["loaded"]}


def state(names: list[str]) -> list[dict[str, Any]]:
    """The maps with the state of connections, for the specification of a run.

    Args:
        names: the controllers' names in the kernel. They must be loaded.
    """
    if not names:
        return []
    rows = loaded()
    return [{"name": name, "state": rows[name].get("state", [])} for name in names]


@contextmanager
def at_hand(names: list[str]) -> Iterator[list[str]]:
    """Keep controllers loaded while the context lasts. Yield notes about controllers that were loaded before.

    Concurrent runs share a loaded controller. A controller is unloaded at the end of the last run that uses
    it.

    Args:
        names: the controllers' names in the kernel.

    Raises:
        KernelError: if a controller cannot be loaded.
    """
    if not names:
        yield []
        return
    _FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _FOLDER / "lock"  # only one run at a time may load or unload controllers
    shares: list[_Share] = []
    try:
        with locks.held(lock):
            before = loaded()
            for name in names:
                shares.append(_Share(name, name in before))
        yield [_note(before[share.name]) for share in shares if share.found]
    finally:
        with locks.held(lock):
            for share in shares:
                share.give_up()


class _Share:
    """A run's use of a loaded controller. The run holds a shared lock on the controller's file."""

    def __init__(self, name: str, there: bool) -> None:
        self.name = name
        if not there:
            call("load", name)
        self._file = os.open(_FOLDER / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # If the controller is loaded and no other run holds its lock, it was loaded by hand or by a run that
        # was killed. Leave it loaded.
        self.found = there and (locks.take(self._file) or not self._is_runs())
        fcntl.flock(self._file, fcntl.LOCK_SH)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, b"" if self.found else _RUNS, 0)

    def give_up(self) -> None:
        """Release the lock. If a run loaded the controller and no other run uses it, unload it."""
        if locks.take(self._file) and self._is_runs():
            _unload(self.name)
            os.ftruncate(self._file, 0)
        os.close(self._file)

    def _is_runs(self) -> bool:
        return os.pread(self._file, len(_RUNS), 0) == _RUNS


def _note(row: dict[str, Any]) -> str:
    how = f" with {', '.join(row['options'])}" if row["options"] else ""
    return f"{row['registered']} was loaded before the run{how}"


def _unload(name: str) -> None:
    """Unload a controller. The controller stays loaded if sockets of other programs use it."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            call("unload", name)
            return
        except KernelError:
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_SECONDS)
