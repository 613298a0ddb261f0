"""Data and ACKs take different routers. Each router has an agent.

             a (100 Mbit/s towards h2, controlled; the controller)
        h1 <   > h2          data through a, ACKs through b
             b

The nodes a and b are routers and not switches of Open vSwitch, because the controller sends data and ACKs
through such switches along the same path, the shortest one. The agent at b needs keys, because it reaches the
controller over the network.
"""

from __future__ import annotations

from agents_lab import Agents, TimelyLab, keys_of, start_senders
from ovs_lab import AGENTS, ROUTER_SYSCTLS, Shape, wait

A, B = "10.8.9.1", "10.8.9.2"
SENDER, RECEIVER = "10.8.1.1", "10.8.2.1"
LINKS = [("h1", "a"), ("h1", "b"), ("h2", "a"), ("h2", "b")]


class TwoWays(TimelyLab):
    """Two hosts and two routers."""

    def __init__(self, folder):
        super().__init__(
            folder, Shape((), {"h1": "", "h2": "", "b": ""}), tag="nrwt", keys=keys_of(folder, "a", "b")
        )

    def _build(self):
        self.at = {"a": self.net, **self.hosts}
        self._add_namespaces(ROUTER_SYSCTLS)
        self._address("a", "b", A, B)
        for number, (host, router) in enumerate(LINKS):
            self._address(host, router, f"10.8.{20 + number}.1", f"10.8.{20 + number}.2")
        for host, address in (("h1", SENDER), ("h2", RECEIVER)):
            self.inside(self.at[host], "ip", "address", "add", f"{address}/32", "dev", "lo")
        self._route("h1", RECEIVER, "10.8.20.2", SENDER)
        self._route("a", RECEIVER, "10.8.22.1")
        self._route("h2", SENDER, "10.8.23.2", RECEIVER)
        self._route("b", SENDER, "10.8.21.1")

    def _address(self, one, other, one_address, other_address):
        self._veth(self.at[one], f"to-{other}", self.at[other], f"to-{one}")
        for end, far, address in ((one, other, one_address), (other, one, other_address)):
            self.inside(self.at[end], "ip", "address", "add", f"{address}/24", "dev", f"to-{far}")

    def _route(self, at, to, via, source=None):
        words = ["ip", "route", "add", f"{to}/32", "via", via]
        self.inside(self.at[at], *words, *([] if source is None else ["src", source]))


def two_ways(folder):
    lab = TwoWays(folder)
    try:
        lab.agents = Agents(lab)
        lab.start_controller("--agents-host", A)
        for name, port, rate in (("a", "to-h2", "100mbit"), ("b", "to-h1", "1gbit")):
            lab.agents.start(
                lab.at[name],
                name,
                f'[switch]\nmax_flows = 1024\n[[ports]]\ninterface = "{port}"\nrate = "{rate}"\n'
                f'[controller]\naddress = "{A}:{AGENTS}"\n{lab.keys.of(name)}',
            )
        start_senders(lab, "h1", interface="to-a")
        # The receiver's agent must run before the flow, because it adds the rate option to the SYN-ACK.
        # Without the option, the sender uses CUBIC until the connection ends (BRF-93).
        lab.agents.start(lab.at["h2"], "receiver", "[receiver]\n")
        wait(lambda: lab.agents.status("receiver"), "the receiver's agent")
        lab.start(lab.at["h2"], "iperf3", "-s", "-p", "5201", log="iperf3.log")
        wait(lambda: len(lab.get("agents")) == 2, "both agents")
    except BaseException:
        lab.close()
        raise
    return lab
