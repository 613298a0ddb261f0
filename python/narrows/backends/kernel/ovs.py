"""Nodes that are Open vSwitch bridges: one ovsdb-server and ovs-vswitchd each, inside the node's namespace.

The datapath is the userspace one (netdev), which needs no module. It takes frames by packet socket, so they
must carry whole checksums and be no super-packets: all offloads of all devices are off then (`commands`).
"""

from __future__ import annotations

import os
from pathlib import Path

from narrows.backends.kernel.commands import BRIDGE
from narrows.backends.kernel.layout import Layout, Port
from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.shell import call

SCHEMAS = [Path(root, "share/openvswitch/vswitch.ovsschema") for root in ("/usr", "/usr/local")]


def port_number(port: Port) -> int:
    """OpenFlow's number of a port: the link's and one, since 0 is none."""
    return port.link + 1


def configuration(layout: Layout, node: int) -> list[str]:
    """Arguments of ovs-vsctl(8) that make a node's bridge. Pure."""
    words = [
        "--",
        "add-br",
        BRIDGE,
        "--",
        "set",
        "bridge",
        BRIDGE,
        "datapath_type=netdev",
        "fail_mode=secure",
    ]
    for port in _ports(layout, node):
        words += ["--", "add-port", BRIDGE, port.device]
        words += ["--", "set", "interface", port.device, f"ofport_request={port_number(port)}"]
    return words


def flows(layout: Layout, node: int) -> list[str]:
    """A node's table of flows for ovs-ofctl(8): the layout's crossings. Pure."""
    numbers = {port.device: port_number(port) for port in _ports(layout, node)}
    return [f"dl_dst={c.mac},actions=output:{numbers[c.device]}" for c in layout.crossings if c.node == node]


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
    folder = programs.folder / f"ovs-{name}"
    folder.mkdir()
    env = {**os.environ, **{f"OVS_{kind}DIR": str(folder) for kind in ("RUN", "LOG", "DB", "SYSCONF")}}
    database, socket = folder / "conf.db", folder / "db.sock"
    schema = next((path for path in SCHEMAS if path.exists()), SCHEMAS[0])
    call(["ovsdb-tool", "create", str(database), str(schema)], [""])
    remote = f"unix:{socket}"
    programs.start(name, f"ovsdb-{name}", ["ovsdb-server", str(database), f"--remote=p{remote}"], env)
    programs.wait_for("ovsdb-server", socket.exists)
    call(["ovs-vsctl", f"--db={remote}", "--no-wait", "init"], [""])
    programs.start(name, f"vswitchd-{name}", ["ovs-vswitchd", remote], env)
    call(["ovs-vsctl", f"--db={remote}", "--timeout=10", *configuration(layout, node)], [""])
    control = f"unix:{folder / BRIDGE}.mgmt"
    programs.wait_for("ovs-vswitchd", (folder / f"{BRIDGE}.mgmt").exists)
    call(["ovs-ofctl", "add-flows", control, "-"], flows(layout, node))


def _ports(layout: Layout, node: int) -> list[Port]:
    return [port for port in layout.ports if port.node == node]
