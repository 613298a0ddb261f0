"""Starts the agents of a run, sends them changes, and collects their reports."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from narrows.backends.kernel import agents
from narrows.backends.kernel.agents import Agent
from narrows.backends.kernel.processes import REAL_TIME, Processes
from narrows.backends.kernel.timeline import Timeline
from narrows.errors import ScenarioError, one_line

SOCKETS = Path("/run/narrows-agent")
"""Folder of the agents' status sockets."""
_START_SECONDS = 20.0
_PATIENCE_SECONDS = 2.0
_LEAST_MILLIS = 50
_FLOWS = 1_000
"""Maximum number of flows in a switch's report."""


def check(todo: Sequence[Agent], program: Path) -> None:
    """Let the agent check all configurations before anything is created.

    Raises:
        ScenarioError: if the agent refuses a configuration. The text is the agent's message.
    """
    with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
        files = []
        for agent in todo:
            files.append(Path(folder) / f"{agent.name}.toml")
            files[-1].write_text(tomli_w.dumps(agents.named(agent.config, agent.role, agent.name)), "utf-8")
        command = [str(program), "check", *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode:
        complaint = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise ScenarioError(one_line(complaint.removeprefix(folder).lstrip("/")), "rate_controllers")


class Agency:
    """The agents of a run."""

    def __init__(self, programs: Processes, todo: Sequence[Agent]) -> None:
        self.agents = list(todo)
        self.complaints: list[str] = []
        self._programs = programs
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: list[dict[str, Any]] = []

    def start(self, program: Path) -> None:
        """Start all agents, and wait until they are ready.

        Raises:
            KernelError: if an agent fails. The text contains the last line that the agent printed.
        """
        for agent in self.agents:
            name = self._name(agent)
            config = self._programs.folder / f"{agent.role}-{agent.name}.toml"
            config.write_text(tomli_w.dumps(agents.named(agent.config, agent.role, name)), encoding="utf-8")
            command = [*REAL_TIME, str(program), agent.role, str(config)]
            self._started[name] = self._programs.start(agent.namespace, self._log(agent), command)
        for agent in self.agents:
            what = f"narrows-agent {agent.role}"
            self._programs.wait_for(what, self._socket(agent).exists, _START_SECONDS)

    def logs(self) -> dict[str, str]:
        """The agents' logs, by file name."""
        names = [self._log(agent) for agent in self.agents]
        return {f"{n}.jsonl": self._programs.log(n).read_text("utf-8", "replace") for n in names}

    def snapshots(self) -> list[dict[str, Any]]:
        """Reports of the switches during the run, in order of time."""
        return sorted(self._seen, key=lambda snapshot: int(snapshot["at"]))

    @contextmanager
    def at_work(self, start: int, interval: int) -> Iterator[None]:
        """Apply the planned changes and collect snapshots until the context ends.

        Args:
            start: start of the run, ns of CLOCK_MONOTONIC.
            interval: time between two snapshots, ns (0: no snapshots).
        """
        switches = [agent for agent in self.agents if agent.role == "switch"]
        listeners = [partial(self._listen, agent, interval) for agent in switches if interval]
        with Timeline(start).working(self._change, *listeners):
            yield

    def _name(self, agent: Agent) -> str:
        return self._programs.prefix + agent.name

    def _log(self, agent: Agent) -> str:
        return agent.role if agent.role == agent.name else f"{agent.role}-{agent.name}"

    def _socket(self, agent: Agent) -> Path:
        return SOCKETS / f"{self._name(agent)}.sock"

    def _change(self, timeline: Timeline) -> None:
        """Send new rates to the switches, and stop the switches during their outages."""
        todo: list[tuple[int, Agent, dict[str, int] | signal.Signals]] = []
        for agent in self.agents:
            todo += [(when, agent, {device: rate}) for when, device, rate in agent.rates]
            for begin, end in agent.outages:
                todo += [(begin, agent, signal.SIGSTOP), (end, agent, signal.SIGCONT)]
        for when, agent, what in sorted(todo, key=lambda change: change[0]):
            if not timeline.wait_until(when):
                break
            if isinstance(what, signal.Signals):
                self._started[self._name(agent)].send_signal(what)
                continue
            try:
                with self._connect(agent, {"rates": what}, _PATIENCE_SECONDS) as lines:
                    answer = json.loads(lines.readline())
                if "error" in answer:
                    self.complaints.append(f"a change of rate was refused ({answer['error']})")
            except (OSError, ValueError) as error:
                self.complaints.append(f"a change of rate failed ({error})")
        for agent in self.agents:
            if agent.outages:  # a stopped process does not handle SIGTERM
                self._started[self._name(agent)].send_signal(signal.SIGCONT)

    def _listen(self, agent: Agent, interval: int, timeline: Timeline) -> None:
        every = max(_LEAST_MILLIS, interval // 1_000_000)
        request = {"flows": _FLOWS, "every_ms": every}
        # During an outage, the agent's process is stopped and sends nothing. Reading from the agent times
        # out, and the loop connects again.
        patience = _PATIENCE_SECONDS + every / 1e3
        while not timeline.is_over:
            with contextlib.suppress(OSError, ValueError), self._connect(agent, request, patience) as lines:
                while not timeline.is_over:
                    line = lines.readline()
                    if not line:
                        break
                    self._seen.append({**json.loads(line), "agent": agent.name})
            timeline.pause(_LEAST_MILLIS / 1e3)

    @contextmanager
    def _connect(self, agent: Agent, request: dict[str, Any], patience: float) -> Iterator[Any]:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(patience)
            client.connect(str(self._socket(agent)))
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile("r", encoding="utf-8") as lines:
                yield lines
