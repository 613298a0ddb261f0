"""The agent's end of the channel, for tests. `fake_agent.py HOST PORT NAME INTERFACE MAC` starts an agent."""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time

THRESHOLDS = {
    "mode": "resolved",
    "u_th": 0.98,
    "q_th": 0.1,
    "q_delay_max": 5_000_000,
    "q_packets_min": 5,
    "burst_threshold": 1.02,
    "packet": 1500,
}


def port_info(port=1, interface="eth1", mac="02:00:00:00:00:01", capacity=12_500_000):
    return {
        "port": port,
        "interface": interface,
        "ifindex": port,
        "mac": mac,
        "mtu": 1500,
        "capacity": capacity,
        "thresholds": THRESHOLDS,
    }


def report(port=1, at=0, queued=0):
    return {
        "type": "report",
        "port": port,
        "at": at,
        "capacity": 12_500_000,
        "rated_share": 12_250_000,
        "rated_arrived": 0,
        "departed": 0,
        "departed_packets": 0,
        "rated_queued": queued,
        "rated_packets": [queued // 1500, 1000],
        "all_packets": [queued // 1500, 3000],
        "period": 20_000_000,
    }


def advertisement(port=1, seq=1):
    key = {"saddr": "10.0.0.1", "daddr": "10.0.0.2", "sport": 1, "dport": 2, "proto": "tcp"}
    return {
        "type": "flow-advertisement",
        "key": key,
        "rate": 1000,
        "port": port,
        "seq": seq,
        "valid_for": 60_000_000_000,
    }


def flow(sport=1, rate=125_000, allocation=None):
    key = {"saddr": "10.0.0.1", "daddr": "10.0.0.2", "sport": sport, "dport": 2, "proto": "tcp"}
    return {"key": key, "class": "rated", "leaf": "elephant", "rate": rate, "allocation": allocation}


def flow_list(*flows, port=1):
    return {"type": "flows", "port": port, "flows": list(flows)}


def client(key, certificate, trusted):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(trusted)
    return context


class Agent:
    """An agent that speaks the channel's protocol without the controller's code."""

    def __init__(self, host, port, name="a", keys=None, greeting=None):
        """Connects to a controller. If `greeting` is given, it replaces the correct greeting."""
        self.socket = socket.create_connection((host, port), timeout=20)
        if keys is not None:
            self.socket = client(*map(str, keys)).wrap_socket(self.socket)
        self.lines = self.socket.makefile("rb")
        self.say(greeting or {"narrows": 2, "role": "agent", "name": name})
        self.answer = self.receive()

    def say(self, body):
        self.socket.sendall(json.dumps(body).encode() + b"\n")

    def receive(self):
        """The next body; None if the controller has closed the connection."""
        try:
            line = self.lines.readline()
        except OSError:  # also raised for a TLS alert
            return None
        return json.loads(line) if line else None

    def hear_until(self, kind):
        while (body := self.receive()) is not None:
            if body["type"] == kind:
                return body
        return None

    def close(self):
        self.socket.close()


if __name__ == "__main__":
    host, port, name, interface, mac = sys.argv[1:]
    while True:
        try:
            agent = Agent(host, int(port), name)
            agent.say({"type": "ports", "ports": [port_info(1, interface, mac)]})
            while agent.hear_until("poll"):
                agent.say(report(1, time.monotonic_ns()))
        except OSError:
            pass
        time.sleep(0.2)
