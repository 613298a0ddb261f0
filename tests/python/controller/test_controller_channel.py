"""The agents' channel: keys, greetings, messages, and agents that connect and disconnect."""

from __future__ import annotations

import json
import queue
import socket
import ssl
import subprocess
import threading

import pytest
from channel_keys import Keys
from fake_agent import Agent, client, port_info
from hypothesis import given
from hypothesis import strategies as st
from narrows.controller import channel as channel_module
from narrows.controller import tls, wire
from narrows.controller.channel import Channel
from narrows.controller.files import read_token
from narrows.controller.limits import Warnings
from narrows.controller.messages import AgentDown, AgentMessage, AgentUp
from narrows.errors import NarrowsError


def greeting(**changes):
    return json.dumps({"narrows": 2, "role": "agent", "name": "a"} | changes).encode() + b"\n"


def opened():
    session = wire.Session("c", "a")
    assert session.receive(greeting()) == []
    return session


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(1, 50))
def test_bodies_arrive_for_any_split_of_the_bytes(texts, cut):
    bodies = [json.dumps(text) for text in texts]
    data = greeting() + b"".join(map(wire.line, bodies))
    session, out = wire.Session("c", "a"), []
    for at in range(0, len(data), cut):
        out += session.receive(data[at : at + cut])
    assert out == bodies
    assert session.agent == "a"


@given(st.binary(max_size=300))
def test_any_bytes_before_the_greeting_are_refused_or_ignored(data):
    try:
        assert wire.Session("c", None).receive(data) == []
    except wire.Refused as refused:
        assert "\n" not in str(refused)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["narrows", "role", "name"]), JSON))
def test_any_json_is_refused_as_a_greeting(fields):
    with pytest.raises(wire.Refused):
        wire.Session("c", None).receive(json.dumps(fields).encode() + b"\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (greeting(narrows=1), "a greeting that is not from an agent of version 2"),
        (greeting(narrows=True), "a greeting that is not from an agent of version 2"),
        (greeting(role="controller"), "a greeting that is not from an agent of version 2"),
        (greeting(name=""), "without a name of 1 to 64 printable characters"),
        (greeting(name="a b"), "without a name of 1 to 64 printable characters"),
        (greeting(name="a" * 65), "without a name of 1 to 64 printable characters"),
        (greeting(name="b"), "found the name 'b', expected 'a' as in its certificate"),
        (b"[]\n", "a greeting that is not an object"),
        (b"[" * 4000 + b"\n", "a greeting that is not"),
        (b" " * wire.GREETING_MAX, "a line of more than 4096 bytes"),
    ],
)
def test_greetings_that_are_refused(data, why):
    with pytest.raises(wire.Refused, match=why):
        wire.Session("c", "a").receive(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b" " * wire.LINE_MAX, "a line of more than 1048576 bytes"),
        (b"\xff\n", "a line that is not Unicode"),
    ],
)
def test_lines_that_are_refused(data, why):
    with pytest.raises(wire.Refused, match=why):
        opened().receive(data)


def test_tokens(tmp_path):
    path = tmp_path / "token"
    path.write_text("00" * 32 + "\n")
    assert read_token(path) == "00" * 32
    for text, why in (("00" * 31, "found 62 digits"), ("secret", "found other characters")):
        path.write_text(text)
        with pytest.raises(NarrowsError, match=why) as error:
            read_token(path)
        assert "openssl rand -hex 32" in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(NarrowsError, match="No such file"):
        read_token(tmp_path / "none")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    made = Keys(tmp_path_factory.mktemp("keys"), ("a", "b", "stranger"))
    trusted = "".join((made.folder / f"{name}.crt").read_text() for name in "ab")
    (made.folder / "agents.trusted").write_text(trusted)
    return made


@pytest.fixture
def listening(keys, caplog, monkeypatch):
    events = queue.Queue()
    caplog.set_level("WARNING")
    # Earlier tests may have used up the allowed number of log lines.
    monkeypatch.setattr(channel_module, "WARNINGS", Warnings(channel_module.LOG))
    channel = Channel(("127.0.0.1", 0), keys.of_controller(), "c", events.put)
    yield channel, events
    channel.close()


def test_agents_connect_and_disconnect(listening, keys):
    channel, events = listening
    agent = Agent("127.0.0.1", channel.port, "a", keys.of_agent("a"))
    assert agent.answer == {"narrows": 2, "role": "controller", "name": "c"}
    assert agent.socket.version() == "TLSv1.3"
    body = {"type": "ports", "ports": [port_info()]}
    agent.say(body)
    up = events.get(timeout=20)
    assert isinstance(up, AgentUp) and up.agent == "a"
    said = events.get(timeout=20)
    assert isinstance(said, AgentMessage) and json.loads(said.body) == body
    channel.send("a", '{"type":"poll"}')
    channel.send("nobody", '{"type":"poll"}')
    assert agent.receive() == {"type": "poll"}
    agent.close()
    agent.lines.close()
    assert isinstance(events.get(timeout=20), AgentDown)


def test_an_agent_that_reconnects_replaces_its_old_connection(listening, keys):
    channel, events = listening
    first = Agent("127.0.0.1", channel.port, "a", keys.of_agent("a"))
    first.say({"type": "ports", "ports": []})
    kinds = [type(events.get(timeout=20)) for _ in range(2)]
    second = Agent("127.0.0.1", channel.port, "a", keys.of_agent("a"))
    second.say({"type": "ports", "ports": []})
    kinds += [type(events.get(timeout=20)) for _ in range(2)]
    assert kinds == [AgentUp, AgentMessage, AgentUp, AgentMessage]
    assert first.receive() is None, "the old connection is closed"
    channel.send("a", '{"type":"poll"}')
    assert second.receive() == {"type": "poll"}
    assert events.empty(), "the end of the old connection does not disconnect the agent"


