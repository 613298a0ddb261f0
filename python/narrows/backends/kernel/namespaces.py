"""Names the namespaces of runs. Removes a run's namespaces with all processes in them.

The name of a namespace is ``nrw-<pid>-<run>-<node>``. If the process <pid> does not exist, the namespace was
left by a run that was killed (SIGKILL) before it could clean up. The next run removes the namespace. Devices
are removed with their namespaces. Files of a run's programs are in a folder below /run/narrows. The folder's
name is the part ``nrw-<pid>-<run>-`` of the namespaces' names. If the run was killed, the next run also
removes the folder.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from narrows.signals import undisturbed

RUN = Path("/run/netns")
"""Folder in which ip(8) keeps named namespaces."""
FILES = Path("/run/narrows")
"""Parent of the runs' folders. Each folder contains sockets, logs and configuration files of one run's
programs."""
_NAME = re.compile(r"nrw-(?P<pid>\d+)-(?P<run>\d+)-\w*")
_numbers = itertools.count()
_PATIENCE_SECONDS = 2.0


def new_prefix() -> str:
    """Return a prefix that no other run has."""
    return f"nrw-{os.getpid()}-{next(_numbers)}-"


def path(name: str) -> str:
    """The path of a namespace's file."""
    return str(RUN / name)


def folder(prefix: str) -> Path:
    """The run's folder, which is created if necessary."""
    made = FILES / prefix
    made.mkdir(mode=0o700, parents=True, exist_ok=True)
    return made


def ours(prefix: str) -> list[str]:
    """The existing namespaces whose names begin with this prefix."""
    return sorted(name for name in _entries(RUN) if name.startswith(prefix))


def remains() -> list[str]:
    """The namespaces of runs whose process no longer exists."""
    return _dead(RUN)


def _dead(place: Path) -> list[str]:
    found = ((name, _NAME.fullmatch(name)) for name in _entries(place))
    return sorted(name for name, match in found if match and not _alive(int(match["pid"])))


def sweep() -> list[str]:
    """Remove the namespaces and folders of dead runs, and return their names."""
    names = remains()
    remove(names)
    folders = _dead(FILES)
    for name in folders:
        shutil.rmtree(FILES / name, ignore_errors=True)
    return names + folders


def clean(prefix: str) -> None:
    """Remove everything that a run created. Ctrl-C does not interrupt the removal."""
    with undisturbed():
        remove(ours(prefix))
        shutil.rmtree(FILES / prefix, ignore_errors=True)
        with contextlib.suppress(OSError):
            FILES.rmdir()  # fails if another run has a folder in `FILES`


def remove(names: Iterable[str]) -> None:
    """Kill the processes in namespaces, and remove the namespaces."""
    names = list(names)
    _kill_inside(names)
    for name in names:
        # Run ip(8) in its own session, because Ctrl-C at a terminal signals the whole foreground group. If
        # ip(8) was killed before it mounted the namespace, only a file is left. Unlink this file.
        command = ["ip", "netns", "delete", name]
        done = subprocess.run(command, capture_output=True, check=False, start_new_session=True)
        if done.returncode:
            with contextlib.suppress(OSError):
                (RUN / name).unlink()


def inside(names: Iterable[str]) -> list[int]:
    """The ids of the processes in these namespaces."""
    wanted = set()
    for name in names:
        with contextlib.suppress(OSError):
            status = (RUN / name).stat()
            wanted.add((status.st_dev, status.st_ino))
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                status = (entry / "ns/net").stat()
                if (status.st_dev, status.st_ino) in wanted:
                    found.append(int(entry.name))
    return found


def _kill_inside(names: list[str]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while (pids := inside(names)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _entries(place: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [entry.name for entry in place.iterdir()]
    return []


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
