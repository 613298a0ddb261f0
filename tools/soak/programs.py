"""The programs of a soak: agents and controllers, which are killed and restarted, and the traffic."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import traffic
from machine import Usage, children, usage
from narrows.backends.kernel.agency import SOCKETS
from narrows.backends.kernel.control import AGENTS, HTTP, OPENFLOW
from network import RATE_MBIT, SENDERS, Network
from schedule import CONTROLLERS

HERE = Path(__file__).parent
METRICS = 9471
OPEN_PORTS = (OPENFLOW, OPENFLOW + 1, AGENTS, AGENTS + 1, HTTP, HTTP + 1, METRICS)
"""Ports of the two controllers and of the switch. The ports of the second controller are higher by 1."""
START_S = 30.0
"""Time within which a program must answer after its start."""
LONG_FLOWS = 3
"""Number of long flows of each sender."""
MAX_FLOWS = 256
"""Size of the flow table. The table is small, so that leaked slots exhaust it during the run."""
FORGET_S = 5
"""Time after which the slot of a silent flow is freed. The agent's default is longer."""

Start = Callable[[], "subprocess.Popen[bytes]"]


class Program:
    """A program that can be killed and restarted."""

    def __init__(self, name: str, start: Start, log: Path, answers: Callable[[], bool]) -> None:
        self.name, self.log, self.answers = name, log, answers
        self._start = start
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._log_begin = 0
        self.idle, self.most, self.end = Usage(), Usage(), Usage()
        """Usage before the load, largest usage, and usage after the load."""

    def start(self) -> None:
        """Starts the program."""
        self.starts += 1
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        self.process = self._start()

    @property
    def pid(self) -> int | None:
        """The process id while the program runs."""
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    def send(self, number: signal.Signals, guardian: bool = False, itself: bool = True) -> None:
        """Sends a signal to the program, to its guardian (a child process), or to both."""
        if (pid := self.pid) is None:
            return
        for target in [*([pid] if itself else []), *(children(pid) if guardian else [])]:
            os.kill(target, number)

    def stop(self, patience_s: float = 20) -> bool:
        """Sends SIGTERM, and kills the program after `patience_s`. Returns whether it ended in time."""
        if self.process is not None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                return False
        return True

    def measure(self) -> Usage:
        """The program's current usage. Also updates the largest usage."""
        now = usage(self.pid or 0) or Usage()
        self.most = self.most.most(now)
        return now

    def output(self) -> str:
        """The program's log since its last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode(errors="replace")

    def tail(self) -> str:
        """The end of the program's log, in one line."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return " / ".join(lines[-3:])


