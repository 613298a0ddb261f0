"""Starts programs in a run's namespaces, and stops them when the run ends."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from narrows.backends.kernel import namespaces
from narrows.backends.kernel.shell import KernelError
from narrows.errors import one_line

REAL_TIME = ("chrt", "--rr", "--reset-on-fork", "1")
"""Command prefix for real-time scheduling of forwarding programs and of the agent's loop.

The loop measures rates every 10 ms. If other work delays one measurement, the interval until the next
measurement is too short. Measured on a busy machine: with normal scheduling, the loop reported 8 false bursts
per second and measured a link at four times its rate. With real-time scheduling, the loop reported no false
bursts, and its rates were within 5 %.
"""
_GRACE_SECONDS = 2.0
_MOST_SHOWN = 200
"""Maximum number of characters of a program's last line in messages."""


class Processes:
    """Programs started for a run, each with a log in the run's folder.

    The kernel kills the programs when the thread that started them ends (PR_SET_PDEATHSIG), even if that
    thread is killed.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.folder = namespaces.folder(prefix)
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._mortal: set[str] = set()

    def start(
        self,
        namespace: str,
        name: str,
        command: list[str],
        env: Mapping[str, str] | None = None,
        *,
        may_end: bool = False,
        folder: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program in a namespace, which is given without the run's prefix.

        If the program ends before the run does, this is an error, unless `may_end` is set.

        Args:
            namespace: the namespace.
            name: the name of the program's log.
            command: the words of the command.
            env: the environment (None: the environment of this process).
            may_end: whether the program may end before the run does.
            folder: the working folder (None: the working folder of this process).
        """
        inside = ["nsenter", f"--net={namespaces.path(self.prefix + namespace)}"]
        with self.log(name).open("wb") as log:
            started = subprocess.Popen(
                [*inside, "setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=folder,
                start_new_session=True,
            )
        self._running.append((name, started))
        if may_end:
            self._mortal.add(name)
        return started

    def log(self, name: str) -> Path:
        """The file of a program's output."""
        return self.folder / f"{name}.log"

    def wait_for(self, what: str, ready: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait until a condition holds.

        Raises:
            KernelError: if a program ended, or if `seconds` have passed.
        """
        until = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > until:
                last = self.last_line(self._running[-1][0]) if self._running else "no output"
                raise KernelError(f"{what} did not start within {seconds:g} s: {last}")
            time.sleep(0.02)

    def check(self) -> None:
        """If a program that must not end has ended, raise a KernelError with the program's last output."""
        for name, process in self._running:
            if name not in self._mortal and process.poll() is not None:
                raise KernelError(f"{name} {self.end_of(name, process.returncode)}")

    def end_of(self, name: str, code: int) -> str:
        """How a program ended, with the last line of its output."""
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        return f"ended {how}: {self.last_line(name)}"

    def last_line(self, name: str) -> str:
        """The last line of a program's output so far, shortened."""
        said = self.log(name).read_text(errors="replace").strip().splitlines()
        return one_line(said[-1][:_MOST_SHOWN]) if said else "no output"

    def stop(self) -> None:
        """Stop all programs in reverse order of their start."""
        for _, process in reversed(self._running):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_SECONDS)
        self._running.clear()


@contextmanager
def processes(prefix: str) -> Iterator[Processes]:
    """Yield an object that starts the programs of a run.

    The programs are stopped at the end of the context.
    """
    started = Processes(prefix)
    try:
        yield started
    finally:
        started.stop()
