"""Alerts reach the Alertmanager completely, in bounded requests, and without blocking the controller."""

from __future__ import annotations

import socket
import subprocess
import threading
import time

import pytest
from fake_alertmanager import alertmanager
from hypothesis import given
from hypothesis import strategies as st
from narrows.controller import metrics
from narrows.controller.alertmanager import (
    ENDED_MAX,
    KEEP_NS,
    PAUSE_MAX_NS,
    REPEAT_NS,
    Outbox,
    Sender,
    body,
    post,
)
from narrows.controller.alerts import AgentRule, Alert, Key, QueueRule, Rules
from narrows.controller.watch import Watch
from narrows.units import NANOS_PER_SEC as SECOND
from shown_controller import runtime


def alert(name="eth1", ends_s=None, since_s=1_795_300_000.25):
    return Alert(Key("queue", "s1", name), "warning", since_s, "the queue is 12.0 ms long", ends_s)


def take(outbox, now_ns, is_delivered=True):
    if (at := outbox.next_ns()) is None or at > now_ns:
        return None
    sent = outbox.take(now_ns)
    outbox.finish(now_ns, sent, is_delivered)
    return sent


def test_a_new_alert_is_sent_at_once_and_repeated_each_minute():
    outbox, one = Outbox(), alert()
    assert outbox.next_ns() is None
    outbox.put(0, [one])
    assert take(outbox, 0) == [one]
    assert take(outbox, REPEAT_NS - 1) is None
    assert take(outbox, REPEAT_NS) == [one]
    outbox.put(REPEAT_NS, [alert("eth2")])
    assert len(take(outbox, REPEAT_NS)) == 2


def test_an_end_is_sent_until_it_is_accepted_and_then_no_more():
    outbox, end = Outbox(), alert(ends_s=1.0)
    outbox.put(0, [alert()])
    take(outbox, 0)
    outbox.put(1, [end])
    assert take(outbox, 1, is_delivered=False) == [end]
    assert take(outbox, 1 + SECOND) == [end]
    assert outbox.next_ns() is None


def test_an_end_during_a_request_is_not_lost():
    outbox, end = Outbox(), alert(ends_s=1.0)
    outbox.put(0, [alert()])
    sent = outbox.take(0)
    outbox.put(1, [end])
    outbox.finish(2, sent, True)
    assert take(outbox, 2) == [end]


def test_pauses_grow_to_a_minute_and_new_alerts_wait_too():
    outbox, now, pauses = Outbox(), 0, []
    outbox.put(0, [alert()])
    for number in range(10):
        assert take(outbox, now, is_delivered=False) is not None
        outbox.put(now, [alert(f"new{number}")])
        pauses.append(outbox.next_ns() - now)
        now = outbox.next_ns()
    assert pauses == [SECOND * 2**n for n in range(6)] + [PAUSE_MAX_NS] * 4
    assert len(take(outbox, now)) == 11
    assert outbox.next_ns() == now + REPEAT_NS


def test_undelivered_ends_are_bounded_in_number_and_time():
    outbox = Outbox()
    outbox.put(0, [alert(f"eth{n}", ends_s=1.0) for n in range(ENDED_MAX + 50)])
    assert len(outbox.take(0)) == ENDED_MAX
    assert outbox.take(KEEP_NS) == [] and outbox.next_ns() is None


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=50))
def test_the_receiver_always_learns_the_last_state(steps):
    outbox, now, known, last = Outbox(), 0, {}, {}
    for number, (port, has_ended, is_delivered) in enumerate(steps):
        now += SECOND
        change = alert(f"eth{port}", 1.0 if has_ended else None, float(number))
        outbox.put(now, [change])
        last[change.key] = change
        if is_delivered and (at := outbox.next_ns()) is not None and at <= now:
            known |= {one.key: one for one in take(outbox, now)}
        else:
            take(outbox, now, is_delivered=False)
    now += PAUSE_MAX_NS + REPEAT_NS
    known |= {one.key: one for one in take(outbox, now) or []}
    assert known == last


