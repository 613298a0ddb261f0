"""Open vSwitch for tests. All bridges are in one network namespace, and each host has its own namespace.

The bridges use the userspace datapath, because the kernel's datapath may be missing. They use a database and
a daemon of their own, so the system's Open vSwitch is not changed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
TOOLS = ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ip", "ethtool", "nsenter"]


@dataclass(frozen=True)
class Shape:
    """The links between bridges, and the bridge of each host.

    The first host has the address 10.9.0.1, the second 10.9.0.2, and so on.
    """

    links: tuple[tuple[str, str], ...]
    hosts: dict[str, str]

    def switches(self):
        return sorted({end for link in self.links for end in link})

    def address(self, host):
        return f"10.9.0.{1 + list(self.hosts).index(host)}"


#   h1 - s1 --- s2 - h2
#          \   /
#           s3
TRIANGLE = Shape((("s1", "s2"), ("s1", "s3"), ("s2", "s3")), {"h1": "s1", "h2": "s2"})
# A replacement for ping(8), which may be missing. Like ping, it needs ARP in both directions.
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7))
while True:
    s.sendto(*s.recvfrom(99))
"""
PING = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect(("10.9.0.2", 7))
answers = 0
for n in range(int(sys.argv[1])):
    try:
        s.send(b"%d" % n)
        while s.recv(99) != b"%d" % n:
            pass
        answers += 1
    except OSError:
        pass
    time.sleep(0.1)
print(answers)
"""
OPENFLOW, AGENTS, HTTP = 16653, 16690, 16680
ROUTER_SYSCTLS = {"ip_forward": 1, "conf/all/rp_filter": 0, "conf/default/rp_filter": 0}
"""Settings in /proc/sys/net/ipv4.

