"""Captures the packets of a run on real stacks with tcpdump."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from narrows import _native
from narrows.backends.captures import not_written
from narrows.backends.kernel.layout import Layout, reverse_links
from narrows.backends.kernel.processes import Processes
from narrows.plan import Plan

TOOL = "tcpdump"
_BUFFER_KIB = 32_768
"""Memory for packets that tcpdump has not read yet."""
_PATIENCE_SECONDS = 10.0
_DROPPED = re.compile(r"^(\d+) packets? dropped by kernel", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A link or host whose packets are captured."""

    name: str
    """The name of the link or node in the scenario."""
    file: str
    namespace: str
    """The namespace, without the run's prefix."""
    device: str
    is_arriving_only: bool
    """Whether to leave out the packets that the device sends."""

    snap: int
    """Bytes to keep of each packet."""

    def command(self, folder: Path) -> list[str]:
        """The command line of tcpdump. Only IPv4 packets are captured, because all flows use IPv4."""
        words = [TOOL, "-i", self.device, "-w", str(folder / self.file), "-s", str(self.snap)]
        # Without the immediate mode, tcpdump loses the packets of the last second before it is stopped.
        words += ["--immediate-mode", "--time-stamp-precision=nano"]
        words += ["-B", str(_BUFFER_KIB), "-Z", "root", "-n"]
        return [*words, *(["-Q", "in"] if self.is_arriving_only else []), "ip"]


def places(plan: Plan, layout: Layout) -> list[Place]:
    """The places of a plan's capture: first the links, then the hosts."""
    capture = plan.get("capture")
    if capture is None:
        return []
    nodes = [plan["nodes"][node] for node in capture["hosts"]]
    links = [plan["links"][link]["name"] for link in capture["links"]]
    files = _native.capture_file_names(links + nodes, "pcap")
    back = reverse_links(plan["links"])
    found = []
    for link, name, file in zip(capture["links"], links, files[: len(links)], strict=True):
        # The device that sends the packets of the reverse link receives the packets of the link.
        port = layout.ports[back[link]]
        found.append(Place(name, file, layout.namespace(port.node), port.device, True, capture["snap"]))
    for node, name, file in zip(capture["hosts"], nodes, files[len(links) :], strict=True):
        devices = [port.device for port in layout.ports if port.node == node]
        device = devices[0] if len(devices) == 1 else "any"
        found.append(Place(name, file, layout.namespace(node), device, False, capture["snap"]))
    return found


@dataclass
class Captures:
    """The captures of a run."""

    programs: Processes
    folder: Path
    running: list[tuple[Place, str, subprocess.Popen[bytes]]]

    @classmethod
    def begin(cls, programs: Processes, places: Sequence[Place], folder: Path) -> Captures:
        """Start to capture packets into a folder. Returns when all captures have begun.

        Raises:
            KernelError: if tcpdump does not start.
        """
        running = []
        for number, place in enumerate(places):
            name = f"{TOOL}-{number}"
            process = programs.start(place.namespace, name, place.command(folder))
            programs.wait_for(TOOL, partial(_is_listening, programs.log(name)))
            running.append((place, name, process))
        return cls(programs, folder, running)

    def end(self) -> list[str]:
        """Stop all captures. Returns a note for each capture that lacks packets.

        Raises:
            OutputError: if a capture could not be written.
        """
        notes = []
        for place, name, process in self.running:
            file = self.folder / place.file
            process.send_signal(signal.SIGINT)
            try:
                code = process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise not_written(file, f"{TOOL} did not end within {_PATIENCE_SECONDS:g} s") from None
            if code != 0:
                raise not_written(file, f"{TOOL} {self.programs.end_of(name, code)}")
            lost = _DROPPED.search(self.programs.log(name).read_text(errors="replace"))
            if lost is not None and int(lost[1]):
                notes.append(f"the capture at {place.name} lacks {lost[1]} packets: {TOOL} was too slow")
        return notes


def _is_listening(log: Path) -> bool:
    return "listening on" in log.read_text(errors="replace")
