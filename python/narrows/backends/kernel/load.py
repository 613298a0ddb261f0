"""Programs that generate flows: servers that listen before the run, and a client that starts with its flow.

The emulator does not generate these flows, but only observes them.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.shell import KernelError
from narrows.backends.kernel.timeline import Timeline
from narrows.errors import ScenarioError, found, one_line
from narrows.plan import Plan, Protocol

_ENOUGH_SECONDS = 10.0
"""Time within which a server must begin to listen, and an interrupted client must end."""
_SERVERS_SECONDS = 2.0
"""If an interrupted server has not ended after this time, it is killed."""
_LISTENS = {"tcp": "0A", "udp": "07"}
"""The code for a listening socket in /proc/net/tcp and in /proc/net/udp (proc(5),
include/net/tcp_states.h)."""


@dataclass(frozen=True)
class Call:
    """A flow: a server that waits, and a client that starts at the flow's start time."""

    number: int
    """Number of the flow in the plan."""
    name: str
    """Name of the flow."""
    start: int
    """Time at which the client is started, ns."""
    stop: int
    """Time at which the client is interrupted, ns."""
    client_in: str
    """Namespace of the client, without the run's prefix."""
    server_in: str
    """Namespace of the server, without the run's prefix."""
    server: list[str]
    client: list[str]
    port: int
    """Port at which the server listens."""
    protocol: Protocol
    kept: dict[str, str]
    """Names of the log files in the results, by the program that wrote the file: `server` or `client`."""
    files: list[str] = field(default_factory=list)
    """Paths of files and folders that are copied into the working folder of both programs."""


