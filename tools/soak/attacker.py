"""The attackers of the soak. Each attacker runs until SIGTERM.

    attacker.py packets FILE ADDRESS PORT SEED   # forge packets of the flows in the server's reports, FILE
    attacker.py bytes SEED PORT...               # send random bytes to ports of loopback

The attacker that forges packets is not on the path of the flows. It reads the flows' addresses and ports from
FILE, and guesses all other fields.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import sys
import time
from collections import Counter
from pathlib import Path

from reports import last, say

EVERY_S = 0.005
REPORTS = 200
"""Number of packets after which the forger reads the list of flows again and prints a report."""
FIN, SYN, RST, ACK = 1, 2, 4, 16
FLAGS = {
    "ACK": ACK, "RST": RST, "RST with ACK": RST | ACK, "FIN": FIN | ACK, "SYN": SYN, "SYN-ACK": SYN | ACK,
}  # fmt: skip
RATES = (10, 0, 65534, 65535)
"""Values of the rate option: 10 bytes/s, zero, the largest value, and a request."""
BEGINNINGS = (
    b"",
    b"\x04\x00\x00\x08\x00\x00\x00\x01",  # OpenFlow's hello
    b"\x16\x03\x01\x00\xff\x01",  # start of a TLS ClientHello
    b"GET /metrics HTTP/1.1\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
)

End = tuple[str, int]


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def forged(dice: random.Random, flags: int, source: End, target: End) -> bytes:
    """A forged IPv4 packet of a flow.

    The sequence numbers, the rate option and the payload length of the packet are random.
    """
    options = b"\x01\x01\xfd\x06NW" + struct.pack("!H", dice.choice(RATES)) if dice.random() < 0.5 else b""
    payload = bytes(dice.choice((0, 0, 0, 100)))
    length = 20 + len(options) + len(payload)
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    fields = (source[1], target[1], dice.getrandbits(32), dice.getrandbits(32), length - len(payload) << 2)
    segment = struct.pack("!HHIIBBHHH", *fields, flags, 512, 0, 0) + options + payload
    sum_ = checksum(addresses + struct.pack("!HH", 6, length) + segment)
    segment = segment[:16] + struct.pack("!H", sum_) + segment[18:]
    # The kernel adds the checksum of the IP header (raw(7)).
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, 6, 0) + addresses + segment


def forge(reports: Path, server: End, seed: int) -> None:
    """Sends forged packets in both directions, and never returns."""
    dice, sent = random.Random(seed), Counter[str]()
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    while True:
        clients = [(host, port) for host, port in last(reports).get("peers", [])]
        for _ in range(REPORTS):
            time.sleep(EVERY_S)
            if not clients:
                continue
            kind, ends = dice.choice([*FLAGS]), [dice.choice(clients), server]
            dice.shuffle(ends)
            with contextlib.suppress(OSError):
                raw.sendto(forged(dice, FLAGS[kind], *ends), (ends[1][0], 0))
                sent[kind] += 1
        say(**sent)


def pester(seed: int, ports: list[int]) -> None:
    """Connects to ports of loopback again and again, and sends random bytes."""
    dice = random.Random(seed)
    held: list[socket.socket] = []
    while True:
        with contextlib.suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", dice.choice(ports)), timeout=0.2)
            connection.sendall(dice.choice(BEGINNINGS) + dice.randbytes(dice.choice((0, 1, 64, 5000))))
            held.append(connection)
        if len(held) > 20:
            held.pop(dice.randrange(len(held))).close()
        time.sleep(0.02)


def main() -> None:
    """Runs one of the roles in the module's docstring."""
    match sys.argv[1:]:
        case ["packets", reports, address, port, seed]:
            forge(Path(reports), (address, int(port)), int(seed))
        case ["bytes", seed, *ports]:
            pester(int(seed), [int(port) for port in ports])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
