"""Stores switches, ports and links. Links are learnt from LLDP.

A port starts as *probing*. Only LLDP is sent and received at a probing port. If LLDP shows a switch at the
other end, the port becomes a *trunk*. If LLDP shows no switch for some time, the port becomes an *edge*.
Without the probing phase, frames would be flooded to a new link before LLDP can cross it. A cable that closes
a ring would then cause a loop until LLDP reveals the link.

A trunk that LLDP no longer crosses stays a trunk until its carrier is lost, but forwards nothing. The reason
is that the switch at the other end may have lost its connection to the controller. Such a switch continues to
flood according to its last entries. If the port became an edge, there would be a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from narrows.controller.messages import PortDesc, PortKey


class Kind(Enum):
    """The kind of a port.

    The kind says what is at the other end: hosts (edge), a switch (trunk), or not yet known (probing).
    """

    DOWN = "down"
    PROBING = "probing"
    EDGE = "edge"
    TRUNK = "trunk"


@dataclass(slots=True)
class Port:
    """A port of a connected switch."""

    desc: PortDesc
    kind: Kind
    decide_at_ns: int
    """Time at which a probing port becomes an edge."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link that LLDP has crossed in both directions. `a` is the lower end."""

    a: PortKey
    b: PortKey

    def other(self, end: PortKey) -> PortKey:
        """The end that is not `end`, which must be one of the link's two ends."""
        return self.b if end == self.a else self.a


class Topology:
    """The known network. Methods that change the topology return whether forwarding is affected.

    Args:
        probe_ns: time after which a probing port without LLDP from another switch becomes an edge.
        expire_ns: time after which one direction of a link is removed if no LLDP crosses it.
    """

    def __init__(self, probe_ns: int, expire_ns: int) -> None:
        self.probe_ns = probe_ns
        self.expire_ns = expire_ns
        self.switches: dict[int, dict[int, Port]] = {}
        self._seen: dict[PortKey, tuple[PortKey, int]] = {}
        """For each receiving port, the port that sent the last LLDP frame, and the frame's arrival time."""

    def add_switch(
        self, now_ns: int, dpid: int, ports: tuple[PortDesc, ...], trunks: Iterable[int] = ()
    ) -> None:
        """Adds a switch. `trunks` are the ports that were trunks during the switch's last connection."""
        self.remove_switch(dpid)
        self.switches[dpid] = {}
        for desc in ports:
            self.set_port(now_ns, dpid, desc)
        for number in trunks:
            port = self.port((dpid, number))
            if port is not None and port.kind is Kind.PROBING:
                port.kind = Kind.TRUNK

    def remove_switch(self, dpid: int) -> bool:
        """Removes a switch."""
        for port in list(self.switches.get(dpid, {})):
            self._forget((dpid, port))
        return self.switches.pop(dpid, None) is not None

    def set_port(self, now_ns: int, dpid: int, desc: PortDesc) -> bool:
        """Adds or changes a port."""
        ports = self.switches.get(dpid)
        if ports is None:
            return False
        before = ports.get(desc.number)
        if before is not None and before.desc.up == desc.up:
            before.desc = desc
            return False
        self._forget((dpid, desc.number))
        kind = Kind.PROBING if desc.up else Kind.DOWN
        ports[desc.number] = Port(desc, kind, now_ns + self.probe_ns)
        return True

    def remove_port(self, dpid: int, port: int) -> bool:
        """Removes a port."""
        self._forget((dpid, port))
        return self.switches.get(dpid, {}).pop(port, None) is not None

    def lldp(self, now_ns: int, to: PortKey, source: PortKey) -> bool:
        """Handles LLDP from `source` that arrived at `to`."""
        at, origin = self.port(to), self.port(source)
        if at is None or origin is None or Kind.DOWN in (at.kind, origin.kind) or to == source:
            return False
        before = self._seen.get(to)
        self._seen[to] = (source, now_ns)
        # From the first frame on, both ends are treated as trunks, not as ports of hosts. The link itself is
        # used only when LLDP crosses it in both directions.
        changed = before is None or before[0] != source or Kind.TRUNK not in (at.kind, origin.kind)
        at.kind = origin.kind = Kind.TRUNK
        return changed

    def tick(self, now_ns: int) -> bool:
        """Turns probing ports that receive no LLDP into edges, and removes links without LLDP."""
        changed = False
        for to, (_, at) in list(self._seen.items()):
            if now_ns - at >= self.expire_ns:
                self._forget(to)
                changed = True
        for ports in self.switches.values():
            for port in ports.values():
                if port.kind is Kind.PROBING and port.decide_at_ns <= now_ns:
                    port.kind = Kind.EDGE
                    changed = True
        return changed

    def next_timer_ns(self) -> int | None:
        """Time of the next call of `tick`."""
        times = [at + self.expire_ns for _, at in self._seen.values()]
        ports = (port for ports in self.switches.values() for port in ports.values())
        times += [port.decide_at_ns for port in ports if port.kind is Kind.PROBING]
        return min(times, default=None)

    def port(self, key: PortKey) -> Port | None:
        """A port of a connected switch."""
        return self.switches.get(key[0], {}).get(key[1])

    def ports(self, kind: Kind) -> Iterator[PortKey]:
        """All ports of a kind, sorted by switch and number."""
        for dpid in sorted(self.switches):
            for number in sorted(self.switches[dpid]):
                if self.switches[dpid][number].kind is kind:
                    yield (dpid, number)

    def live_ports(self) -> Iterator[PortKey]:
        """All ports that are up."""
        for kind in (Kind.PROBING, Kind.EDGE, Kind.TRUNK):
            yield from self.ports(kind)

    def links(self) -> list[Link]:
        """Links that work in both directions, sorted."""
        return [
            Link(to, source)
            for to, (source, _) in sorted(self._seen.items())
            if to < source and self._seen.get(source, (None, 0))[0] == to
        ]

    def _forget(self, key: PortKey) -> None:
        """Removes the link of a port.

        The port at the link's other end stays a trunk without a link, as the docstring of this module
        explains.
        """
        for end in [key, *(to for to, (source, _) in self._seen.items() if source == key)]:
            self._seen.pop(end, None)