With `rp_filter` off, a router also forwards packets with forged source addresses.
"""


def require():
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    reason = ""
    if os.geteuid() != 0:
        reason = "not root"
    elif missing or not SCHEMA.exists():
        reason = f"{', '.join(missing) or SCHEMA} missing: install openvswitch-switch, ethtool, iproute2"
    elif not Path("/dev/net/tun").exists():
        reason = "no /dev/net/tun"
    if reason:
        message = f"Open vSwitch cannot run here ({reason}); the controller was NOT tried with it"
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail(message)
        pytest.skip(message)


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


class Lab:
    wrap: tuple[str, ...] = ()
    """Prefix of every program's command."""

    def __init__(self, folder, shape=TRIANGLE, tag="nrwc", keys=None, ssl=None, controllers=1):
        """`keys` are for the agents' channel. `ssl` is the switches' key, certificate and CA certificate."""
        self.folder, self.shape, self.keys = Path(folder), shape, keys
        self.ssl, self.remotes = ssl, [f"{'tcp' if ssl is None else 'ssl'}:127.0.0.1:{OPENFLOW}"]
        if controllers > 1:
            self.remotes = [f"tcp:127.0.0.1:{OPENFLOW + number}" for number in range(controllers)]
        self.tag = tag = f"{tag}{os.getpid() % 10_000}"
        self.net, self.hosts = f"{tag}n", {host: f"{tag}{host}" for host in shape.hosts}
        self.processes: list[subprocess.Popen] = []
        self.controller = None
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def inside(self, space, *command, check=True):
        return run("nsenter", f"--net=/run/netns/{space}", *command, check=check)

    def start(self, space, *command, log):
        out = (self.folder / log).open("ab")
        process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{space}", *self.wrap, *command],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        self.processes.append(process)
        return process

    def vsctl(self, *command):
        return run("ovs-vsctl", f"--db=unix:{self.folder}/db.sock", "--timeout=20", *command)

    def _add_namespaces(self, sysctls=None):
        for space in (self.net, *self.hosts.values()):
            run("ip", "netns", "add", space)
            self.inside(space, "ip", "link", "set", "lo", "up")
            for key, value in (sysctls or {}).items():
                self.inside(space, "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{key}")

    def _build(self):
        self._add_namespaces()
        for a, b in self.shape.links:
            self._veth(self.net, f"{a}-{b}", self.net, f"{b}-{a}")
        for host, switch in self.shape.hosts.items():
            self._veth(self.net, f"{switch}-{host}", self.hosts[host], "eth0")
            address = f"{self.shape.address(host)}/24"
            self.inside(self.hosts[host], "ip", "address", "add", address, "dev", "eth0")
        self.start(self.hosts["h2"], sys.executable, "-c", ECHO, log="echo.log")
        database = self.folder / "conf.db"
        run("ovsdb-tool", "create", str(database), str(SCHEMA))
        socket = self.folder / "db.sock"
        self.start(
            self.net, "ovsdb-server", str(database), f"--remote=punix:{socket}",
            f"--unixctl={self.folder}/db.ctl", log="ovsdb.log",
        )  # fmt: skip
        wait(socket.exists, "the database's socket")
        self.vsctl("--no-wait", "init")
        self.start(
            self.net, "ovs-vswitchd", f"unix:{socket}", f"--unixctl={self.folder}/vswitchd.ctl",
            f"--log-file={self.folder}/vswitchd.log", "-vconsole:off", log="vswitchd.out",
        )  # fmt: skip
        if self.ssl is not None:
            self.vsctl("set-ssl", *map(str, self.ssl))
        for number, switch in enumerate(self.shape.switches(), 1):
            ports = [f"{a}-{b}" for pair in self.shape.links for a, b in (pair, pair[::-1]) if a == switch]
            ports += [f"{switch}-{host}" for host, at in self.shape.hosts.items() if at == switch]
            command = ["--", "add-br", switch, "--", "set", "bridge", switch, "datapath_type=netdev"]
            # With `secure`, a switch that loses its controller keeps its flow entries. It adds no entry of
            # its own.
            command += ["fail_mode=secure", "protocols=OpenFlow13", f"other-config:datapath-id={number:016x}"]
            for port in ports:
                command += ["--", "add-port", switch, port]
            self.vsctl(*command[1:], "--", "set-controller", switch, *self.remotes)
            # A controller has the name of its bridge only if the bridge has one controller.
            for controller in (
                self.vsctl("get", "bridge", switch, "controller").stdout.strip("[]\n ").split(", ")
            ):
                self.vsctl("set", "controller", controller, "max_backoff=1000", "connection-mode=out-of-band")

    def _veth(self, space, name, other_space, other):
        run(
            "ip", "link", "add", name, "netns", space, "type", "veth", "peer", "name", other, "netns",
            other_space
        )  # fmt: skip
        for where, interface in ((space, name), (other_space, other)):
            # The userspace datapath accepts only packets with complete checksums.
            self.inside(
                where, "ethtool", "-K", interface, "tx", "off", "tso", "off", "gso", "off", "gro", "off"
            )
            self.inside(where, "ip", "link", "set", interface, "up")

    def start_controller(self, *arguments):
        self.controller = self.start(
            self.net, sys.executable, "-m", "narrows.cli.main", "controller", "--openflow-port",
            str(OPENFLOW), "--agents-port", str(AGENTS), "--http-port", str(HTTP),
            *([] if self.keys is None else self.keys.options()), *arguments,
            log="controller.log",
        )  # fmt: skip
        wait(lambda: self.get("agents") is not None, "the controller")

    def kill_controller(self):
        self.controller.send_signal(signal.SIGKILL)
        self.controller.wait()

    def get(self, what, port=HTTP):
        url = f"http://127.0.0.1:{port}/api/v1/{what}"
        script = f"import urllib.request as u; print(u.urlopen({url!r}, timeout=5).read().decode())"
        done = self.inside(self.net, sys.executable, "-c", script, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def ping(self, count=5):
        done = self.inside(self.hosts["h1"], sys.executable, "-c", PING, str(count))
        return int(done.stdout)

    def mac(self, interface):
        return json.loads(self.inside(self.net, "ip", "-j", "link", "show", interface).stdout)[0]["address"]

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        for space in (self.net, *self.hosts.values()):
            run("ip", "netns", "delete", space, check=False)


def wait(ready, what, seconds=60):
    """Waits for a condition. The limit only ends a test that hangs."""
    for _ in range(seconds * 5):
        if ready():
            return
        time.sleep(0.2)
    pytest.fail(f"waited in vain for {what}")
