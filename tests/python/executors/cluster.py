"""A Ray cluster of several nodes on this machine. Each node has its own processes and resources."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

PYTHON_PATH = str(Path(__file__).parents[3] / "python")


class Cluster:
    """A head node without CPUs, and worker nodes that a test adds and kills."""

    def __init__(self) -> None:
        # The path of a Unix socket has at most 107 bytes, and Ray creates sockets below this folder.
        self._folder = tempfile.mkdtemp(prefix="nr-", dir="/tmp")
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.env = os.environ | {
            "PYTHONPATH": PYTHON_PATH,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def __enter__(self) -> Self:
        self._start(
            "head",
            "--head",
            f"--port={self.address.rpartition(':')[2]}",
            f"--temp-dir={self._folder}",
            "--include-dashboard=false",
            "--num-cpus=0",
        )
        deadline = time.monotonic() + 60
        while not self._listens():
            if time.monotonic() > deadline or self._nodes["head"].poll() is not None:
                raise RuntimeError(f"no head; see {self._folder}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._nodes):
            self.kill(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, name: str, cpus: int = 1) -> None:
        self._start(name, f"--address={self.address}", f"--num-cpus={cpus}")

    def kill(self, name: str) -> None:
        """Kill all processes of a node with SIGKILL."""
        node = self._nodes.pop(name)
        for pid in _family(node.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait()

    def _start(self, name: str, *options: str) -> None:
        ray = Path(sys.executable).with_name("ray")
        command = [
            str(ray),
            "start",
            "--block",
            "--disable-usage-stats",
            "--node-ip-address=127.0.0.1",
            *options,
        ]
        log = Path(self._folder) / f"{name}.log"
        with log.open("wb") as out:
            self._nodes[name] = subprocess.Popen(
                command, env=self.env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _listens(self) -> bool:
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), 1).close()
        except OSError:
            return False
        return True


def _family(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found
