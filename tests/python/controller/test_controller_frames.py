"""The controller parses frames from untrusted hosts safely."""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("os_ken")
from hypothesis import given
from hypothesis import strategies as st
from narrows.controller.messages import FrameSeen, LldpSeen
from narrows.controller.openflow import port_desc, read_frame
from os_ken.lib.packet import arp, ethernet, ipv4, ipv6, packet, vlan
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser

HOST, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def frame(*layers):
    built = packet.Packet()
    for layer in layers:
        built.add_protocol(layer)
    built.serialize()
    return bytes(built.data)


def ether(kind):
    return ethernet.ethernet(OTHER, HOST, kind)


@pytest.mark.parametrize(
    ("data", "address"),
    [
        (frame(ether(0x0806), arp.arp(src_mac=HOST, src_ip="10.0.0.7", dst_ip="10.0.0.8")), "10.0.0.7"),
        (frame(ether(0x0800), ipv4.ipv4(src="10.0.0.7", dst="10.0.0.8")), "10.0.0.7"),
        (frame(ether(0x0800), ipv4.ipv4(src="0.0.0.0", dst="255.255.255.255")), None),
        (frame(ether(0x86DD), ipv6.ipv6(src="fd00::7", dst="fd00::8")), "fd00::7"),
        (frame(ether(0x8100), vlan.vlan(vid=5, ethertype=0x0800), ipv4.ipv4(src="10.0.0.7")), "10.0.0.7"),
        (frame(ether(0x0800))[:14], None),
        (frame(ether(0x88B5)) + bytes(46), None),
    ],
)
def test_the_senders_address_is_read(data, address):
    assert read_frame(1, 2, data) == FrameSeen(1, 2, HOST, address)


def test_bytes_after_the_ip_header_are_ignored():
    """The SCTP chunk has length 0. A parser that advances by this length would loop forever."""
    chunk = struct.pack("!BBH", 11, 0, 0)
    sctp = struct.pack("!HHII", 1, 2, 3, 0) + chunk
    data = frame(ether(0x0800), ipv4.ipv4(src="10.0.0.7", dst="10.0.0.8", proto=132)) + sctp
    assert read_frame(1, 2, data) == FrameSeen(1, 2, HOST, "10.0.0.7")


@given(st.sampled_from([0x0800, 0x0806, 0x86DD, 0x8100, 0x88CC, 0x1234]), st.binary(max_size=240))
def test_any_bytes_are_parsed_or_ignored(kind, rest):
    data = bytes.fromhex((OTHER + HOST).replace(":", "")) + struct.pack("!H", kind) + rest
    assert isinstance(read_frame(1, 2, data), FrameSeen | LldpSeen | None)


def test_the_name_of_a_port_cannot_add_lines_to_the_log():
    port = ofproto_v1_3_parser.OFPPort(1, HOST, b"p1\n\x1b[2J\xff", 0, 0, 0, 0, 0, 0, 0, 0)
    assert port_desc(ofproto_v1_3, port).name == "p1??[2J\ufffd"
