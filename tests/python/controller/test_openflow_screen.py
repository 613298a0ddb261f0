"""Checks of OpenFlow messages before os-ken parses them.

Valid messages pass. If a message passes, os-ken parses it in a bounded number of steps.
"""

from __future__ import annotations

import random
import struct
import sys

import fake_openflow as wire
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows.controller.screen import HEADER_BYTES, Fate, Screen, Violation
from os_ken.ofproto import ofproto_protocol, ofproto_v1_3, ofproto_v1_3_parser

SAMPLES = wire.samples()
READY = ["echo-request", "packet", "flow-removed", "port-status", "ports", "flows", "counters", "barrier"]


def screen(introduced=True):
    made = Screen()
    made.check(SAMPLES["hello"], False)
    if introduced:
        made.check(SAMPLES["features"], False)
    return made


def passes(made, message, ready=True):
    try:
        if made.length(message[:HEADER_BYTES]) != len(message):
            return False
        return made.check(message, ready) is Fate.PARSE
    except Violation as violation:
        assert str(violation) and "\n" not in str(violation)
        return False


def parse(message):
    """Parses a message with os-ken. Fails if this needs more function calls than any valid message."""
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1
        if calls > 3_000_000:
            raise AssertionError("os-ken does not finish")

    datapath = ofproto_protocol.ProtocolDesc(ofproto_v1_3.OFP_VERSION)
    _, kind, length, xid = struct.unpack_from("!BBHI", message)
    sys.setprofile(count)
    try:
        ofproto_v1_3_parser.msg_parser(datapath, 4, kind, length, xid, message)
    except AssertionError:
        if calls > 3_000_000:
            raise
    except Exception:
        pass  # the real connection would end
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("name", READY)
def test_valid_messages_pass(name):
    assert passes(screen(), SAMPLES[name])


def test_a_handshake_passes():
    made = Screen()
    for name in ("hello", "echo-request", "features", "ports"):
        assert passes(made, SAMPLES[name], ready=False), name


@pytest.mark.parametrize("name", ["packet", "flow-removed", "port-status", "experimenter"])
def test_unasked_messages_during_the_handshake_are_skipped(name):
    assert screen(introduced=False).check(SAMPLES[name], False) is Fate.SKIP


def test_the_greeting_is_first_and_only_once():
    for name in set(SAMPLES) - {"hello"}:
        with pytest.raises(Violation):
            Screen().check(SAMPLES[name], False)
    for ready in (False, True):
        with pytest.raises(Violation, match="greeting"):
            screen().check(SAMPLES["hello"], ready)


@pytest.mark.parametrize("name", ["flows", "counters", "barrier"])
def test_answers_before_the_end_of_the_handshake_are_refused(name):
    with pytest.raises(Violation, match="before the end of the handshake"):
        screen().check(SAMPLES[name], False)


def test_ports_before_the_description_of_the_switch_are_refused():
    with pytest.raises(Violation):
        screen(introduced=False).check(SAMPLES["ports"], False)


def test_a_handshake_without_end_is_refused():
    made = screen()

    def forever():
        while True:
            made.check(SAMPLES["ports"], False)

    with pytest.raises(Violation, match="too many"):
        forever()


def test_other_types_are_refused_by_the_header():
    for kind in set(range(256)) - {sample[1] for sample in SAMPLES.values()}:
        with pytest.raises(Violation, match="type"):
            Screen().length(wire.message(kind))


def test_the_endless_message_is_refused():
    with pytest.raises(Violation, match="type 23"):
        Screen().length(wire.endless()[:8])


@pytest.mark.parametrize("version", [0, 1, 3, 5, 255])
def test_other_versions_are_refused_after_the_greeting(version):
    with pytest.raises(Violation, match="version"):
        Screen().length(wire.message(wire.BARRIER_REPLY, version=version))


