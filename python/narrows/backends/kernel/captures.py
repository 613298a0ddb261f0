"""Captures the packets of a run on real stacks with tcpdump."""

from __future__ import annotations

import re
import signal
import subprocess
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
"""Memory in which the kernel keeps packets until tcpdump has read them. It holds 200,000 packets."""
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
    arriving: bool
    """Whether only arriving packets are captured. If false, packets that the place sends are captured,
    too."""

    def command(self, folder: Path, snap: int) -> list[str]:
        """The words of the command. Only IPv4 packets are captured, because all flows use IPv4."""
        words = [TOOL, "-i", self.device, "-w", str(folder / self.file), "-s", str(snap)]
        # Without the immediate mode, tcpdump loses the packets of the last second before it is stopped.
        words += ["--immediate-mode", "--time-stamp-precision=nano"]
        words += ["-B", str(_BUFFER_KIB), "-Z", "root", "-n"]
        return [*words, *(["-Q", "in"] if self.arriving else []), "ip"]


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
    for link, name, file in zip(capture["links"], links, files, strict=False):
        # A link's packets arrive at the device that sends the packets of the reverse link.
        end = layout.ports[back[link]]
        found.append(Place(name, file, layout.namespace(end.node), end.device, arriving=True))
    for node, name, file in zip(capture["hosts"], nodes, files[len(links) :], strict=True):
        devices = [port.device for port in layout.ports if port.node == node]
        device = devices[0] if len(devices) == 1 else "any"
        found.append(Place(name, file, layout.namespace(node), device, arriving=False))
    return found


def begin(programs: Processes, plan: Plan, layout: Layout, folder: Path | None) -> Captures:
    """Start to capture the packets of a run into a folder. Returns when all captures have begun.

    Raises:
        KernelError: if tcpdump does not start.
    """
    begun = Captures(programs, folder, [])
    capture = plan.get("capture")
    if folder is None or capture is None:
        return begun
    for number, place in enumerate(places(plan, layout)):
        name = f"{TOOL}-{number}"
        log = programs.log(name)
        process = programs.start(place.namespace, name, place.command(folder, capture["snap"]))
        programs.wait_for(TOOL, partial(_is_listening, log))
        begun.running.append((place, name, process))
    return begun


def _is_listening(log: Path) -> bool:
    return "listening on" in log.read_text(errors="replace")


@dataclass
class Captures:
    """The captures of a run."""

    programs: Processes
    folder: Path | None
    running: list[tuple[Place, str, subprocess.Popen[bytes]]]

    def end(self) -> list[str]:
        """Stop all captures. Returns a note for each capture that lost packets.

        Raises:
            OutputError: if a capture could not be written.
        """
        notes = []
        for place, name, process in self.running:
            process.send_signal(signal.SIGINT)
            try:
                code, reason = process.wait(_PATIENCE_SECONDS), ""
            except subprocess.TimeoutExpired:
                process.kill()
                code, reason = process.wait(), f"{TOOL} did not end within {_PATIENCE_SECONDS:g} s"
            if code != 0:
                reason = reason or self.programs.last_line(name)
                raise not_written(self.folder or name, OSError(reason))
            lost = _DROPPED.search(self.programs.log(name).read_text(errors="replace"))
            if lost is not None and int(lost[1]):
                notes.append(f"the capture at {place.name} lost {lost[1]} packets")
        return notes
