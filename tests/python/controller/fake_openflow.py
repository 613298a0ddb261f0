"""A switch that speaks OpenFlow 1.3, and an example of each kind of message that switches send."""

from __future__ import annotations

import socket
import struct

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER = 0, 1, 2, 3, 4
FEATURES_REQUEST, FEATURES_REPLY, PACKET_IN, FLOW_REMOVED, PORT_STATUS = 5, 6, 10, 11, 12
MULTIPART_REQUEST, MULTIPART_REPLY, BARRIER_REPLY, QUEUE_GET_CONFIG_REPLY = 18, 19, 21, 23
FLOW_STATS, PORT_STATS, PORT_DESC = 1, 4, 13
COOKIE = 0x6E61_7272_0000_0000


def message(kind, body=b"", xid=1, version=4, length=None):
    return struct.pack("!BBHI", version, kind, 8 + len(body) if length is None else length, xid) + body


def multipart(kind, body, xid=1):
    return message(MULTIPART_REPLY, struct.pack("!HH4x", kind, 0) + body, xid)


def port(number):
    mac = bytes((2, 0, 0, 0, 1, number))
    name = f"p{number}".encode()
    return struct.pack("!I4x6s2x16s8I", number, mac, name, 0, 0, 0, 0, 0, 0, 0, 0)


def match(*fields):
    """Encodes a match. Each field is a pair of an OpenFlow field number and a value."""
    inner = b"".join(struct.pack("!HBB", 0x8000, number << 1, len(value)) + value for number, value in fields)
    length = 4 + len(inner)
    return struct.pack("!HH", 1, length) + inner + bytes(-length % 8)


IN_PORT, ETH_DST, ETH_SRC = 0, 3, 4
MAC = bytes.fromhex("0a0000000001")
ANY_PORT = match((IN_PORT, struct.pack("!I", 1)))


def entry():
    output = struct.pack("!HHIH6x", 0, 16, 1, 128) + struct.pack("!HHIH6x", 0, 16, 0xFFFFFFFD, 256)
    instructions = struct.pack("!HH4x", 4, 8 + len(output)) + output + struct.pack("!HHB3x", 1, 8, 1)
    matched = match((IN_PORT, struct.pack("!I", 1)), (ETH_SRC, MAC))
    rest = matched + instructions
    return struct.pack("!HBxIIHHHH4xQQQ", 48 + len(rest), 0, 1, 2, 10, 0, 0, 0, COOKIE, 1, 2) + rest


def greeting():
    return message(HELLO, struct.pack("!HHI", 1, 8, 1 << 4))


def features(dpid, xid=1):
    return message(FEATURES_REPLY, struct.pack("!QIBB2xII", dpid, 0, 254, 0, 0x47, 0), xid)


def samples(dpid=0x77):
    frame = b"\xff" * 6 + MAC + b"\x08\x06" + bytes(46)
    return {
        "hello": greeting(),
        "error": message(ERROR, struct.pack("!HH", 1, 6) + bytes(64)),
        "echo-request": message(ECHO_REQUEST, b"ping"),
        "echo-reply": message(ECHO_REPLY),
        "experimenter": message(EXPERIMENTER, struct.pack("!II", 0x2320, 9)),
        "features": features(dpid),
        "packet": message(
            PACKET_IN,
            struct.pack("!IHBBQ", 0xFFFFFFFF, len(frame), 1, 0, COOKIE) + ANY_PORT + bytes(2) + frame,
        ),
        "flow-removed": message(
            FLOW_REMOVED, struct.pack("!QHBBIIHHQQ", COOKIE, 10, 0, 0, 1, 2, 300, 0, 3, 4) + ANY_PORT
        ),
        "port-status": message(PORT_STATUS, struct.pack("!B7x", 2) + port(1)),
        "ports": multipart(PORT_DESC, port(1) + port(2)),
        "flows": multipart(FLOW_STATS, entry() + entry()),
        "counters": multipart(PORT_STATS, struct.pack("!I4x12QII", 1, *range(12), 5, 6) * 2),
        "barrier": message(BARRIER_REPLY),
    }


def endless():
    """A message that os-ken would parse forever, because one of its properties has the length zero."""
    queue = struct.pack("!IIH6x", 1, 1, 40) + struct.pack("!HH4x", 1, 0) + bytes(16)
    return message(QUEUE_GET_CONFIG_REPLY, struct.pack("!I4x", 1) + queue)


class FakeSwitch:
    """A switch's connection to a controller.

    `handshake` returns when the controller has asked for the flow entries.
    """

    def __init__(self, port, dpid=0x77, wrap=lambda raw: raw):
        self.dpid = dpid
        self.socket = wrap(socket.create_connection(("127.0.0.1", port), timeout=30))
        self.data = b""

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        while len(self.data) < 8 or len(self.data) < struct.unpack_from("!H", self.data, 2)[0]:
            try:
                more = self.socket.recv(4096)
            except ConnectionError:
                return None
            if not more:
                return None
            self.data += more
        _, kind, length, xid = struct.unpack_from("!BBHI", self.data)
        body, self.data = self.data[8:length], self.data[length:]
        return kind, xid, body

    def handshake(self):
        self.send(greeting())
        while (asked := self.read()) is not None:
            kind, xid, body = asked
            if kind == ECHO_REQUEST:
                self.send(message(ECHO_REPLY, body, xid))
            elif kind == FEATURES_REQUEST:
                self.send(features(self.dpid, xid))
            elif kind == MULTIPART_REQUEST:
                what = struct.unpack_from("!H", body)[0]
                self.send(multipart(what, port(1) + port(2) if what == PORT_DESC else b"", xid))
                if what == FLOW_STATS:
                    return self
        raise AssertionError("the controller closed the connection")

    def is_closed(self):
        while self.read() is not None:
            pass
        return True

    def close(self):
        self.socket.close()
