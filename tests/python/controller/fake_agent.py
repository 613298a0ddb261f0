"""The agent's end of the channel, for tests. `fake_agent.py HOST PORT NAME INTERFACE MAC` runs it."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
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


class Agent:
    """Sends and receives bodies. Written from the protocol's description, not with the controller's code."""

    def __init__(self, host, port, name="a", secret=b""):
        self.socket = socket.create_connection((host, port), timeout=20)
        self.lines = self.socket.makefile("rb")
        nonce = os.urandom(32)
        self.raw({"narrows": 1, "role": "agent", "name": name, "nonce": nonce.hex()})
        theirs = json.loads(self.lines.readline())
        said = bytes.fromhex(theirs["nonce"]) + nonce + f"{theirs['name']}\0{name}".encode()
        self.key = hmac.digest(secret, b"narrows-1" + said, hashlib.sha256)
        self.sent = self.received = 0

    def raw(self, line):
        self.socket.sendall(json.dumps(line).encode() + b"\n")

    def mac(self, role, seq, body):
        message = role.encode() + b"\0" + str(seq).encode() + b"\0" + body.encode()
        return hmac.digest(self.key, message, hashlib.sha256).hex()

    def say(self, body):
        text = json.dumps(body)
        self.raw({"seq": self.sent, "body": text, "mac": self.mac("agent", self.sent, text)})
        self.sent += 1

    def receive(self):
        """The next body; None if the controller has closed the connection."""
        try:
            line = self.lines.readline()
        except ConnectionError:
            return None
        if not line:
            return None
        fields = json.loads(line)
        assert fields["seq"] == self.received
        assert fields["mac"] == self.mac("controller", self.received, fields["body"])
        self.received += 1
        return json.loads(fields["body"])

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