def test_the_body_is_that_of_the_alertmanager(tmp_path):
    import json

    both = [alert(), alert("eth2", ends_s=1_795_300_100.0)]
    firing, ended = json.loads(body(both, "east", "https://c.example:6680", 1_795_300_060.0))
    assert firing == {
        "labels": {
            "alertname": "NarrowsQueueDelay",
            "severity": "warning",
            "controller": "east",
            "agent": "s1",
            "interface": "eth1",
        },
        "annotations": {"summary": "the queue is 12.0 ms long"},
        "startsAt": "2026-11-21T22:26:40.250+00:00",
        "endsAt": "2026-11-21T22:31:40.000+00:00",
        "generatorURL": "https://c.example:6680/#port=s1%2Feth1",
    }
    assert ended["endsAt"] == "2026-11-21T22:28:20.000+00:00"


def test_a_request_has_the_path_and_the_authorization():
    with alertmanager() as receiver:
        assert post(f"{receiver.url}/am/", "Bearer abc", b"[]") is None
        ((path, headers, alerts),) = receiver.requests
    assert (path, headers["Authorization"], alerts) == ("/am/api/v2/alerts", "Bearer abc", [])


def test_a_redirect_and_an_error_are_failures():
    with alertmanager() as receiver:
        receiver.answers[:] = [(302, {"Location": "http://127.0.0.1:1/"}), (400, {}), (500, {})]
        for status in (302, 400, 500):
            assert f"found status {status}" in post(receiver.url, None, b"[]")
        assert len(receiver.requests) == 3


