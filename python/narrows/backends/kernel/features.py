"""Tests which requirements of the kernel backend this machine meets.

Each finding states what the requirement is used for, and a remedy. `narrows doctor` prints all findings. If a
requirement is missing, a run stops and prints that finding as one line.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from narrows import extension, extras
from narrows.backends.kernel import agents, cc, namespaces, ovs
from narrows.backends.kernel.shell import KernelError, call
from narrows.plan import KernelPlan

CONGESTION = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

BPFFS = "/sys/fs/bpf"
"""The mount point of the file system in which narrows-agent pins eBPF objects."""
BPF_FS_MAGIC = 0xCAFE4A11
"""The number of the file system's type (include/uapi/linux/magic.h)."""


@dataclass(frozen=True)
class Finding:
    """One requirement or optional feature."""

    name: str
    have: bool
    needed: tuple[str, ...]
    """The parts that require the feature: ``sim``, ``kernel``, ``vm`` or ``deploy`` (empty: the feature is
    optional)."""
    use: str
    """Purpose of the feature."""
    remedy: str
    """How to get the feature, if it is missing."""
    detail: str = ""
    tried: bool = True
    """Whether the test ran. If the test did not run, the feature may exist, but no run relies on it."""

    @property
    def line(self) -> str:
        """The whole finding as one line for an error message."""
        found = "found no" if self.tried else "could not try"
        return f"{found} {self.name}, needed for {self.use}; {self.remedy}"


TOOLS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("ip", ("kernel", "vm"), "namespaces and links", "install iproute2"),
    ("tc", ("kernel", "vm"), "rates and queues", "install iproute2"),
    ("nsenter", ("kernel", "vm"), "settings of namespaces", "install util-linux"),
    ("chrt", ("kernel", "vm"), "priority for agents", "install util-linux"),
    ("ethtool", ("kernel", "vm"), "turning offloads off", "install ethtool"),
    ("bridge", (), "kernel.forwarding = 'bridge'", "install iproute2"),
    ("ovs-vswitchd", (), "kernel.forwarding = 'ovs'", "install openvswitch-switch"),
    ("iperf3", (), "kernel.tool = 'iperf3'", "install iperf3"),
    ("ping", (), "narrows study survey --as-published", "install iputils-ping"),
    ("tcpdump", (), "[capture] on real stacks", "install tcpdump"),
)

QDISCS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("htb", "htb default 1", ("kernel", "deploy"), "rates, and BRF's classes"),
    ("pfifo", "pfifo limit 10", ("kernel",), "queues counted in packets"),
    ("bfifo", "bfifo limit 15000", ("kernel",), "queues counted in bytes"),
    ("clsact", "clsact", (), "BRF's switch on kernels without tcx"),
    ("netem", "netem delay 1ms", (), "kernel.delay = 'netem'"),
    ("fq", "fq", (), "kernel.host_queue = 'fq', and the pacing of BRF's first segments"),
    ("codel", "codel", (), "AQM below other tools"),
    ("fq_codel", "fq_codel", (), "AQM below other tools"),
    ("red", "red limit 100000 avpkt 1000 bandwidth 10mbit", (), "AQM below other tools"),
)


def root() -> Finding:
    """The finding about the user, who must be root with CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN."""
    have = os.geteuid() == 0 and _capable()
    return Finding(
        "root", have, ("kernel", "deploy"), "namespaces, packet sockets and eBPF", "run it as root (sudo)"
    )


