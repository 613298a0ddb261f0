"""Other threads and agents cannot end the decision thread or fill the memory."""

from __future__ import annotations

import json
import threading
import time

import pytest
from fake_agent import port_info
from narrows.controller import runtime as runtime_module
from narrows.controller.domain import Params
from narrows.controller.limits import Warnings
from narrows.controller.messages import AgentMessage, AgentUp, Note
from narrows.controller.runtime import BODIES_MAX, Runtime


@pytest.fixture
def running():
    shown = Runtime(Params())
    shown.start()
    yield shown
    shown.stop()


def is_deciding(shown):
    """Whether the thread that makes decisions still handles events."""
    shown.put(AgentUp("last", "127.0.0.1:1"))
    pause = threading.Event()
    for _ in range(1000):
        if shown.look(lambda domain, _: "last" in domain.agents.by_name):
            return True
        pause.wait(0.01)
    return False


class Slow(dict):
    """A dictionary that lets other threads run while it is read."""

    def values(self):
        for value in super().values():
            time.sleep(0.001)
            yield value


def test_notes_of_other_threads_do_not_disturb_it(running):
    running._noted._episodes = Slow()
    for number in range(20):
        running.put(AgentMessage("nobody", "{}"))
        time.sleep(0.002)  # the other thread reads the values during this pause
        running.note(Note("alert", "text", {"rule": "queue", "agent": "a", "interface": str(number)}))
    assert is_deciding(running)


def test_an_effect_that_fails_does_not_end_it(running, caplog):
    def fails(_):
        raise RuntimeError("cannot send")

    running.to_agent = running.to_switch = fails
    running.put(AgentUp("a", "127.0.0.1:1"))
    running.put(AgentMessage("a", json.dumps({"type": "ports", "ports": [port_info()]})))
    assert is_deciding(running)
    assert "cannot handle an event" in caplog.text


def test_queued_bodies_are_bounded_by_their_size(monkeypatch, caplog):
    # Earlier tests may have used up the allowed number of log lines.
    monkeypatch.setattr(runtime_module, "WARNINGS", Warnings(runtime_module.LOG))
    shown, body = Runtime(Params()), " " * (1 << 20)
    for _ in range(200):
        shown.put(AgentMessage("a", body))
    assert shown._events.qsize() == BODIES_MAX >> 20
    shown.put(AgentUp("a", "127.0.0.1:1"))
    assert shown._events.qsize() == (BODIES_MAX >> 20) + 1, "the queue still accepts other events"
    assert caplog.text.count("too many events: dropped AgentMessage") == 10
    shown.start()
    try:
        assert is_deciding(shown)
        shown.put(AgentMessage("a", body))
        assert shown._bodies <= len(body), "handled bodies do not count"
    finally:
        shown.stop()
