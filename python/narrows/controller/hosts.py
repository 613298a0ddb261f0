"""Learns the locations of hosts from the source addresses of frames at edge ports."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from narrows.controller.messages import PortKey

HOSTS_PER_PORT = 1024
"""Maximum number of hosts that are learnt at a port. The maximum limits the effect of forged addresses.
Hosts beyond the maximum stay unknown, so frames to them are flooded."""
ADDRESSES_PER_HOST = 16
"""Maximum number of IP addresses that are kept for a host. Forwarding does not use IP addresses, but PACEC
uses them to find the path of a flow."""
HOSTS_REMEMBERED = 4096
"""Maximum number of hosts whose addresses are kept after their port was removed."""


@dataclass(slots=True)
class Host:
    """A host."""

    mac: str
    at: PortKey
    seen_ns: int
    """Time at which the host was learnt or last moved."""
    ips: dict[str, None] = field(default_factory=dict)
    """The host's IP addresses in the order in which they were first seen."""


class Learnt(Enum):
    """The result of learning from a frame."""

    NOTHING = "nothing"
    NEW = "new"
    MOVED = "moved"


class Hosts:
    """All known hosts by MAC address."""

    def __init__(self) -> None:
        self.by_mac: dict[str, Host] = {}
        self._by_ip: dict[str, str] = {}
        """For each IP address, the MAC address of the host that used it last."""
        self._remembered: dict[str, dict[str, None]] = {}
        """Addresses of hosts whose port was removed, by MAC address."""

    def learn(self, now_ns: int, at: PortKey, mac: str, ip: str | None) -> Learnt:
        """Learns from a frame from `mac` at the edge port `at`."""
        if is_group(mac) or mac == "00:00:00:00:00:00":
            return Learnt.NOTHING
        host = self.by_mac.get(mac)
        learnt = Learnt.NOTHING
        if host is None:
            if sum(other.at == at for other in self.by_mac.values()) >= HOSTS_PER_PORT:
                return Learnt.NOTHING
            host = self.by_mac[mac] = Host(mac, at, now_ns, self._remembered.pop(mac, {}))
            self._by_ip |= dict.fromkeys(host.ips, mac)
            learnt = Learnt.NEW
        elif host.at != at:
            host.at, host.seen_ns = at, now_ns
            learnt = Learnt.MOVED
        if ip is not None:
            host.ips.pop(ip, None)
            host.ips[ip] = None
            self._by_ip[ip] = mac
            while len(host.ips) > ADDRESSES_PER_HOST:
                self._forget_address(next(iter(host.ips)), host)
        return learnt

    def find(self, ip: str) -> Host | None:
        """The host with this address."""
        return self.by_mac.get(self._by_ip.get(ip, ""))

    def forget(self, mac: str) -> bool:
        """Removes a host."""
        host = self.by_mac.pop(mac, None)
        if host is None:
            return False
        for ip in list(host.ips):
            self._forget_address(ip, host)
        return True

    def _forget_address(self, ip: str, host: Host) -> None:
        del host.ips[ip]
        if self._by_ip.get(ip) == host.mac:
            del self._by_ip[ip]

    def forget_at(self, gone: PortKey) -> bool:
        """Removes the hosts of a port that is no longer an edge."""
        macs = [mac for mac, host in self.by_mac.items() if host.at == gone]
        for mac in macs:
            self._remembered[mac] = dict(self.by_mac[mac].ips)
            self.forget(mac)
        while len(self._remembered) > HOSTS_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        return bool(macs)


def is_group(mac: str) -> bool:
    """Whether `mac` is a multicast or broadcast address (IEEE 802: the lowest bit of the first octet)."""
    return int(mac[:2], 16) & 1 == 1
