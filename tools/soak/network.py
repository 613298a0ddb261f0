"""The network of a soak, in namespaces: two senders, a router, a receiver and an attacker.

    s1 --+
    s2 --+-- router == c        == 100 Mbit/s, controlled at the router
    x  --+

The attacker x is not on the path of the flows. Each interface of the router has the name of the host behind
it. The interface of each host is called `r`. The base class and the keys come from the controller's tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/python/controller"))

from agents_lab import Agents, TimelyLab, keys_of  # noqa: E402
from ovs_lab import ROUTER_SYSCTLS, Shape, run  # noqa: E402
from schedule import CONTROLLERS  # noqa: E402

SENDERS = ("s1", "s2")
HOSTS = (*SENDERS, "x", "c")
RATE_MBIT = 100
WIRE_MBIT = 200
"""Rate of a sender's cable. This rate limits the load on the machine while the switch does not run."""


class Network(TimelyLab):
    """Namespaces, cables and keys. `close` ends all programs and removes everything."""

    def __init__(self, folder: Path) -> None:
        keys = keys_of(folder, "switch", controllers=CONTROLLERS)
        keys.join("agents", ("switch", *CONTROLLERS))
        super().__init__(folder, Shape((), dict.fromkeys(HOSTS, "")), tag="soak", keys=keys)
        self.agents = Agents(self)

    def address(self, host: str, end: int = 1) -> str:
        """The address of a host (`end` 1), or of the router's interface to it (2)."""
        return f"10.78.{HOSTS.index(host) + 1}.{end}"

    def _build(self) -> None:
        self._add_namespaces(ROUTER_SYSCTLS)
        for host in HOSTS:
            self.connect(host)

    def connect(self, host: str) -> None:
        """Connects a host to the router by a cable."""
        space = self.hosts[host]
        run(
            "ip", "link", "add", host, "netns", self.net, "type", "veth", "peer", "name", "r", "netns", space
        )  # fmt: skip
        for where, interface, end in ((self.net, host, 2), (space, "r", 1)):
            self.inside(where, "ip", "address", "add", f"{self.address(host, end)}/24", "dev", interface)
            self.inside(where, "ip", "link", "set", interface, "up")
        self.inside(space, "ip", "route", "add", "default", "via", self.address(host, 2))
        if host in SENDERS:
            words = ["rate", f"{WIRE_MBIT}mbit", "burst", "64kb", "limit", "1500000"]
            self.inside(space, "tc", "qdisc", "add", "dev", "r", "root", "tbf", *words)

    def disconnect(self, host: str) -> None:
        """Removes the cable. Both interfaces vanish."""
        self.inside(self.net, "ip", "link", "delete", host)

    def set_link(self, host: str, state: str) -> None:
        """Sets the router's interface to a host up or down. This changes the carrier of both ends."""
        self.inside(self.net, "ip", "link", "set", host, state)
