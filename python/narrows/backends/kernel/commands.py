"""Translates a layout into input for ip(8), tc(8), bridge(8) and sh(1). Tests compare this text.

The batch modes of these tools configure a whole namespace in one process. Sending netlink messages instead
would need more code and save little time. No packet is larger than one MTU, so qdiscs, relays and agents see
the same frames as a wire would carry.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from narrows.backends.kernel import control
from narrows.backends.kernel.layout import WIRE, Layout, Port, Relay
from narrows.backends.kernel.netem import Netem
from narrows.backends.kernel.queues import FRAME, Qdisc, burst

OFFLOADS_OFF = ("tso", "gso", "gro")
"""Names (as in ethtool(8)) of the features that are turned off on every device."""
HANDLE = "1:"
"""Handle of the qdisc at a port."""
BRIDGE = "sw0"
"""Name of the bridge in the namespace of a node that is a bridge."""
_ROOT_CLASS = "1:1000"


@dataclass
class Commands:
    """The commands that create a network in namespaces."""

    namespaces: list[str]
    """Names of the namespaces, each of which begins with the prefix of the run."""
    settings: dict[str, list[str]] = field(default_factory=dict)
    """Sysctls for each namespace. The sysctls are set before any device exists, because a new device copies
    the `default` values."""
    links: list[str] = field(default_factory=list)
    """Input lines for ``ip -batch`` in the caller's namespace."""
    addresses: dict[str, list[str]] = field(default_factory=dict)
    """Input lines for ``ip -batch`` in each namespace."""
    offloads: dict[str, list[str]] = field(default_factory=dict)
    """Commands for sh in each namespace."""
    crossings: dict[str, list[str]] = field(default_factory=dict)
    """Input lines for ``bridge -batch`` in each namespace."""
    queues: dict[str, list[str]] = field(default_factory=dict)
    """Input lines for ``tc -batch`` in each namespace."""


def commands(layout: Layout, prefix: str) -> Commands:
    """The commands that create a layout."""
    result = Commands([prefix + name for name in layout.namespaces()])
    for name in result.namespaces:
        result.settings[name] = _settings(layout)
        result.addresses[name] = ["link set dev lo up"]
        result.offloads[name] = []
    for veth in layout.veths:
        result.links.append(_veth(layout, veth.ends, prefix))
        for namespace, device in veth.ends:
            result.addresses[prefix + namespace].append(f"link set dev {device} up")
            result.offloads[prefix + namespace].append(_offloads(device, layout))
    for port in layout.ports:
        _node_port(layout, port, prefix, result)
    _endpoints(layout, prefix, result)
    if layout.control:
        pairs, inside = control.commands(layout, prefix)
        result.links += pairs
        for name, lines in inside.items():
            result.addresses[name] += lines
    for relay in layout.relays:
        if relay.netem is not None:
            result.queues.setdefault(wire(prefix), []).extend(_netem(relay, relay.netem))
    for match in layout.matches:
        port = layout.ports[match.link]
        result.queues[prefix + layout.namespace(port.node)].append(
            f"filter add dev {port.device} parent {HANDLE} protocol ip prio 1 u32 "
            f"match ip dst {match.address}/32 flowid 1:{match.klass + 1:x}"
        )
    return result


def rate_change(device: str, qdisc: Qdisc, rate: int) -> str:
    """The line for ``tc -batch`` that sets a port's rate (bytes/s) during the run."""
    return _class("change", device, _ROOT_CLASS if qdisc.classes else "1:1", HANDLE, rate, rate)


def _settings(layout: Layout) -> list[str]:
    receive, send = layout.receive_buffer, layout.send_buffer
    sysctls = {
        "net.ipv6.conf.all.disable_ipv6": "1",  # the links' counters would include router solicitations
        "net.ipv6.conf.default.disable_ipv6": "1",
        "net.ipv4.ip_forward": "1",
        "net.ipv4.conf.all.rp_filter": "0",  # ACKs may take another path
        "net.ipv4.conf.default.rp_filter": "0",
        "net.ipv4.conf.all.send_redirects": "0",
        "net.ipv4.conf.default.send_redirects": "0",
        "net.ipv4.tcp_no_metrics_save": "1",  # a flow must not inherit metrics of an earlier flow
        "net.ipv4.tcp_rmem": f"4096 {receive} {receive}",
        "net.ipv4.tcp_wmem": f"4096 {send} {send}",
    }
    return [f"echo '{value}' > /proc/sys/{key.replace('.', '/')}" for key, value in sysctls.items()]


def _veth(layout: Layout, ends: tuple[tuple[str, str], tuple[str, str]], prefix: str) -> str:
    macs = {port.device: f" address {port.mac}" for port in layout.ports}
    # TCP builds super-packets regardless of the device's features, and a qdisc sees a super-packet as one
    # packet. A device with gso_max_segs 1 prevents super-packets (sk_setup_caps, net/core/sock.c).
    sides = [
        f"{device} netns {prefix}{namespace} mtu {layout.mtu}{macs.get(device, '')} "
        "numtxqueues 1 numrxqueues 1 gso_max_segs 1"
        for namespace, device in ends
    ]
    return f"link add {sides[0]} type veth peer name {sides[1]}"


