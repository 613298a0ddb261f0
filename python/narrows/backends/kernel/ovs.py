"""Nodes that are Open vSwitch bridges. Each node has its own ovsdb-server and ovs-vswitchd in its namespace.

The datapath is the kernel module (`system`) or the userspace datapath (`netdev`). Each namespace has its own
instance of the kernel module. The userspace datapath needs no module and reads frames from packet sockets.
With this datapath, frames must therefore have complete checksums and must not be super-packets. `commands`
therefore turns off all offloads.
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
"""Socket options that set a buffer's size beyond net.core.wmem_max or rmem_max (asm-generic/socket.h)."""
_CONTROL = "control"
"""The daemon's socket for ovs-appctl(8)."""
_HELLO = bytes.fromhex("ffffffffffff 026effffffff 0806 0001 0800 06 04 0001 026effffffff") + bytes(14 + 18)

MODULE = Path("/sys/module/openvswitch")
"""A folder that exists while the kernel module is loaded."""

SCHEMAS = [Path(root, "share/openvswitch/vswitch.ovsschema") for root in ("/usr", "/usr/local")]


def configuration(layout: Layout, node: int) -> list[str]:
    """Return the arguments of ovs-vsctl(8) that create a node's bridge.

    With `fail_mode = secure` the bridge forwards nothing without flow entries.
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
    """Arguments of ovs-vsctl(8) that connect a node's bridge to the SDN controller."""
    target = f"tcp:{control.CONTROLLER}:{control.OPENFLOW}"
    words = ["--", "set", "bridge", BRIDGE, "protocols=OpenFlow13"]
    words += [f"other-config:datapath-id={control.datapath(node):016x}"]
    words += ["--", "set-controller", BRIDGE, target]
    # A scenario can stop the controller for a while. The bridge's connection to the controller must survive
    # such an outage.
    return [
        *words,
        *("--", "set", "controller", BRIDGE),
        *("connection-mode=out-of-band", "max_backoff=1000", "inactivity_probe=0"),
    ]


def flows(layout: Layout, node: int) -> list[str]:
    """Return the entries of a node's flow table for ovs-ofctl(8), which follow from the layout's crossings.

    The list is empty if the SDN controller installs the entries.
    """
    if layout.control:
        return []
    numbers = {port.device: control.port_number(port.link) for port in _ports(layout, node)}
    return [f"dl_dst={c.mac},actions=output:{numbers[c.device]}" for c in layout.crossings if c.node == node]


def by_module(layout: Layout) -> bool:
    """Whether a layout uses the kernel module as a datapath."""
    return "ovs" in layout.kinds and layout.datapath == "system"


def start(layout: Layout, programs: Processes) -> None:
    """Start the switches of a layout whose namespaces and devices exist.

    Raises:
        KernelError: if a command fails. The text is the command's message.
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
    """The datapath report of each bridge at the end of the run: type, ports, misses."""
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
    """Enlarge the buffers of the daemon's packet sockets to hold the queues.

    Packets in a qdisc behind a bridge are charged to the bridge's sending socket. Packets that the bridge has
    not read yet are charged to the port's socket. By default each socket has a buffer of 212,992 bytes. The
    kernel charges 2,304 bytes for a full frame, so such a buffer holds only 92 full frames, regardless of the
    queue's limit. Packets that do not fit into the buffer would be dropped without being counted.
    """
    # The daemon opens the socket when it first sends a packet. The first packet is an ARP packet without the
    # address of any host.
    words = f"in_port=controller packet={_HELLO.hex()} actions=output:{control.port_number(port.link)}"
    call(["ovs-ofctl", "-O", "OpenFlow13", "packet-out", bridge, words], [""])
    for made in sockets.sockets_of(pid):
        with made:
            if made.family == socket.AF_PACKET:
                for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
                    made.setsockopt(socket.SOL_SOCKET, option, size)


def _ports(layout: Layout, node: int) -> list[Port]:
    return [port for port in layout.ports if port.node == node]