def test_an_agent_cannot_use_another_agents_name(listening, keys):
    channel, events = listening
    first = Agent("127.0.0.1", channel.port, "a", keys.of_agent("a"))
    thief = Agent("127.0.0.1", channel.port, "a", keys.of_agent("b"))
    reason = "found the name 'a', expected 'b' as in its certificate"
    assert thief.answer == {"narrows": 2, "refused": reason}
    assert thief.receive() is None
    channel.send("a", '{"type":"poll"}')
    assert first.receive() == {"type": "poll"}
    assert isinstance(events.get(timeout=20), AgentUp) and events.empty()


def signed_by_an_agent(folder):
    """A forged certificate for the name a, signed with the key of the agent b, which has a CA certificate."""
    make = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a", "-keyout", "forged.key"]
    sign = ["openssl", "x509", "-req", "-days", "30", "-CA", "b.crt", "-CAkey", "b.key", "-CAcreateserial"]
    for command in ([*make, "-out", "forged.csr"], [*sign, "-in", "forged.csr", "-out", "forged.crt"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("name", ["stranger", "forged"])
def test_an_agent_with_an_unknown_certificate_is_refused(listening, keys, caplog, name):
    channel, events = listening
    if name == "forged":
        signed_by_an_agent(keys.folder)
    agent = keys.of_agent(name)
    try:
        connection = Agent("127.0.0.1", channel.port, "a", agent)
    except OSError:
        pass
    else:
        assert connection.answer is None
    assert events.empty()
    reason = {"stranger": "self-signed certificate", "forged": "the certificate of 'a' is not in"}[name]
    wait_for(lambda: reason in caplog.text)


def wait_for(done):
    """Waits for a condition. The limit only ends a test that hangs."""
    pause = threading.Event()
    for _ in range(2000):
        if done():
            return
        pause.wait(0.01)
    raise AssertionError("it has not come")


def test_an_agent_refuses_another_controller(listening, keys):
    """This tests the fake agent. The real agent is tested in transport_tests.rs of narrows-agent."""
    channel, events = listening
    own = keys.of_agent("a")
    with pytest.raises(ssl.SSLCertVerificationError):
        Agent("127.0.0.1", channel.port, "a", own._replace(trusted=own.certificate))
    assert events.empty()


def test_an_agent_can_be_added_while_the_controller_runs(listening, keys):
    channel, events = listening
    trusted = keys.folder / "agents.trusted"
    before = trusted.read_text()
    trusted.write_text(before + (keys.folder / "stranger.crt").read_text())
    try:
        agent = Agent("127.0.0.1", channel.port, "stranger", keys.of_agent("stranger"))
        assert agent.answer["name"] == "c"
    finally:
        trusted.write_text(before)
    assert isinstance(events.get(timeout=20), AgentUp)


def test_peers_without_tls_or_without_an_own_certificate_are_refused(listening, keys, caplog):
    channel, events = listening
    plain = socket.create_connection(("127.0.0.1", channel.port), timeout=20)
    plain.sendall(greeting())
    assert plain.recv(1000) == b"", "closed without an answer"
    wait_for(lambda: "wrong version number" in caplog.text)
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.check_hostname = False
    nobody.load_verify_locations(str(keys.of_agent("a").trusted))
    connection = nobody.wrap_socket(socket.create_connection(("127.0.0.1", channel.port), timeout=20))
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        connection.recv(1000)  # in TLS 1.3, the client's handshake ends before the server refuses the client
    old = client(*map(str, keys.of_agent("a")))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        old.wrap_socket(socket.create_connection(("127.0.0.1", channel.port), timeout=20))
    assert events.empty()


def test_silent_peers_are_disconnected(listening, keys, monkeypatch):
    channel, events = listening
    monkeypatch.setattr(channel_module, "GREETING_S", 0.3)
    silent = socket.create_connection(("127.0.0.1", channel.port), timeout=60)
    assert silent.recv(1000) == b"", "disconnected during the handshake"
    # Long enough for a handshake on a busy machine.
    monkeypatch.setattr(channel_module, "GREETING_S", 4.0)
    after = socket.create_connection(("127.0.0.1", channel.port), timeout=60)
    tls_only = client(*map(str, keys.of_agent("a"))).wrap_socket(after)
    assert ended(tls_only), "disconnected before the greeting"
    assert events.empty()


def ended(connection):
    try:
        return connection.recv(1000) == b""
    except ssl.SSLEOFError:  # the peer closed the connection without close_notify
        return True


def test_files_are_checked(keys, tmp_path):
    good = keys.of_controller()
    good.check("agents")
    for field, path, why in (
        ("trusted", tmp_path / "none", "No such file"),
        ("trusted", good.key, "agents: cannot use"),
        ("certificate", keys.folder / "a.crt", "agents: cannot use"),
        ("key", tmp_path / "none", "agents.key: .*: No such file"),
    ):
        with pytest.raises(NarrowsError, match=why) as error:
            good._replace(**{field: path}).check("agents")
        assert "\n" not in str(error.value)
    readable = tmp_path / "readable.key"
    readable.write_text(good.key.read_text())
    readable.chmod(0o644)
    with pytest.raises(NarrowsError, match="found mode 0644, expected 0600"):
        good._replace(key=readable).check("agents")


def test_names_of_certificates():
    subject = ((("organizationName", "x"),), (("commonName", "a"),))
    assert tls.common_name({"subject": subject}) == "a"
    assert tls.common_name({"subject": (*subject, (("commonName", "b"),))}) == "", (
        "a certificate with two names has no valid name"
    )
    assert tls.common_name(None) == ""
