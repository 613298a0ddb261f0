"""Runs the controller in its own process, as in a deployment, and measures its use of resources."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from ovs_lab import wait


class Controller:
    """A controller process on free ports of loopback."""

    def __init__(self, folder, *arguments, descriptors=None):
        self.log = Path(folder) / "controller.log"

        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "narrows.cli.main", "controller", "--openflow-port", "0",
                 "--agents-port", "0", "--http-port", "0", *arguments],
                stderr=log,
            )  # fmt: skip
        if descriptors is not None:
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (descriptors, descriptors))
        wait(lambda: self._found() or self.process.poll() is not None, "the controller")
        assert self._found(), self.log.read_text()
        self.port = int(self._found()[1])

    def _found(self):
        return re.search(r"switches at [0-9.]+:(\d+)", self.log.read_text())

    def threads(self):
        return self._count("task")

    def descriptors(self):
        return self._count("fd")

    def _count(self, what):
        return len(list(Path(f"/proc/{self.process.pid}/{what}").iterdir()))

    def processor_s(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_idle(self):
        before = self.processor_s()
        time.sleep(1)
        return self.processor_s() - before < 0.25

    def rest(self):
        """Waits until the controller is idle. Returns how many threads and file descriptors it has."""
        wait(self.is_idle, "an idle controller")
        return self.threads(), self.descriptors()

    def wait_for(self, before):
        """Waits until the controller has as many threads and file descriptors as `before` says."""
        wait(self.is_idle, "an idle controller")
        wait(lambda: (self.threads(), self.descriptors()) == before, f"{before} threads and descriptors")

    def close(self):
        self.process.kill()
        self.process.wait()
