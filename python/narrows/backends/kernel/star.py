"""Hosts at one switch with the machine's defaults, like the network that Mininet's `sudo mn` creates.

Segmentation offload, buffers and sysctls keep the kernel's defaults. By contrast, a run of a plan changes
these settings, so that its results can be compared with the simulator's.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from narrows.backends.kernel.build import created
from narrows.backends.kernel.commands import BRIDGE, HANDLE, Commands
from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.shell import KernelError, run

SWITCH = "s1"
NETWORK = "10.0.0.0/8"
_NAP_SECONDS = 0.02

IsCancelled = Callable[[], bool]


@dataclass(frozen=True)
class Star:
    """A network of hosts at a switch."""

    hosts: int
    tbf: str
    """The qdisc of every port, in the notation of tc(8) (empty: none)."""
    mtu: int
    """MTU of every port, bytes."""
    algorithm: str = ""
    """Congestion control algorithm of all hosts (empty: the kernel's default)."""

    @property
    def names(self) -> list[str]:
        """The hosts' names in Mininet."""
        return [f"h{number}" for number in range(1, self.hosts + 1)]

    @property
    def ports(self) -> list[tuple[str, str]]:
        """Each host's port followed by the switch's port to the host, as (namespace, device)."""
        return [
            port
            for number, name in enumerate(self.names, 1)
            for port in ((name, f"{name}-eth0"), (SWITCH, f"s1-eth{number}"))
        ]


def address(host: str) -> str:
    """The address that Mininet gives to a host."""
    return f"10.0.0.{host.removeprefix('h')}"


def commands(star: Star, prefix: str) -> Commands:
    """Return the commands that create the network, without running them."""
    made = Commands([prefix + name for name in (*star.names, SWITCH)])
    bridge = ["link set lo up", f"link add name {BRIDGE} type bridge", f"link set {BRIDGE} up"]
    # `sysctl net.ipv4.tcp_congestion_control` refuses most algorithms in a namespace. A route accepts them
    # (RTAX_CC_ALGO). Connections over this route negotiate ECN if the algorithm needs it.
    congctl = f" congctl {star.algorithm}" if star.algorithm else ""
    for host, (_, device), (_, its) in zip(star.names, star.ports[::2], star.ports[1::2], strict=True):
        sides = [f"{device} netns {prefix}{host}", f"{its} netns {prefix}{SWITCH}"]
        made.links.append(f"link add {sides[0]} mtu {star.mtu} type veth peer name {sides[1]} mtu {star.mtu}")
        made.addresses[prefix + host] = [
            "link set lo up",
            f"link set {device} up",
            f"addr add {address(host)}/8 dev {device} noprefixroute",
            f"route add {NETWORK} dev {device} src {address(host)}{congctl}",
        ]
        bridge.append(f"link set {its} master {BRIDGE} up")
    made.addresses[prefix + SWITCH] = bridge
    if star.tbf:
        for name, device in star.ports:
            line = f"qdisc add dev {device} root handle {HANDLE} {star.tbf}"
            made.queues.setdefault(prefix + name, []).append(line)
    return made


def built(star: Star) -> AbstractContextManager[Processes]:
    """Create a network for the duration of the context. The context yields the network's programs.

    Raises:
        KernelError: if the kernel refuses a part. Before this error, all created objects are removed.
    """
    return created(lambda prefix: commands(star, prefix))


def wait(what: str, running: subprocess.Popen[bytes], seconds: float, is_cancelled: IsCancelled) -> None:
    """Wait until a program ends.

    Raises:
        KernelError: if the program does not end in time.
        KeyboardInterrupt: if the run was cancelled.
    """
    until = time.monotonic() + seconds
    while running.poll() is None:
        if is_cancelled():
            raise KeyboardInterrupt
        if time.monotonic() > until:
            raise KernelError(f"{what} did not end within {seconds:g} s")
        time.sleep(_NAP_SECONDS)


def drops(star: Star, prefix: str) -> dict[str, dict[str, int]]:
    """The counters of tbf at each port: bytes, packets and drops."""
    found = {}
    for name, device in star.ports:
        words = ["tc", "-n", prefix + name, "-s", "-j", "qdisc", "show", "dev", device]
        for qdisc in json.loads(run(words)):
            if qdisc.get("kind") == "tbf":
                found[device] = {key: int(qdisc.get(key, 0)) for key in ("bytes", "packets", "drops")}
    return found