def test_by_tls_the_certificate_must_be_trusted(tmp_path, monkeypatch):
    file = tmp_path / "key-and-certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=am"]
    subprocess.run(
        [*command, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", file, "-out", tmp_path / "ca.pem"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    file.write_text(file.read_text() + (tmp_path / "ca.pem").read_text())
    with alertmanager(file) as receiver:
        assert "certificate" in post(receiver.url, "Bearer abc", b"[]")
        assert receiver.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert post(receiver.url, "Bearer abc", b"[]") is None
        other = receiver.url.replace("127.0.0.1", "localhost")
        assert "certificate" in post(other, "Bearer abc", b"[]")
        assert len(receiver.requests) == 1


def test_no_server_and_no_http_are_failures():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert "refused" in post(address, None, b"[]")


@pytest.mark.parametrize("port", ["", ":9093"])
def test_an_ipv6_address_needs_no_port(monkeypatch, port):
    asked = []

    def refuse(address, *_, **__):
        asked.append(address)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    for scheme in ("http", "https"):
        assert post(f"{scheme}://[2001:db8::1]{port}/am", None, b"[]") == "refused"
    ports = [9093, 9093] if port else [80, 443]
    assert asked == [("2001:db8::1", number) for number in ports]


def test_an_impossible_name_and_an_answer_that_is_not_http_are_one_short_line():
    assert post(f"http://{'a' * 64}.example:9093", None, b"[]")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"\x1b[31mforged\rline " + b"x" * 5000 + b"\r\n")
                peer.recv(1 << 16)

        threading.Thread(target=answer, daemon=True).start()
        said = post(f"http://127.0.0.1:{listener.getsockname()[1]}", None, b"[]")
    assert "forged line" in said and said.isprintable() and len(said) <= 200


def waits_for(condition):
    until_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_a_threshold_reaches_the_alertmanager_and_its_end_too():
    shown = runtime()
    _, port = next(iter(shown.domain.agents.ports()))
    with alertmanager() as receiver:
        receiver.answers[:] = [(500, {})]
        sender = Sender(receiver.url, "east", None, None)
        rules = Rules(queue=QueueRule(above_ns=10_000_000, for_ns=2 * SECOND))
        watch = Watch(shown, 0, rules, [sender])
        sender.start()
        try:
            for second in range(3):
                watch.look(second * SECOND)
            receiver.wait(2)  # the first request was answered with an error
            (alerts, again) = (request[2] for request in receiver.requests[:2])
            assert [one["labels"]["interface"] for one in alerts] == ["s2-3"]
            assert alerts[0]["startsAt"] == again[0]["startsAt"]
            (active,) = watch.alerts().active
            assert (active.name, active.agent, active.interface) == ("NarrowsQueueDelay", "box-2", "s2-3")
            waits_for(lambda: watch.alerts().receivers[0].delivered is not None)
            assert watch.alerts().receivers[0].error is None
            port.queued_bytes = 0
            for second in range(3, 6):
                watch.look(second * SECOND)
            (_, _, (ended,)) = receiver.wait(3)[2]
            assert ended["labels"] == alerts[0]["labels"] and ended["endsAt"] < alerts[0]["endsAt"]
        finally:
            sender.stop()
    kinds = [(event.kind, event.severity) for event in shown.events()][-2:]
    assert kinds == [("alert", "warning"), ("alert-end", "info")]


def test_a_critical_alert_is_an_error_among_the_events():
    shown = runtime(empty=True)
    watch = Watch(shown, 0, Rules(agent=AgentRule(2 * SECOND, ("s9",))))
    for second in range(4):
        watch.look(second * SECOND)
    (event,) = shown.events()
    assert (event.kind, event.severity) == ("alert-critical", "error")
    assert event.text == "NarrowsAgentSilent: agent s9 has not been connected for 2 s"


def test_a_standby_has_no_alerts_and_its_takeover_gives_agents_time():
    shown, is_active = runtime(empty=True), False
    shown.is_active = lambda: is_active
    watch = Watch(shown, 0, Rules(agent=AgentRule(5 * SECOND, ("s9",))))
    for second in range(60):
        watch.look(second * SECOND)
    assert watch.alerts().active == [] and shown.events() == []
    assert b"narrows_controller_active 0.0" in metrics.page(shown, watch)
    is_active = True
    for second in range(60, 64):
        watch.look(second * SECOND)
    assert watch.alerts().active == []
    watch.look(64 * SECOND)
    assert [alert.agent for alert in watch.alerts().active] == ["s9"]
    assert b"narrows_controller_active 1.0" in metrics.page(shown, watch)


def test_a_receiver_that_does_not_answer_delays_nothing():
    shown = runtime()
    with alertmanager() as receiver:
        receiver.hold.clear()
        sender = Sender(receiver.url, "east", None, None)
        watch = Watch(shown, 0, Rules(queue=QueueRule(above_ns=1, for_ns=SECOND)), [sender])
        sender.start()
        try:
            for second in range(3):
                watch.look(second * SECOND)
            receiver.wait(1)
            for second in range(3, 3600):
                watch.look(second * SECOND)
            assert len(watch.alerts().active) == 1 and len(receiver.requests) == 1
        finally:
            sender.stop()
            receiver.hold.set()


@pytest.mark.parametrize("count", [0, 5])
def test_an_error_of_a_receiver_is_shown(count):
    shown = runtime()
    with alertmanager() as receiver:
        receiver.answers[:] = [(503, {})] * count
        sender = Sender(receiver.url, "east", None, None)
        watch = Watch(shown, 0, Rules(queue=QueueRule(above_ns=1, for_ns=SECOND)), [sender])
        sender.start()
        try:
            for second in range(3):
                watch.look(second * SECOND)
            waits_for(lambda: watch.alerts().receivers[0].error or watch.alerts().receivers[0].delivered)
            assert bool(watch.alerts().receivers[0].error) is (count > 0)
            page = metrics.page(shown, watch).decode()
            failing = 'narrows_controller_alertmanager_failing{url="' + receiver.url
            assert f'{failing}"}} {float(count > 0)}' in page
            assert "narrows_controller_alerts 1.0" in page
        finally:
            sender.stop()