def _capable() -> bool:
    """Whether the process has CAP_NET_ADMIN (12), CAP_NET_RAW (13) and CAP_SYS_ADMIN (21) in effect."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            mask = int(line.split()[1], 16)
            return all(mask >> bit & 1 for bit in (12, 13, 21))
    return False


def tools() -> list[Finding]:
    """A finding for each program that Narrows may call."""
    return [Finding(name, shutil.which(name) is not None, need, use, fix) for name, need, use, fix in TOOLS]


def congestion_controls() -> list[str]:
    """The congestion controllers of the kernel.

    If the agent is installed, the result also has the controllers that the agent loads.
    """
    try:
        found = CONGESTION.read_text(encoding="ascii").split()
    except OSError:
        return []
    # Leave out controllers that agents have loaded or registered, because only the run that started an agent
    # may use the agent's controller. The names that a run can load are added below.
    found = [name for name in found if not name.startswith((agents.BRF, cc.PREFIX))]
    return [*found, agents.BRF, *cc.NAMES] if agents.find() else found


def qdiscs() -> list[Finding]:
    """Findings about queueing disciplines.

    Each discipline is tried on a device in a temporary namespace. This needs root.
    """
    prefix = namespaces.new_prefix()
    name = prefix + "try"
    found: list[Finding] = []
    try:
        call(["ip", "netns", "add", name], [""])
        call(["ip", "-n", name, "-batch", "-"], ["link add name d0 type veth peer name d1"])
        for qdisc, words, needed, use in QDISCS:
            have = _try(["tc", "-n", name, "qdisc", "replace", "dev", "d0", *_place(words)])
            found.append(
                Finding(f"qdisc {qdisc}", have, needed, use, f"load the module sch_{_module(qdisc)}")
            )
    except KernelError as error:
        remedy = str(error) if root().have else root().remedy
        return [Finding(f"qdisc {q}", False, need, use, remedy, tried=False) for q, _, need, use in QDISCS]
    finally:
        namespaces.clean(prefix)
    return found


def datapath() -> Finding:
    """The finding about Open vSwitch's datapath in the kernel, for scenarios that use it."""
    return Finding(
        "module openvswitch",
        ovs.MODULE.exists(),
        ("kernel",),
        "kernel.datapath = 'system'",
        "modprobe openvswitch, or leave the key out",
    )


def wanted(names: Iterable[str]) -> list[Finding]:
    """The findings about the queueing disciplines that a plan requires."""
    chosen = {f"qdisc {name}" for name in names}
    if not chosen:
        return []
    return [replace(finding, needed=("kernel",)) for finding in qdiscs() if finding.name in chosen]


def _place(words: str) -> list[str]:
    return ["clsact"] if words == "clsact" else ["root", *words.split()]


def _module(qdisc: str) -> str:
    return {"pfifo": "fifo", "bfifo": "fifo", "clsact": "ingress"}.get(qdisc, qdisc)


