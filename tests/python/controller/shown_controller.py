"""A controller with a simulated network, for the tests of REST and of the page."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from dataclasses import replace

import uvicorn
from fake_agent import THRESHOLDS, report
from fake_switches import BROADCAST, SECOND, Network
from narrows.controller import http, view
from narrows.controller.domain import Params, PortParams
from narrows.controller.events import severity
from narrows.controller.messages import AgentMessage, AgentUp, Counters, CountersRead, Note
from narrows.controller.runtime import Runtime
from narrows.controller.watch import Watch

CABLES = [
    ((1, 1), (2, 1)),
    ((2, 2), (3, 1)),
    ((3, 2), (4, 1)),
    ((4, 2), (1, 2)),
    ((2, 3), (5, 1)),
    ((3, 3), (5, 2)),
]
HOSTS = {
    f"0a:00:00:00:00:{n:02x}": end
    for n, end in enumerate([(1, 8), (1, 9), (4, 9), (5, 8), (5, 9), (3, 9)], 1)
}
MBIT = 125_000


def flows(count):
    for n in range(count):
        key = {
            "saddr": f"10.0.0.{n % 3 + 1}",
            "daddr": "10.0.0.4",
            "sport": 40_000 + n,
            "dport": 5201,
            "proto": "tcp",
        }
        rated = n % 4 != 3
        yield {
            "key": key,
            "class": "rated" if rated else "other-tcp",
            "leaf": "mouse" if n % 4 == 0 else "elephant" if rated else "other-tcp",
            "allocation": 23 * MBIT if rated else None,
            "rate": max(22 * MBIT - n * 11_000, 2_000 + 100 * (5_000 - n)),
            "rtt": 20_100_000 + n * 7_000,
        }


def runtime(count=12, authenticated=True, empty=False):
    """Five switches, six hosts, and one agent with a congested port and `count` flows."""
    shown = Runtime(Params(), "east", authenticated)
    if empty:
        return shown
    ports = {end: PortParams(rate_bps=100_000_000, delay_ns=1_000_000) for cable in CABLES for end in cable}
    net = Network(CABLES, HOSTS, Params(hold_ns=0, ports=ports))
    for dpid in net.switches:
        net.connect(dpid)
    net.run(5)
    for host in HOSTS:
        net.send(host, BROADCAST)
    for n, host in enumerate(HOSTS, 1):
        net.domain.hosts.learn(net.now, HOSTS[host], host, f"10.0.0.{n}")
    used = {(2, 3): 97, (5, 1): 2, (1, 1): 71, (2, 1): 2, (3, 3): 24, (1, 2): 8}
    for second in range(2):
        net.now += SECOND
        for dpid, numbers in net.switches.items():
            read = {}
            for number in numbers:
                sent = second * used.get((dpid, number), 0)
                read[number] = Counters(0, sent * 82, 0, sent * MBIT, 0, 3 * second * (dpid == 2))
            net.event(CountersRead(dpid, read))
    info = {
        "port": 1,
        "interface": "s2-3",
        "ifindex": 7,
        "mac": "02:00:00:00:02:03",
        "mtu": 1500,
        "capacity": 12_500_000,
        "thresholds": THRESHOLDS,
    }
    net.event(AgentUp("box-2", "127.0.0.1:40000"))

    def say(body):
        net.event(AgentMessage("box-2", json.dumps(body)))

    others = [
        info | {"port": number, "interface": name, "mac": mac}
        for number, name, mac in ((2, "s2-2", "02:00:00:00:02:02"), (3, "eth1", "02:00:00:00:09:01"))
    ]
    say({"type": "ports", "ports": [info, *others]})
    for n, queued in enumerate((0, 150_000)):
        say(report(1, n * 20_000_000, queued))
        say(report(2, n * 20_000_000))
    # An agent reports at most 1,000 flows of each port.
    everything = list(flows(count))
    for port, first in ((1, 0), (3, 1000), (2, 2000)):
        say({"type": "flows", "port": port, "flows": everything[first : first + 1000]})
    shown.domain = net.domain
    for number, note in enumerate((n for n in net.notes if isinstance(n, Note)), 1):
        shown._noted.kept.append(
            view.Event(
                id=number,
                time=1_795_300_000 + number,
                kind=note.kind,
                text=note.text,
                severity=severity(note.kind),
            )
        )
    return shown


def an_hour(shown, seconds=3600):
    now_ns = time.monotonic_ns()
    watch = Watch(shown, now_ns - seconds * SECOND)
    ports = [port for _, port in shown.domain.agents.ports()]
    loads = dict(shown.domain.loads.by_port)
    reported, queued = {port.id: port.flows for port in ports}, [port.queued_bytes for port in ports]
    for second in range(0, seconds + 5, 5):
        wave = math.sin(second / 240)
        for number, port in enumerate(ports):
            port.report_ns = now_ns
            port.queued_bytes = int(40_000 * (1 + number) * max(0.0, math.sin(second / (90 + 40 * number))))
            port.flows = reported[port.id][: 1 + int(len(reported[port.id]) * (0.6 + 0.4 * wave))]
        for key, load in loads.items():
            shown.domain.loads.by_port[key] = replace(load, tx_bps=load.tx_bps * (0.7 + 0.3 * wave))
        watch.look(now_ns + (second - seconds) * SECOND)
    for port, bytes_ in zip(ports, queued, strict=True):
        port.flows, port.queued_bytes = reported[port.id], bytes_
    shown.domain.loads.by_port.update(loads)
    return watch


@contextlib.contextmanager
def served(shown, loopback=True, token=None, watch=None):
    config = uvicorn.Config(
        http.create(shown, loopback, token, watch),
        host="127.0.0.1",
        port=0,
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=1,  # seconds until open streams are closed
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
