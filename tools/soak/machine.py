"""Counts of the resources of agents and controllers: eBPF objects, queues, descriptors, threads, memory."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from narrows.backends.kernel.agency import SOCKETS
from narrows.backends.kernel.features import BPFFS, CONGESTION

_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
_NEXT_ID = {"eBPF programs": 11, "eBPF maps": 12, "eBPF links": 31}
"""Commands of bpf(2) that return the next id. Ids are global, so the counts cover the whole machine."""

Inventory = dict[str, int]


def bpf_objects(kind: str) -> int:
    """Number of eBPF objects of this kind in the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    call = _BPF_SYSCALL[os.uname().machine]
    count, at = 0, 0
    while True:
        attributes = (ctypes.c_uint32 * 32)(at)
        if libc.syscall(call, _NEXT_ID[kind], ctypes.byref(attributes), ctypes.sizeof(attributes)) < 0:
            if (error := ctypes.get_errno()) == errno.ENOENT:
                return count
            raise OSError(error, os.strerror(error))
        count, at = count + 1, attributes[1]


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def htb_classes(namespace: str) -> int:
    """Number of HTB classes on all interfaces of a namespace."""
    shown = json.loads("".join(_lines("tc", "-j", "-n", namespace, "qdisc", "show")) or "[]")
    ports = {queue["dev"] for queue in shown if queue["kind"] == "htb"}
    return sum(len(_lines("tc", "-n", namespace, "class", "show", "dev", port)) for port in ports)


def inventory(switch: str) -> Inventory:
    """The number of objects of each kind on this machine. `switch` is the switch's namespace."""
    return {
        **{kind: bpf_objects(kind) for kind in _NEXT_ID},
        "pins": sum(not path.is_dir() for path in Path(BPFFS).rglob("*")),
        "HTB classes": htb_classes(switch),
        "congestion control algorithms": len(CONGESTION.read_text().split()),
        "status sockets": len(list(SOCKETS.glob("*.sock"))),
        "namespaces": len(_lines("ip", "netns", "list")),
    }


@dataclass(frozen=True)
class Usage:
    """The resources of a process."""

    descriptors: int = 0
    threads: int = 0
    children: int = 0
    memory_mib: float = 0.0
    """Resident memory."""

    def most(self, other: Usage) -> Usage:
        """The maximum of this usage and another one, resource by resource."""
        return Usage(**{name: max(value, vars(other)[name]) for name, value in vars(self).items()})


def usage(pid: int) -> Usage | None:
    """The resources of a process, or none if it has ended."""
    process = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return Usage(
            len(list((process / "fd").iterdir())),
            int(status["Threads"]),
            len(children(pid)),
            int(status["VmRSS"].split()[0]) / 1024,
        )
    except (OSError, KeyError):
        return None


def children(pid: int) -> list[int]:
    """The child processes of a process, including zombies."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(number) for number in thread.read_text().split()]
    return found
