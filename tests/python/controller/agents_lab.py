"""The test network of `ovs_lab`, with BRF's agents at the ports of Open vSwitch.

        h1 - s1 === s2 - h3          === 100 Mbit/s, controlled where s1 sends
        h2 - s1

The agent's eBPF programs are at the egress of the switches' ports. They are not at the ingress, because Open
vSwitch's userspace datapath takes the packets there before a program sees them.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import threading
import time
from pathlib import Path

import ovs_lab
import pytest
from channel_keys import Keys
from narrows.backends.kernel.agents import find
from ovs_lab import AGENTS, Lab, Shape, run, wait

BOTTLENECK = "s1-s2"
RATE = 100_000_000
SHAPE = Shape((("s1", "s2"),), {"h1": "s1", "h2": "s1", "h3": "s2"})


def require():
    ovs_lab.require()
    missing = [tool for tool in ("iperf3", "tc") if shutil.which(tool) is None]
    if find() is None:
        missing.append("narrows-agent (make agent)")
    if missing:
        message = f"{', '.join(missing)} missing; agents were NOT tried with the controller"
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail(message)
        pytest.skip(message)


def keys_of(folder, *agents, controllers=("controller",)):
    def make(name):
        run(str(find()), "key", name, "--folder", str(folder))

    return Keys(folder, agents, make, controllers)


class TimelyLab(Lab):
    """A `Lab` whose programs have a high priority, so that other work does not delay packets."""

    wrap = ("nice", "-n", "-15")


class Agents:
    def __init__(self, lab):
        self.lab = lab

    def start(self, space, name, text):
        """Starts an agent. `text` is the part of its configuration that differs between agents."""
        role = text.split("]", 1)[0].strip("[\n ")
        name = f"{self.lab.tag}-{name}"
        path = self.lab.folder / f"{name}.toml"
        common = f'[{role}]\nname = "{name}"\n'
        path.write_text(text.replace(f"[{role}]\n", common, 1) + "\n[metrics]\nenabled = false\n")
        return self.lab.start(space, str(find()), role, str(path), log=f"{name}.log")

    def status(self, name, flows=0):
        """The agent's status; None while the agent does not answer."""
        command = [str(find()), "status", "--name", f"{self.lab.tag}-{name}", "--json", "--flows", str(flows)]
        done = run(*command, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def log(self, name):
        return (self.lab.folder / f"{self.lab.tag}-{name}.log").read_text()


def below_ovs(folder):
    folder = Path(folder)
    lab = TimelyLab(folder, SHAPE, tag="nrwa", keys=keys_of(folder, "below-s1"))
    try:
        lab.agents = Agents(lab)
        lab.start_controller()
        start_switch(lab)
        start_senders(lab, "h1", "h2")
        for port in (5201, 5202):
            lab.start(lab.hosts["h3"], "iperf3", "-s", "-p", str(port), log=f"iperf3-{port}.log")
        wait(lambda: all(lab.agents.status(name) for name in ("s", "senders")), "the agents")
        wait(lambda: lab.get("links"), "the link")
    except BaseException:
        lab.close()
        raise
    return lab


def start_switch(lab):
    """Starts the agent below s1. Its own detector stays off, because `controller_timeout` is 60 s."""
    others = [f"s1-{host}" for host in ("h1", "h2")]
    lab.switch = lab.agents.start(
        lab.net,
        "s",
        f"[switch]\nmax_flows = 1024\ninterfaces = {json.dumps(others)}\n"
        f'[[ports]]\ninterface = "{BOTTLENECK}"\nrate = "{RATE // 1_000_000}mbit"\n'
        '[ports.params]\ncontroller_timeout = "60s"\n'
        f'[controller]\naddress = "127.0.0.1:{AGENTS}"\n{lab.keys.of("below-s1")}',
    )


def start_senders(lab, *hosts, interface="eth0"):
    """Starts one sender's agent for all hosts. The random name of its algorithm is unused in the kernel."""
    text = f'[sender]\nalgorithm = "brf{secrets.token_hex(3)}"\n' + "".join(
        f'[[namespaces]]\npath = "/run/netns/{lab.hosts[host]}"\ninterfaces = ["{interface}"]\n'
        for host in hosts
    )
    agent = lab.agents.start(lab.net, "senders", text)
    wait(lambda: agent.poll() is not None or lab.agents.status("senders"), "the senders' agent")
    if agent.poll() is not None:
        pytest.fail(lab.agents.log("senders"))
    return agent


def send(lab, host, port, seconds, streams=1, to="10.9.0.3"):
    command = ["iperf3", "-J", "-c", to, "-p", str(port), "-P", str(streams)]
    return subprocess.Popen(
        [
            "nsenter",
            f"--net=/run/netns/{lab.hosts[host]}",
            *lab.wrap,
            *command,
            "-t",
            str(seconds),
            "-O",
            "1",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )


def received(sender):
    """The goodput in bit/s, and the number of retransmitted segments."""
    out, _ = sender.communicate(timeout=120)
    end = json.loads(out)["end"]
    return end["sum_received"]["bits_per_second"], end["sum_sent"]["retransmits"]


class Queue:
    """Samples the backlog of rated flows at the bottleneck, in packets."""

    def __init__(self, lab, every=0.02):
        self.lab, self.every = lab, every
        self.samples: list[tuple[float, int]] = []
        self._over = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def packets(self):
        return [packets for _, packets in self.samples]

    def _work(self):
        while not self._over.wait(self.every):
            done = self.lab.inside(
                self.lab.net, "tc", "-s", "-j", "qdisc", "show", "dev", BOTTLENECK, check=False
            )
            if done.returncode == 0:
                leaves = [q for q in json.loads(done.stdout) if q.get("kind") == "pfifo"]
                self.samples.append((time.monotonic(), sum(q.get("qlen", 0) for q in leaves)))
