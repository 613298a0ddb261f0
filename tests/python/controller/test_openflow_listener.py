"""Untrusted connections to the port for switches cannot block or end the controller."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import sys

import fake_openflow as wire
import pytest
from fake_openflow import FakeSwitch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from narrows.controller.limits import Gate
from ovs_lab import wait
from running_controller import Controller

SAMPLES = wire.samples()


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    running = Controller(tmp_path_factory.mktemp("controller"))
    FakeSwitch(running.port).handshake().close()  # only the first connection has one-time costs
    yield running
    running.close()


def test_a_switch_completes_its_handshake_and_is_asked_for_its_counters(controller):
    before = controller.rest()
    switch = FakeSwitch(controller.port).handshake()
    while True:
        kind, _, body = switch.read()
        if kind == wire.MULTIPART_REQUEST and struct.unpack_from("!H", body)[0] == wire.PORT_STATS:
            break
    switch.close()
    controller.wait_for(before)


def test_the_endless_message_costs_nothing(controller):
    before = controller.rest()
    for _ in range(3):
        switch = FakeSwitch(controller.port)
        switch.send(wire.greeting() + wire.endless())
        assert switch.is_closed()
        switch.close()
    controller.wait_for(before)
    assert "message type 23" in controller.log.read_text()


def test_connections_that_close_at_once_leave_nothing(controller):
    before = controller.rest()
    for number in range(300):
        with socket.create_connection(("127.0.0.1", controller.port)) as stranger:
            if number % 3 == 0:
                stranger.sendall(wire.greeting())
    controller.wait_for(before)


def test_handshakes_that_do_not_finish_are_ended(controller):
    before = controller.rest()
    strangers = [socket.create_connection(("127.0.0.1", controller.port)) for _ in range(4)]
    introduced = wire.greeting() + wire.features(7)
    for stranger, sent in zip(strangers, (b"", b"\x04", wire.greeting(), introduced), strict=True):
        stranger.sendall(sent)
    for stranger in strangers:
        wait(lambda: stranger.recv(4096) == b"", "the end of the connection")  # noqa: B023 (called now)
    controller.wait_for(before)
    for stranger in strangers:
        stranger.close()


def test_a_switch_of_another_version_is_told(controller):
    switch = FakeSwitch(controller.port)
    switch.send(wire.message(wire.HELLO, struct.pack("!HHI", 1, 8, 1 << 1), version=1))
    answers = list(iter(switch.read, None))
    assert [kind for kind, _, _ in answers] == [wire.HELLO, wire.ERROR]
    assert b"OpenFlow 1.3" in answers[1][2]
    switch.close()


def test_an_exception_in_a_handler_ends_only_that_connection(controller):
    # A switch with 2,000 ports makes a handler raise an exception. os-ken alone would then end the thread
    # that serves all switches.
    hostile = FakeSwitch(controller.port, dpid=0x99).handshake()
    for number in range(2000):
        described = struct.pack("!I", number + 1) + wire.port(1)[4:]
        try:
            hostile.send(wire.message(wire.PORT_STATUS, struct.pack("!B7x", 0) + described))
        except ConnectionError:
            break
    assert hostile.is_closed()
    hostile.close()
    FakeSwitch(controller.port).handshake().close()


def test_a_reconnected_switch_replaces_its_old_connection(controller):
    before = controller.rest()
    old = FakeSwitch(controller.port).handshake()
    new = FakeSwitch(controller.port).handshake()
    assert old.is_closed()
    old.close()
    new.close()
    controller.wait_for(before)


@st.composite
def strangers(draw):
    """The bytes that a connection sends: part of a handshake, and then valid, changed or random messages."""
    parts = draw(st.sampled_from([[], ["hello"], ["hello", "features"], ["hello", "features", "ports"]]))
    data = bytearray(b"".join(SAMPLES[part] for part in parts))
    for name in draw(st.lists(st.sampled_from(sorted(SAMPLES)), max_size=8)):
        message = bytearray(SAMPLES[name])
        for _ in range(draw(st.integers(0, 3))):
            place = draw(st.integers(0, len(message) - 1))
            message[place : place + 2] = draw(st.binary(min_size=1, max_size=3))
        if draw(st.booleans()):
            message[2:4] = struct.pack("!H", len(message))
        data += message
    return bytes(data + draw(st.binary(max_size=40)))


def test_any_bytes_leave_the_controller_responsive_and_idle(controller):
    before = controller.rest()
    tried = 0

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strangers())
    def attack(data):
        nonlocal tried
        tried += 1
        stranger = FakeSwitch(controller.port)
        stranger.send(data)
        if tried % 20 == 0:
            FakeSwitch(controller.port, dpid=0x55).handshake().close()
        stranger.close()

    attack()
    FakeSwitch(controller.port, dpid=0x55).handshake().close()
    controller.wait_for(before)
    log = controller.log.read_text()
    assert "Traceback" not in log and "ERROR" not in log, log


def test_connections_of_an_address_are_bounded(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("[openflow]\nconnections_per_address = 3\n")
    controller = Controller(tmp_path, "--config", str(path))
    try:
        held = [FakeSwitch(controller.port, dpid=n).handshake() for n in range(3)]
        refused = FakeSwitch(controller.port)
        assert refused.is_closed()
        held.pop().close()
        wait(lambda: FakeSwitch(controller.port, dpid=9).read() is not None, "a free place")
        assert "too many connections" in controller.log.read_text()
    finally:
        controller.close()


def test_the_gate_bounds_each_address_and_all():
    gate = Gate(most=3, most_each=2)
    assert [gate.enter(address) for address in "aaabb"] == [True, True, False, True, False]
    gate.leave("a")
    assert gate.enter("b") and not gate.enter("a")


def test_a_controller_without_free_descriptors_recovers(tmp_path):
    controller = Controller(tmp_path, descriptors=64)
    try:
        many = [socket.create_connection(("127.0.0.1", controller.port)) for _ in range(120)]
        wait(lambda: "switches cannot connect" in controller.log.read_text(), "the lack of descriptors")
        for stranger in many:
            stranger.close()
        FakeSwitch(controller.port).handshake().close()
    finally:
        controller.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate authority, and keys that it signed. Only `stranger` is signed by another authority."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*command):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True, timeout=60)

    for authority, names in (("ca", ("controller", "switch")), ("other", ("stranger",))):
        new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN={authority}")
        openssl(*new, "-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        for name in names:
            request = ("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}")
            openssl(*request, "-keyout", f"{name}.key", "-out", f"{name}.csr")
            sign = ("x509", "-req", "-days", "30", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key")
            openssl(*sign, "-CAcreateserial", "-in", f"{name}.csr", "-out", f"{name}.pem")
    return folder


def options(folder):
    return (
        "--openflow-key", str(folder / "controller.key"),
        "--openflow-certificate", str(folder / "controller.pem"), "--openflow-ca", str(folder / "ca.pem"),
    )  # fmt: skip


def by_tls(folder, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(folder / "ca.pem")
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context.wrap_socket


@pytest.fixture(scope="module")
def tls_controller(tmp_path_factory, certificates):
    running = Controller(tmp_path_factory.mktemp("controller"), *options(certificates))
    FakeSwitch(running.port, wrap=by_tls(certificates, "switch")).handshake().close()
    yield running
    running.close()


def test_a_switch_with_a_certificate_connects_by_tls(tls_controller, certificates):
    before = tls_controller.rest()
    FakeSwitch(tls_controller.port, wrap=by_tls(certificates, "switch")).handshake().close()
    tls_controller.wait_for(before)


@pytest.mark.parametrize("name", [None, "stranger"])
def test_a_switch_without_a_certificate_of_the_authority_is_refused(tls_controller, certificates, name):
    before = tls_controller.rest()
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        # In TLS 1.3, a refused client gets an error only when it reads.
        FakeSwitch(tls_controller.port, wrap=by_tls(certificates, name)).handshake()
    tls_controller.wait_for(before)


def test_plain_openflow_is_refused_with_tls(tls_controller):
    switch = FakeSwitch(tls_controller.port)
    switch.send(wire.greeting() + bytes(64))
    assert switch.is_closed()
    switch.close()


def test_a_tls_handshake_that_does_not_finish_is_ended(tls_controller):
    before = tls_controller.rest()
    with socket.create_connection(("127.0.0.1", tls_controller.port)) as stranger:
        wait(lambda: stranger.recv(4096) == b"", "the end of the connection")
        tls_controller.wait_for(before)


def test_a_key_that_others_can_read_is_refused(certificates):
    key = certificates / "controller.key"
    key.chmod(0o640)
    try:
        command = ["narrows.cli.main", "controller", "--openflow-port", "0", *options(certificates)]
        done = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, check=False, timeout=60
        )
    finally:
        key.chmod(0o600)
    assert done.returncode == 2 and "found mode 0640, expected 0600" in done.stderr