class Load:
    """The programs of a run that generate its flows."""

    def __init__(self, programs: Processes, todo: Sequence[Call]) -> None:
        self._programs, self._todo = programs, todo
        self._logs: dict[str, str] = {}
        self._servers: dict[int, subprocess.Popen[bytes]] = {}
        self.complaints: list[str] = []

    def listen(self, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Copy the files, start the servers, and wait until they listen.

        Raises:
            KernelError: if a file cannot be copied, or if a server ends or does not listen in time.
            KeyboardInterrupt: if the run was cancelled.
        """
        for call in self._todo:
            for role in ("server", "client"):
                self._prepare(call, role)
        for call in self._todo:
            self._servers[call.number] = self._start(call, "server", call.server_in, call.server)
        for call in self._todo:
            self._wait_for(call, is_cancelled)

    def _wait_for(self, call: Call, is_cancelled: Callable[[], bool]) -> None:
        """Wait until the server of a flow listens."""
        server, name = self._servers[call.number], _log(call, "server")
        until = time.monotonic() + _ENOUGH_SECONDS
        while not _listens(server.pid, call.port):
            if is_cancelled():
                raise KeyboardInterrupt
            if (code := server.poll()) is not None:
                raise KernelError(f"the server of {call.name} {self._programs.end_of(name, code)}")
            if time.monotonic() > until:
                raise KernelError(
                    f"the server of {call.name} does not listen at {call.protocol} port {call.port} "
                    f"after {_ENOUGH_SECONDS:g} s: {self._programs.last_line(name)}"
                )
            time.sleep(0.01)

    @contextmanager
    def at_work(self, start: int) -> Iterator[None]:
        """While the context lasts, start and interrupt each client at the times of its flow.

        Args:
            start: start of the run, ns of CLOCK_MONOTONIC.
        """
        with Timeline(start).working(self._work):
            yield

    def logs(self) -> dict[str, str]:
        """The texts of the log files that are kept, by the files' names in the results."""
        return {
            file: self._programs.log(name).read_text("utf-8", "replace") for name, file in self._logs.items()
        }

    def _work(self, timeline: Timeline) -> None:
        clients: dict[int, tuple[Call, subprocess.Popen[bytes]]] = {}
        times = [(call.start, 0, call) for call in self._todo] + [(call.stop, 1, call) for call in self._todo]
        for when, ending, call in sorted(times, key=lambda entry: entry[:2]):
            if not timeline.wait_until(when) and not ending:
                continue
            if not ending:
                clients[call.number] = (call, self._start(call, "client", call.client_in, call.client))
            elif call.number in clients:
                self._interrupt(*clients[call.number])
        until = time.monotonic() + _ENOUGH_SECONDS
        for call, client in clients.values():
            try:
                client.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.complaints.append(f"the client of {call.name} did not end")
        self._stop_servers()

    def _stop_servers(self) -> None:
        """Interrupt the servers, so that they print their final reports."""
        for server in self._servers.values():
            _interrupt(server)
        until = time.monotonic() + _SERVERS_SECONDS
        for server in self._servers.values():
            with suppress(subprocess.TimeoutExpired):
                server.wait(max(0.01, until - time.monotonic()))

    def _interrupt(self, call: Call, client: subprocess.Popen[bytes]) -> None:
        """Interrupt a client that still runs. If it or its server has failed before, add a complaint."""
        for role, process in (("server", self._servers[call.number]), ("client", client)):
            if code := process.poll():
                end = self._programs.end_of(_log(call, role), code)
                self.complaints.append(f"the {role} of {call.name} {end}")
        _interrupt(client)

    def _start(self, call: Call, role: str, namespace: str, words: list[str]) -> subprocess.Popen[bytes]:
        name = _log(call, role)
        if role in call.kept:
            self._logs[name] = call.kept[role]
        return self._programs.start(namespace, name, words, may_end=True, folder=self._folder(name))

    def _prepare(self, call: Call, role: str) -> None:
        """Make the working folder of a program."""
        folder = self._folder(_log(call, role))
        folder.mkdir()
        try:
            for file in map(Path, call.files):
                if file.is_dir():
                    shutil.copytree(file, folder / file.name, symlinks=True)
                else:
                    shutil.copy2(file, folder / file.name)
        except shutil.Error as error:
            raise KernelError(one_line(f"the files of {call.name}: {error.args[0][0][2]}")) from None
        except OSError as error:
            raise KernelError(one_line(f"the files of {call.name}: {error}")) from None

    def _folder(self, name: str) -> Path:
        return self._programs.folder / f"work-{name}"


def log_name(name: str) -> str:
    """A flow's name without slashes, cut to 200 bytes. File names have at most 255 bytes (NAME_MAX)."""
    return name.replace("/", "_").encode()[:200].decode(errors="ignore")


def check_names(plan: Plan) -> None:
    """Check that the logs of all flows have different names.

    Raises:
        ScenarioError: for a flow whose logs would have the same names as the logs of another flow.
    """
    known: dict[str, int] = {}
    for number, flow in enumerate(plan["flows"]):
        other = known.setdefault(log_name(flow["name"]), number)
        if other != number:
            raise ScenarioError(
                f"found {found(flow['name'])}, whose logs would have the same names as the logs of "
                f"flows.{other}, expected another name",
                f"flows.{number}.name",
            )


def _log(call: Call, role: str) -> str:
    """The name of a program's log during the run. It has the flow's number, because names may be too long."""
    return f"flow-{call.number}-{role}"


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Send SIGINT to a program and its children, as Ctrl-C does. SIGINT makes iperf3 print its report."""
    if process.poll() is None:
        # The program leads a process group, because it has a session of its own.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)


def _listens(pid: int, port: int) -> bool:
    """Whether a socket listens at a port in the network namespace of a process.

    For a UDP flow, a listening TCP socket is accepted, too: iperf3 opens its UDP socket only after a client
    has connected by TCP.
    """
    for protocol, family in itertools.product(_LISTENS, ("", "6")):
        try:
            lines = Path(f"/proc/{pid}/net/{protocol}{family}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, *_ = line.split()
            if state == _LISTENS[protocol] and int(local.rpartition(":")[2], 16) == port:
                return True
    return False