def _offloads(device: str, layout: Layout) -> str:
    # Open vSwitch's userspace datapath forwards frames unchanged, even frames with partial checksums.
    features = (*OFFLOADS_OFF, "tx") if "ovs" in layout.kinds else OFFLOADS_OFF
    return f"ethtool -K {device} " + " ".join(f"{name} off" for name in features)


def _node_port(layout: Layout, port: Port, prefix: str, result: Commands) -> None:
    name = prefix + layout.namespace(port.node)
    kind = layout.kinds[port.node]
    lines = result.addresses[name]
    if kind == "bridge":
        if f"link set dev {BRIDGE} up" not in lines:
            lines[1:1] = [
                f"link add name {BRIDGE} type bridge stp_state 0 mcast_snooping 0",
                f"link set dev {BRIDGE} up",
            ]
        lines.append(f"link set dev {port.device} master {BRIDGE}")
        quiet = "learning off flood off mcast_flood off bcast_flood off"
        result.crossings.setdefault(name, []).append(f"link set dev {port.device} {quiet}")
    elif kind != "ovs":
        lines.append(f"addr add {port.address}/32 dev {port.device}")
    if port.queue is not None:
        result.queues.setdefault(name, []).extend(_queue(port.device, port.queue))


def _endpoints(layout: Layout, prefix: str, result: Commands) -> None:
    macs = {port.address: port.mac for port in layout.ports}
    for ends in layout.endpoints:
        for node, address in ((ends.source, ends.source_address), (ends.to, ends.to_address)):
            result.addresses[prefix + layout.namespace(node)].append(f"addr add {address}/32 dev lo")
    neighbours: dict[tuple[str, str], None] = {}
    for hop in layout.hops:
        name = prefix + layout.namespace(hop.node)
        if (name, hop.via) not in neighbours:
            neighbours[name, hop.via] = None
            result.addresses[name].append(
                f"neigh add {hop.via} lladdr {macs[hop.via]} dev {hop.device} nud permanent"
            )
        source = f" src {hop.source}" if hop.source else ""
        features = " features ecn" if hop.ecn else ""
        initial = f" initcwnd {hop.initial_window}" if hop.initial_window else ""
        congestion = f" congctl {hop.congestion}" if hop.congestion else ""
        options = f"{source}{features}{initial}{congestion}"
        result.addresses[name].append(f"route add {hop.to}/32 via {hop.via} dev {hop.device} onlink{options}")
    for crossing in layout.crossings:
        if layout.kinds[crossing.node] == "bridge":
            result.crossings.setdefault(prefix + layout.namespace(crossing.node), []).append(
                f"fdb replace {crossing.mac} dev {crossing.device} master static"
            )


def leaf_classes(queue: Qdisc) -> list[str]:
    """The HTB classes that a port's packets enter, in the notation of tc(8).

    The port's counters are the sums of these classes' counters.
    """
    return [f"1:{number + 1:x}" for number in range(max(1, len(queue.classes)))]


def _netem(relay: Relay, netem: Netem) -> list[str]:
    lines = [
        f"qdisc add dev {relay.ingress} clsact",
        f"filter add dev {relay.ingress} ingress matchall action mirred egress redirect dev {relay.egress}",
    ]
    if netem.delay or netem.loss:
        lines.append(f"qdisc add dev {relay.egress} root handle {HANDLE} {netem.words()}")
    return lines


def _queue(device: str, queue: Qdisc) -> list[str]:
    lines = [
        f"qdisc add dev {device} root handle {HANDLE} stab overhead -14 linklayer ethernet htb default 1"
    ]
    if queue.leaf is not None:
        lines.append(_class("add", device, "1:1", HANDLE, queue.rate, queue.rate))
        lines.append(f"qdisc add dev {device} parent 1:1 handle 10: {queue.leaf.words()}")
        return lines
    lines.append(_class("add", device, _ROOT_CLASS, HANDLE, queue.rate, queue.rate))
    for i, entry in enumerate(queue.classes):
        child = f"1:{i + 1:x}"
        lines.append(_class("add", device, child, _ROOT_CLASS, entry.rate, entry.ceil, entry.priority))
        lines.append(f"qdisc add dev {device} parent {child} handle {0x10 + i:x}: {entry.leaf.words()}")
    return lines


def _class(verb: str, device: str, name: str, parent: str, rate: int, ceil: int, priority: int = 0) -> str:
    # The rates are bytes/s (tc(8) calls this unit "bps").
    return (
        f"class {verb} dev {device} parent {parent} classid {name} htb rate {rate}bps ceil {ceil}bps "
        f"burst {burst(rate)} cburst {burst(ceil)} quantum {FRAME} prio {priority}"
    )


def wire(prefix: str) -> str:
    """Name of the namespace of relays."""
    return prefix + WIRE