def _try(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        raise KernelError(f"add the folder of {command[0]} to PATH, often /usr/sbin") from None


def native() -> Finding:
    """The finding about the native module, which must be importable."""
    try:
        from narrows import _native  # noqa: PLC0415 (may be absent)
    except ImportError as error:
        return Finding(
            "native module", False, ("sim", "kernel", "vm"), "everything", extras.BUILD, str(error)
        )
    own = extension.file()
    found = _native.version if own is None else f"{_native.version}, {own}"
    return Finding("native module", True, ("sim", "kernel", "vm"), "everything", "", found)


def emulator() -> Finding:
    """The finding about the emulator in the native module."""
    try:
        from narrows import _native  # noqa: PLC0415

        have = hasattr(_native, "emulate")
    except ImportError:
        have = False
    return Finding("emulator", have, ("kernel", "vm"), "relays and flows", "build the native module on Linux")


def kernel() -> list[Finding]:
    """Features of the kernel that the eBPF data plane uses."""
    release = os.uname().release
    version = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    btf = Path("/sys/kernel/btf/vmlinux").exists()
    cgroup2 = any(line.split()[-1] == "cgroup2" for line in _lines("/proc/filesystems"))
    return [
        Finding("BTF", btf, ("deploy",), "the eBPF programs", "a kernel with CONFIG_DEBUG_INFO_BTF"),
        Finding(
            "cgroup2", cgroup2, ("deploy",), "BRF senders and receivers", "a kernel with CONFIG_CGROUP_BPF"
        ),
        # Linux 6.6: "bpf: Add fd-based tcx multi-prog infra with link support".
        Finding("tcx", version >= (6, 6), (), "BRF's switch (else clsact)", "Linux 6.6 or later", release),
        bpffs(),
    ]


def bpffs() -> Finding:
    """The finding about the bpffs for pinned objects.

    The bpffs must be visible, writable and mounted only once.
    """
    # proc_pid_mountinfo(5): device, root and mount point are fields 3 to 5. The file system's type follows
    # the dash.
    fields = [line.split() for line in _lines("/proc/self/mountinfo")]
    there = [mount for mount in fields if mount[4] == BPFFS]
    systems = {mount[2] for mount in there if mount[mount.index("-") + 1] == "bpf"}
    have, remedy = False, f"mount -t bpf bpf {BPFFS}"
    if systems and not is_bpffs(BPFFS):
        # If a folder has several mounts, the last mount is visible.
        kind = there[-1][there[-1].index("-") + 1]
        remedy = (
            f"found a mount of type {kind} over the bpffs at {BPFFS}, which hides its pins: umount {BPFFS}"
        )
    elif len(systems) > 1:
        remedy = (
            f"found {len(systems)} mounts at {BPFFS}, one hides another's pins: run narrows cc unload all"
        )
    elif systems and is_read_only(BPFFS):
        remedy = f"found a read-only bpffs at {BPFFS}: mount -o remount,rw {BPFFS}"
    else:
        have = len(systems) == 1
    return Finding("bpffs", have, (), "narrows cc; pin of narrows-agent", remedy, BPFFS)


def is_bpffs(path: str) -> bool:
    """Whether a path is in a bpffs, according to statfs(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    facts = (ctypes.c_long * 64)()
    # The first word of the result is the file system's type, which is signed on some machines.
    return libc.statfs(os.fsencode(path), facts) == 0 and facts[0] & 0xFFFFFFFF == BPF_FS_MAGIC


def is_read_only(path: str) -> bool:
    """Whether the mount of a path is read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _lines(path: str) -> list[str]:
    try:
        return [line for line in Path(path).read_text(encoding="ascii").splitlines() if line.split()]
    except OSError:
        return []


def agent() -> Finding:
    """The finding about the program narrows-agent."""
    found = agents.find()
    remedy = f"{extras.remedy('kernel')}, or make agent in a clone, or set {agents.VARIABLE}"
    return Finding(
        "narrows-agent", found is not None, ("deploy",), "BRF on real stacks", remedy, str(found or "")
    )


def controller() -> Finding:
    """The finding about the Python packages of the SDN controller."""
    lacking = extras.missing("controller")
    names = "packages of the controller" + (f" ({', '.join(lacking)})" if lacking else "")
    return Finding(
        names, not lacking, (), "scenarios with sdn, narrows controller", extras.remedy("controller")
    )


def sdn() -> list[Finding]:
    """The finding about the Python packages that a scenario with an SDN controller requires."""
    return [replace(controller(), needed=("kernel",))]


def asked(options: KernelPlan) -> list[Finding]:
    """The findings about the programs that a scenario's table [kernel] requires."""
    switches = {"bridge": "bridge", "ovs": "ovs-vswitchd"}
    return programs([options.get("tool"), switches.get(options.get("forwarding") or "")])


def programs(names: Iterable[str | None]) -> list[Finding]:
    """The findings about programs that a run requires."""
    chosen = set(names)
    return [replace(finding, needed=("kernel",)) for finding in tools() if finding.name in chosen]


def require(
    *checks: Callable[[], Finding] | Callable[[], list[Finding]], parts: tuple[str, ...] = ("kernel",)
) -> None:
    """Raise an error if a requirement is missing.

    Args:
        checks: functions that return findings.
        parts: the parts of Narrows that the run uses, see `Finding.needed`.

    Raises:
        KernelError: if one of these parts lacks a requirement. The text is the line of the first such
            finding.
    """
    for check in checks:
        found = check()
        for finding in found if isinstance(found, list) else [found]:
            if not finding.have and set(parts) & set(finding.needed):
                raise KernelError(finding.line)