class Programs:
    """All programs of a network."""

    def __init__(self, network: Network, agent: Path, seed: int, pin: bool) -> None:
        self.network, self.agent = network, agent
        self.algorithm = f"brf{secrets.token_hex(3)}"
        self.deployed: dict[str, Program] = {}
        self.traffic: dict[str, Program] = {}
        for name in CONTROLLERS:
            self._deploy_controller(name)
        self._deploy("switch", network.net, "switch", self._switch(pin), ("chrt", "-R", "-r", "1"))
        self._deploy("receiver", network.hosts["c"], "receiver", "")
        for sender in SENDERS:
            text = f'interfaces = ["r"]\nalgorithm = "{self.algorithm}{sender}"\n'
            self._deploy(f"sender-{sender}", network.hosts[sender], "sender", text)
        receiver = network.address("c")
        self._add("server", network.hosts["c"], HERE / "traffic.py", "server", receiver)
        for at, sender in enumerate(SENDERS):
            words = ("client", receiver, 1 + at * LONG_FLOWS, LONG_FLOWS, seed + at)
            self._add(f"client-{sender}", network.hosts[sender], HERE / "traffic.py", *words)
        reports = self.traffic["server"].log
        words = ("packets", reports, receiver, traffic.PORT, seed)
        self._add("forger", network.hosts["x"], HERE / "attacker.py", *words)

    def agent_name(self, name: str) -> str:
        """The agent's name with the prefix of this soak."""
        return f"{self.network.tag}-{name}"

    def _switch(self, pin: bool) -> str:
        addresses = [f"127.0.0.1:{AGENTS + number}" for number in range(len(CONTROLLERS))]
        return (
            f'max_flows = {MAX_FLOWS}\npin = {json.dumps(pin)}\ninterfaces = ["s1", "s2", "x"]\n'
            f'[[ports]]\ninterface = "c"\nrate = "{RATE_MBIT}mbit"\n'
            f'[ports.params]\nforget_after = "{FORGET_S}s"\n'
            f"[controller]\naddress = {json.dumps(addresses)}\n{self.network.keys.of('switch')}"
            f'[metrics]\naddress = "127.0.0.1:{METRICS}"\n'
        )

    def _deploy(self, name: str, space: str, role: str, text: str, wrap: tuple[str, ...] = ()) -> None:
        path = self.network.folder / f"{name}.toml"
        path.write_text(f'[{role}]\nname = "{self.agent_name(name)}"\n{text}')
        command = (*wrap, str(self.agent), role, str(path))
        status = SOCKETS / f"{self.agent_name(name)}.sock"
        self.deployed[name] = self._program(name, space, command, lambda: _answers(status))

    def _deploy_controller(self, name: str) -> None:
        number = CONTROLLERS.index(name)
        other = 1 - number
        keys = self.network.keys.of_controller(name)
        path = self.network.folder / f"{name}.toml"
        path.write_text(
            f'name = "{name}"\n[openflow]\nport = {OPENFLOW + number}\n[http]\nport = {HTTP + number}\n'
            f'[agents]\nport = {AGENTS + number}\nkey = "{keys.key}"\ncertificate = "{keys.certificate}"\n'
            f'trusted = "{keys.trusted}"\n'
            f'[standby]\nname = "{CONTROLLERS[other]}"\nhost = "127.0.0.1"\nport = {AGENTS + other}\n'
        )
        command = (sys.executable, "-m", "narrows.cli.main", "controller", "--config", str(path))
        self.deployed[name] = self._program(name, self.network.net, command, lambda: True)

    def _add(self, name: str, space: str, *words: object) -> None:
        command = (sys.executable, *map(str, words))
        self.traffic[name] = self._program(name, space, command, lambda: True)

    def _program(
        self, name: str, space: str, command: tuple[str, ...], answers: Callable[[], bool]
    ) -> Program:
        log = self.network.folder / f"{name}.log"
        return Program(name, lambda: self.network.start(space, *command, log=log.name), log, answers)

    def pester(self, seed: int) -> subprocess.Popen[bytes]:
        """Starts the attacker that sends random bytes, in the router's namespace."""
        words = (str(HERE / "attacker.py"), "bytes", str(seed), *map(str, OPEN_PORTS))
        return self.network.start(self.network.net, sys.executable, *words, log="bytes.log")

    def status(self) -> dict | None:
        """The status of the switch's agent, or none while it does not answer."""
        return self.network.agents.status("switch", flows=20)

    def active(self) -> list[str]:
        """The controllers that are active and connected to the switch's agent."""
        found = []
        for number, name in enumerate(CONTROLLERS):
            state = self.network.get("state", HTTP + number)
            if state is not None and state["active"] and len(state["agents"]) == 1:
                found.append(name)
        return found

    def clean(self) -> subprocess.Popen[bytes]:
        """Starts `narrows-agent clean`."""
        return self.network.start(self.network.net, str(self.agent), "clean", log="clean.log")


def _answers(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    except OSError:
        return False
    return True


def wait(ready: Callable[[], bool], seconds: float) -> bool:
    """Waits for a condition. Returns whether it was met in time."""
    end_s = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.2)
    return True