@pytest.mark.parametrize(
    ("version", "elements", "ok"),
    [
        (4, b"", True),
        (6, b"", True),
        (1, b"", False),
        (6, struct.pack("!HHI", 1, 8, 1 << 4 | 1 << 1), True),
        (6, struct.pack("!HHI", 1, 8, 1 << 6), False),
        (4, struct.pack("!HHI", 1, 8, 1 << 1), False),
        (4, struct.pack("!HH", 1, 0) + bytes(4), False),
        (4, struct.pack("!HH", 9, 0) + bytes(4), False),
        (4, struct.pack("!HH", 9, 12) + bytes(12), True),
        (4, struct.pack("!HH", 1, 400), False),
        (4, bytes(3), False),
    ],
)
def test_greetings(version, elements, ok):
    assert passes(Screen(), wire.message(wire.HELLO, elements, version=version), ready=False) is ok


def with_zero(name, offset, width=2):
    """The sample message, with zero as the number at `offset`."""
    message = bytearray(SAMPLES[name])
    message[offset : offset + width] = bytes(width)
    return bytes(message)


@pytest.mark.parametrize(
    ("name", "offset", "width"),
    [
        ("flows", 16, 2),  # length of the entry
        ("flows", 16 + 50, 2),  # length of the match
        ("flows", 16 + 48 + 7, 1),  # length of the first field
        ("flows", 16 + 48 + 24 + 2, 2),  # length of the instruction
        ("flows", 16 + 48 + 24 + 8 + 2, 2),  # length of the action
        ("packet", 26, 2),
        ("packet", 24 + 7, 1),
        ("flow-removed", 50, 2),
        ("hello", 10, 2),
    ],
)
def test_no_length_can_be_zero(name, offset, width):
    before, after = Screen() if name == "hello" else screen(), with_zero(name, offset, width)
    assert after != SAMPLES[name]
    assert not passes(before, after, ready=name != "hello")


def test_truncated_messages_are_refused_or_whole():
    """Shortens each message to each length, and adjusts its length field. No incomplete message may pass."""
    for name in READY:
        for end in range(HEADER_BYTES, len(SAMPLES[name])):
            cut = bytearray(SAMPLES[name][:end])
            cut[2:4] = struct.pack("!H", end)
            if passes(screen(), bytes(cut)):
                parse(bytes(cut))


@st.composite
def mutated(draw):
    """A sample message with changed, removed or repeated bytes.

    In most cases, its length field is corrected.
    """
    data = bytearray(SAMPLES[draw(st.sampled_from(READY))])
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(8, max(8, len(data) - 1)))
        match draw(st.sampled_from(["set", "small", "remove", "repeat"])):
            case "set":
                data[place : place + 1] = draw(st.binary(min_size=1, max_size=4))
            case "small":
                data[place : place + 2] = struct.pack("!H", draw(st.integers(0, 64)))
            case "remove":
                del data[place : place + draw(st.integers(1, 16))]
            case "repeat":
                data[place:place] = data[place : place + draw(st.integers(1, 64))]
    if draw(st.integers(0, 9)):
        data[2:4] = struct.pack("!H", len(data))
    return bytes(data)


@settings(max_examples=400, deadline=None)
@given(st.one_of(mutated(), st.binary(min_size=8, max_size=200)))
def test_whatever_passes_is_parsed_in_bounded_work(message):
    if passes(screen(), message):
        parse(message)


def test_many_mutations_are_parsed_in_bounded_work():
    """Writes several numbers at every offset of every sample message.

    Hypothesis would try only some offsets.
    """
    passed, source = 0, random.Random(1)
    for name in READY:
        sample = SAMPLES[name]
        for place in range(HEADER_BYTES, len(sample) - 1):
            for value in (0, 1, 4, 7, 8, 16, 255, 0xFFFF, source.randrange(1 << 16)):
                message = bytearray(sample)
                message[place : place + 2] = struct.pack("!H", value)
                if passes(screen(), bytes(message)):
                    passed += 1
                    parse(bytes(message))
    assert passed > 1000, "the screen would refuse everything"
