"""The agents' channel: the MACs of the Rust side, forged lines, agents that connect and disconnect."""

from __future__ import annotations

import json
import os
import queue
import socket
from pathlib import Path

import pytest
from fake_agent import Agent, port_info
from hypothesis import given
from hypothesis import strategies as st
from narrows.controller import wire
from narrows.controller.channel import Channel
from narrows.controller.messages import AgentDown, AgentMessage, AgentUp
from narrows.errors import NarrowsError

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "channel.json").read_text())
SECRET = bytes(range(32))
OURS, THEIRS = b"\x01" * 32, b"\x02" * 32


def test_macs_equal_those_of_the_rust_side():
    lines = 0
    for case in VECTORS["cases"]:
        ends = [
            wire.End(case[f"{role}_name"], bytes.fromhex(case[f"{role}_nonce"]))
            for role in ("controller", "agent")
        ]
        key = wire.session_key(bytes.fromhex(case["secret"]), *ends)
        assert key.hex() == case["key"]
        for line in case["lines"]:
            assert wire.line_mac(key, line["role"], line["seq"], line["body"]) == line["mac"]
            lines += 1
    assert lines == 24


def greeting(nonce=THEIRS, **changes):
    fields = {"narrows": 1, "role": "agent", "name": "a", "nonce": nonce.hex()} | changes
    return json.dumps(fields).encode() + b"\n"


def line(seq, body, secret=SECRET, role="agent", ours=OURS, names=("c", "a")):
    ends = wire.End(names[0], ours), wire.End(names[1], THEIRS)
    mac = wire.line_mac(wire.session_key(secret, *ends), role, seq, body)
    return json.dumps({"seq": seq, "body": body, "mac": mac}).encode() + b"\n"


def opened():
    session = wire.Session(SECRET, OURS, "c")
    assert session.receive(greeting()) == []
    return session


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(1, 50))
def test_bodies_arrive_for_any_split_of_the_bytes(bodies, cut):
    bodies = [body.encode("utf-8", "replace").decode() for body in bodies]
    data = greeting() + b"".join(line(n, body) for n, body in enumerate(bodies))
    session, out = wire.Session(SECRET, OURS, "c"), []
    for at in range(0, len(data), cut):
        out += session.receive(data[at : at + cut])
    assert out == bodies
    assert session.is_authenticated == bool(bodies)


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_changed_bit_is_refused(at, bit):
    good = line(0, '{"type":"report","port":3}')
    changed = bytearray(good)
    changed[at % (len(good) - 1)] ^= 1 << bit
    try:
        out = opened().receive(bytes(changed))
    except wire.Refused:
        return
    # Hexadecimal digits can change their case; every other change must be refused.
    assert out == [] or bytes(changed).lower() == good.lower()


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_ignored(data):
    for session in (wire.Session(SECRET, OURS, "c"), opened()):
        try:
            assert session.receive(data) == []
        except wire.Refused as refused:
            assert "\n" not in str(refused)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["seq", "body", "mac", "narrows", "role", "name", "nonce"]), JSON),
)
def test_any_json_is_refused(fields):
    for session in (wire.Session(SECRET, OURS, "c"), opened()):
        with pytest.raises(wire.Refused):
            session.receive(json.dumps(fields).encode() + b"\n")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([line(0, "x"), line(0, "x")], "found line 0, expected line 1"),
        ([line(1, "x")], "found line 1, expected line 0"),
        ([line(0, "x", secret=b"\xff" * 32)], "a wrong MAC on line 0"),
        ([line(0, "x", secret=b"")], "a wrong MAC on line 0"),
        ([line(0, "x", role="controller")], "a wrong MAC on line 0"),
        ([line(0, "x", ours=b"\x09" * 32)], "a wrong MAC on line 0"),
        ([line(0, "x", names=("c", "b"))], "a wrong MAC on line 0"),  # its greeting said "a"
        ([line(0, "x", names=("d", "a"))], "a wrong MAC on line 0"),
        ([b'{"seq": true, "body": "x", "mac": ""}\n'], "a line without seq, body and mac"),
        ([b'{"seq": 0, "body": "\\ud800", "mac": ""}\n'], "a body that is not Unicode"),
        ([b"[]\n"], "a line that is not an object"),
        ([b" " * wire.LINE_MAX], "a line of more than 1048576 bytes"),
        ([b"[" * 100_000 + b"\n"], "a line that is not"),
    ],
)
def test_wrong_lines_are_refused(lines, why):
    session = opened()
    with pytest.raises(wire.Refused, match=why):
        session.receive(b"".join(lines))


@pytest.mark.parametrize(
    "data",
    [
        greeting(narrows=2),
        greeting(role="controller"),
        greeting(name=""),
        greeting(name="a b"),
        greeting(name="a" * 65),
        greeting(nonce=b"\x02" * 31),
        greeting(nonce=OURS),
        b" " * wire.GREETING_MAX,
    ],
)
def test_greetings_that_are_refused(data):
    with pytest.raises(wire.Refused):
        wire.Session(SECRET, OURS, "c").receive(data)


def test_secrets(tmp_path):
    path = tmp_path / "secret"
    path.write_text("00" * 32 + "\n")
    assert wire.read_secret(path) == bytes(32)
    for text, why in (("00" * 31, "found 62 digits"), ("secret", "found other characters")):
        path.write_text(text)
        with pytest.raises(NarrowsError, match=why) as error:
            wire.read_secret(path)
        assert "openssl rand -hex 32" in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(NarrowsError, match="No such file"):
        wire.read_secret(tmp_path / "none")


@pytest.fixture
def listening():
    events = queue.Queue()
    channel = Channel(("127.0.0.1", 0), SECRET, "c", events.put)
    yield channel, events
    channel.close()


def test_agents_connect_and_disconnect(listening):
    channel, events = listening
    agent = Agent("127.0.0.1", channel.port, "a", SECRET)
    body = {"type": "ports", "ports": [port_info()]}
    agent.say(body)
    up = events.get(timeout=20)
    assert isinstance(up, AgentUp) and up.agent == "a"
    said = events.get(timeout=20)
    assert isinstance(said, AgentMessage) and json.loads(said.body) == body
    channel.send("a", {"type": "poll"})
    channel.send("nobody", {"type": "poll"})
    assert agent.receive() == {"type": "poll"}
    agent.close()
    agent.lines.close()
    assert isinstance(events.get(timeout=20), AgentDown)


def test_an_agent_that_reconnects_replaces_its_old_connection(listening):
    channel, events = listening
    first = Agent("127.0.0.1", channel.port, "a", SECRET)
    first.say({"type": "ports", "ports": []})
    second = Agent("127.0.0.1", channel.port, "a", SECRET)
    kinds = [type(events.get(timeout=20)) for _ in range(2)]
    second.say({"type": "ports", "ports": []})
    kinds += [type(events.get(timeout=20)) for _ in range(2)]
    assert kinds == [AgentUp, AgentMessage, AgentUp, AgentMessage]
    assert first.receive() is None, "the old connection is closed"
    channel.send("a", {"type": "poll"})
    assert second.receive() == {"type": "poll"}
    assert events.empty(), "its end is not the agent's"


def test_an_agent_without_the_secret_is_disconnected(listening):
    channel, events = listening
    stranger = Agent("127.0.0.1", channel.port, "a", os.urandom(32))
    stranger.say({"type": "ports", "ports": []})
    assert stranger.receive() is None
    silent = socket.create_connection(("127.0.0.1", channel.port), timeout=60)
    while silent.recv(1000):
        pass  # greeted, then disconnected because it was silent
    assert events.empty()
