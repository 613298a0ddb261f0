"""Nodes that are Open vSwitch bridges: one ovsdb-server and ovs-vswitchd each, inside the node's namespace.

The datapath is the kernel's module (`system`), of which each namespace has its own, or the one in user space
(`netdev`), which needs no module. That one takes frames by packet socket, so they must carry whole checksums
and be no super-packets: all offloads of all devices are off then (`commands`).
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from narrows.backends.kernel import control, sockets
from narrows.backends.kernel.commands import BRIDGE
from narrows.backends.kernel.layout import Layout, Port
from narrows.backends.kernel.processes import REAL_TIME, Processes
from narrows.backends.kernel.shell import call

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
"""Beyond net.core.wmem_max and rmem_max (asm-generic/socket.h)."""
_CONTROL = "control"
"""The daemon's socket for ovs-appctl(8)."""
_HELLO = bytes.fromhex("ffffffffffff 026effffffff 0806 0001 0800 06 04 0001 026effffffff") + bytes(14 + 18)

MODULE = Path("/sys/module/openvswitch")
"""There while the kernel's datapath is."""

SCHEMAS = [Path(root, "share/openvswitch/vswitch.ovsschema") for root in ("/usr", "/usr/local")]


def configuration(layout: Layout, node: int) -> list[str]:
    """Arguments of ovs-vsctl(8) that make a node's bridge. Pure.

    Without the entries of a controller nothing is forwarded (`fail_mode`), by no idea of the bridge's own.
    """
    words = [
        "--",
        "add-br",
        BRIDGE,
        "--",
        "set",
        "bridge",
        BRIDGE,
        f"datapath_type={layout.datapath}",
        "fail_mode=secure",
    ]
    for port in _ports(layout, node):
        words += ["--", "add-port", BRIDGE, port.device]
        number = control.port_number(port.link)
        words += ["--", "set", "interface", port.device, f"ofport_request={number}"]
    return words + (_controller(node) if layout.control else [])


def _controller(node: int) -> list[str]:
    """What hands a node's bridge to the SDN controller."""
    target = f"tcp:{control.CONTROLLER}:{control.OPENFLOW}"
    words = ["--", "set", "bridge", BRIDGE, "protocols=OpenFlow13"]
    words += [f"other-config:datapath-id={control.datapath(node):016x}"]
    words += ["--", "set-controller", BRIDGE, target]
    # It stays connected to one that is out of order for a while, as the scenario says.
    return [
        *words,
        *("--", "set", "controller", BRIDGE),
        *("connection-mode=out-of-band", "max_backoff=1000", "inactivity_probe=0"),
    ]


def flows(layout: Layout, node: int) -> list[str]:
    """A node's table of flows for ovs-ofctl(8): the layout's crossings. Pure.

    None where a controller forwards.
    """
    if layout.control:
        return []
    numbers = {port.device: control.port_number(port.link) for port in _ports(layout, node)}
    return [f"dl_dst={c.mac},actions=output:{numbers[c.device]}" for c in layout.crossings if c.node == node]


def by_module(layout: Layout) -> bool:
    """Whether the kernel's module forwards somewhere in a layout."""
    return "ovs" in layout.kinds and layout.datapath == "system"


def start(layout: Layout, programs: Processes) -> None:
    """Start the switches of a layout that has been made.

    Raises:
        KernelError: with the words of what failed.
    """
    for node, kind in enumerate(layout.kinds):
        if kind == "ovs":
            _start(layout, node, programs)


def _start(layout: Layout, node: int, programs: Processes) -> None:
    name = layout.namespace(node)
    folder = _folder(layout, node, programs)
    folder.mkdir()
    env = {**os.environ, **{f"OVS_{kind}DIR": str(folder) for kind in ("RUN", "LOG", "DB", "SYSCONF")}}
    database, listening = folder / "conf.db", folder / "db.sock"
    schema = next((path for path in SCHEMAS if path.exists()), SCHEMAS[0])
    call(["ovsdb-tool", "create", str(database), str(schema)], [""])
    remote = f"unix:{listening}"
    programs.start(name, f"ovsdb-{name}", ["ovsdb-server", str(database), f"--remote=p{remote}"], env)
    programs.wait_for("ovsdb-server", listening.exists)
    call(["ovs-vsctl", f"--db={remote}", "--no-wait", "init"], [""])
    daemon = programs.start(
        name, f"vswitchd-{name}", [*REAL_TIME, "ovs-vswitchd", f"--unixctl={folder / _CONTROL}", remote], env
    )
    call(["ovs-vsctl", f"--db={remote}", "--timeout=10", *configuration(layout, node)], [""])
    bridge = f"unix:{folder / BRIDGE}.mgmt"
    programs.wait_for("ovs-vswitchd", (folder / f"{BRIDGE}.mgmt").exists)
    call(["ovs-ofctl", "add-flows", bridge, "-"], flows(layout, node))
    if not by_module(layout):
        _widen(bridge, _ports(layout, node)[0], daemon.pid, layout.send_buffer)


def logs(layout: Layout, programs: Processes) -> dict[str, str]:
    """What each bridge says of its datapath at the run's end: its type, its ports, its misses."""
    return {
        f"ovs-{layout.nodes[node]}.txt": call(
            ["ovs-appctl", f"--target={_folder(layout, node, programs) / _CONTROL}", "dpctl/show", "-s"], [""]
        )
        for node, kind in enumerate(layout.kinds)
        if kind == "ovs"
    }


def _folder(layout: Layout, node: int, programs: Processes) -> Path:
    return programs.folder / f"ovs-{layout.namespace(node)}"


def _widen(bridge: str, port: Port, pid: int, size: int) -> None:
    """Give the daemon's packet sockets room for what is queued.

    All that waits in a qdisc behind a bridge is charged to the one socket that it sends by, and all that it
    has not taken yet to the one of the port: by default 92 full frames each (212,992 bytes, 2,304 for one),
    whatever the queue's limit is, and what is beyond is dropped unseen.
    """
    # It opens the socket when it sends for the first time: an ARP packet of no host to no host.
    words = f"in_port=controller packet={_HELLO.hex()} actions=output:{control.port_number(port.link)}"
    call(["ovs-ofctl", "-O", "OpenFlow13", "packet-out", bridge, words], [""])
    for made in sockets.sockets_of(pid):
        with made:
            if made.family == socket.AF_PACKET:
                for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
                    made.setsockopt(socket.SOL_SOCKET, option, size)


def _ports(layout: Layout, node: int) -> list[Port]:
    return [port for port in layout.ports if port.node == node]
