"""Congestion controls that `narrows-agent cc` loads: for a run that needs them, and for `narrows cc`."""

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
from narrows.errors import one_line
from narrows.scenario.parts import Plan

PREFIX = "narrows_"
"""How their names in the kernel begin (crates/narrows-agent/src/cc/place.rs)."""
NAMES = {
    "bbr-a": "narrows_bbr_a",
    "bbr-b": "narrows_bbr_b",
    "bbr-c": "narrows_bbr_c",
    "narrows_bbr": "narrows_bbr",
}
"""What a scenario calls them, and what the kernel does: its own `bbr` keeps that name."""
_FOLDER = namespaces.FILES / "cc"
"""A file for each that a run has loaded or found."""
_RUNS = b"loaded by a run"
_PATIENCE_SECONDS = 5.0
"""A run's sockets are gone a moment after its namespaces."""
_POLL_SECONDS = 0.1


def registered(name: str) -> str:
    """The kernel's name of a scenario's congestion controller."""
    return NAMES.get(name, name)


def needed(plan: Plan) -> list[str]:
    """Kernel names of those that a plan's flows have and that an agent has to load."""
    given = {flow["transport"].get("cc") for flow in plan["flows"]}
    return [NAMES[name] for name in NAMES if name in given]


def call(*arguments: str, done_so_far: Callable[[str], object] = lambda _: None) -> str:
    """Run `narrows-agent cc`; what it prints.

    Args:
        arguments: its.
        done_so_far: told what it printed before it failed, e.g. which of several were loaded.

    Raises:
        KernelError: with its last words, or if there is no agent.
    """
    done = subprocess.run(
        [str(agents.program("which loads congestion controls")), "cc", *arguments],
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
    """What the agent says of each that is loaded, by the kernel's name."""
    rows: list[dict[str, Any]] = json.loads(call("list", "--json"))
    return {row["registered"]: row for row in rows if row["loaded"]}


@contextmanager
def at_hand(names: list[str]) -> Iterator[list[str]]:
    """Load what is not loaded while the context lasts; yields notes about what was there already.

    Runs of a machine share what they load: the last that uses it unloads it.

    Args:
        names: the kernel's names.

    Raises:
        KernelError: if one cannot be loaded.
    """
    if not names:
        yield []
        return
    _FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    door = _FOLDER / "door"  # one run at a time loads and unloads
    shares: list[_Share] = []
    try:
        with locks.held(door):
            before = loaded()
            for name in names:
                shares.append(_Share(name, name in before))
        yield [_note(before[share.name]) for share in shares if share.found]
    finally:
        with locks.held(door):
            for share in shares:
                share.give_up()


class _Share:
    """A run's part in a congestion control that runs loaded: a lock that all of them hold together."""

    def __init__(self, name: str, there: bool) -> None:
        self.name = name
        if not there:
            call("load", name)
        self._file = os.open(_FOLDER / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # Without other runs it was loaded by hand, or by a run that was killed: left as it is.
        self.found = there and (locks.take(self._file) or not self._is_runs())
        fcntl.flock(self._file, fcntl.LOCK_SH)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, b"" if self.found else _RUNS, 0)

    def give_up(self) -> None:
        """Unload what runs loaded, if this is the last of them."""
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
    """Unload; somebody else's sockets may have it, and then it stays."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            call("unload", name)
            return
        except KernelError:
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_SECONDS)
