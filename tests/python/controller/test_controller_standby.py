"""Which of two controllers is active, and the messages of both to each other and to agents."""

from __future__ import annotations

import json
import queue
import socket
import threading

import pytest
from channel_keys import Keys
from fake_agent import Agent
from narrows.controller import channel
from narrows.controller.channel import Channel
from narrows.controller.domain import SECOND
from narrows.controller.messages import AgentUp
from narrows.controller.pair import Pair
from narrows.controller.standby import GENERATIONS, Election

TAKEOVER = 3 * SECOND


def election(own="east", other="west"):
    return Election(0, own, other, TAKEOVER)


def active(own="east", other="west", generation=0):
    made = election(own, other)
    made.on_switch(0, generation, demoted=False)
    assert made.tick(TAKEOVER)
    return made


def test_a_controller_that_is_alone_becomes_active_after_the_time():
    alone = election()
    assert not alone.tick(TAKEOVER - 1) and not alone.is_active
    assert alone.tick(TAKEOVER) and alone.is_active
    assert not alone.tick(TAKEOVER), "the controller becomes active only once"


def test_a_standby_waits_while_the_other_is_active_and_takes_over_after_its_end():
    standby = election()
    for now in range(0, 20 * SECOND, SECOND):
        assert not standby.on_peer(now, True, 7 + now // SECOND)
        assert not standby.tick(now)
    assert not standby.tick(19 * SECOND + TAKEOVER - 1)
    assert standby.tick(19 * SECOND + TAKEOVER)
    assert standby.generation > 26, "switches accept only a higher generation"


def test_a_switch_shows_that_the_other_is_active():
    """The controllers are disconnected from each other, but both are connected to the switch."""
    standby = election()
    for now in range(0, 20 * SECOND, SECOND):
        assert not standby.on_switch(now, 1 + now // SECOND, demoted=False)
        assert not standby.tick(now)
    # The generation no longer rises, so the other controller has ended.
    for now in range(20 * SECOND, 22 * SECOND, SECOND):
        assert not standby.on_switch(now, 20, demoted=False)
        assert not standby.tick(now)
    assert standby.tick(22 * SECOND)


def test_a_switch_without_a_generation_shows_nothing():
    standby = election()
    standby.on_switch(TAKEOVER - 1, GENERATIONS - 1, demoted=False)
    assert standby.tick(TAKEOVER) and standby.generation == 1


def test_of_two_that_start_together_the_first_by_name_becomes_active():
    east, west = election("east", "west"), election("west", "east")
    for now in range(0, 2 * TAKEOVER, SECOND // 2):
        # Each controller gets the state that the other one had half a second before.
        before = east.is_active, west.is_active
        assert not east.on_peer(now, before[1], west.generation)
        assert not west.on_peer(now, before[0], east.generation)
        east.tick(now)
        west.tick(now)
        assert not west.is_active
    assert east.is_active


def test_a_controller_that_returns_does_not_take_over():
    returning = election("east", "west")  # "east" comes first by name
    for now in range(0, 60 * SECOND, SECOND // 2):
        assert not returning.on_peer(now, True, 100)
        assert not returning.tick(now)


def test_of_two_active_ones_exactly_one_stays():
    for generations in ((3, 9), (9, 3), (5, 5)):
        east, west = active("east", "west", generations[0]), active("west", "east", generations[1])
        steps_down = (
            east.on_peer(TAKEOVER, True, west.generation),
            west.on_peer(TAKEOVER, True, east.generation),
        )
        assert sorted(steps_down) == [False, True], generations


def test_an_active_controller_that_lost_a_switch_to_another_steps_down():
    made = active()
    assert not made.on_switch(TAKEOVER, 50, demoted=False), (
        "a new connection of a switch is no takeover by another controller"
    )
    assert made.raise_generation() == 51
    assert not made.on_switch(TAKEOVER, 40, demoted=True), "this controller takes the switch back"
    assert made.on_switch(TAKEOVER, 60, demoted=True)


def test_of_two_that_took_a_switch_each_from_the_other_one_stays():
    for generations in ((3, 9), (9, 3), (5, 5)):
        east, west = active("east", "west", generations[0]), active("west", "east", generations[1])
        steps_down = (
            east.on_switch(TAKEOVER, west.generation, demoted=True),
            west.on_switch(TAKEOVER, east.generation, demoted=True),
        )
        assert sorted(steps_down) == [False, True], generations


def wait_for(done):
    """Waits for a condition. The limit only ends a test that hangs."""
    pause = threading.Event()
    for _ in range(3000):
        if done():
            return
        pause.wait(0.01)
    raise AssertionError("it has not come")


class Running:
    """A controller's channel, and its watch on the other controller."""

    def __init__(self, name, other, keys):
        self.events = queue.Queue()
        self.pair = Pair(name, other, ("127.0.0.1", 0), keys, 1.0)
        self.yielded = threading.Event()
        self.pair.on_yield = lambda _: self.yielded.set()
        self.channel = Channel(("127.0.0.1", 0), keys, name, self.events.put, self.pair)

    def watch(self, other):
        self.pair._address = ("127.0.0.1", other.channel.port)
        self.pair.start()


@pytest.fixture
def two(tmp_path):
    keys = Keys(tmp_path, ("a",), controllers=("east", "west"))
    both = "".join((tmp_path / f"{name}.crt").read_text() for name in ("a", "east", "west"))
    (tmp_path / "agents.trusted").write_text(both)
    east, west = (Running(n, o, keys.of_controller(n)) for n, o in (("east", "west"), ("west", "east")))
    east.watch(west)
    west.watch(east)
    yield east, west, keys
    east.channel.close()
    west.channel.close()


def test_a_standby_refuses_agents_until_it_takes_over(two):
    east, west, keys = two
    wait_for(lambda: east.pair.is_active)
    standby = Agent("127.0.0.1", west.channel.port, "a", keys.of_agent("a"))
    assert standby.answer == {"narrows": 2, "refused": "it is the standby of east"}
    agent = Agent("127.0.0.1", east.channel.port, "a", keys.of_agent("a"))
    assert agent.answer["name"] == "east"
    assert agent.receive() == {"type": "alive"}
    assert not west.pair.is_active and west.events.empty()
    east.channel.close()
    wait_for(lambda: west.pair.is_active)
    wait_for(east.yielded.is_set)
    agent = Agent("127.0.0.1", west.channel.port, "a", keys.of_agent("a"))
    assert agent.answer["name"] == "west"
    assert isinstance(west.events.get(timeout=20), AgentUp)


def test_the_connection_of_two_controllers_stays(monkeypatch, tmp_path):
    """A controller that watches another one sends nothing on the connection, which must stay open."""
    monkeypatch.setattr(channel, "SILENT_S", 0.5)
    monkeypatch.setattr(channel, "TELL_S", 0.05)
    keys = Keys(tmp_path, (), controllers=("east", "west"))
    keys.join("agents", ("east", "west"))
    east, west = (Running(n, o, keys.of_controller(n)) for n, o in (("east", "west"), ("west", "east")))
    east.watch(west)
    try:
        wait_for(lambda: west.channel._connections)
        before = set(west.channel._connections)
        threading.Event().wait(0.8)
        assert west.channel._connections == before and west.events.empty()
    finally:
        west.channel.close()
        east.channel.close()


@pytest.mark.parametrize(
    "line",
    [
        "[" * 3000,
        "7",
        '{"active":1,"generation":1}',
        '{"active":true,"generation":-1}',
        json.dumps({"active": True, "generation": GENERATIONS}),
        '{"refused":"forged\\nline"}',
    ],
)
def test_an_invalid_line_of_the_other_controller_is_one_line_in_the_log(line, caplog):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        pair = Pair("east", "west", listener.getsockname(), None, 1.0)
        pair.start()
        for _ in range(2):  # the pair connects again, so its thread still runs
            peer, _ = listener.accept()
            with peer:
                peer.sendall(line.encode() + b"\n")
                while peer.recv(4096):
                    pass
    record = next(one for one in caplog.records if one.name == "narrows.controller.pair")
    assert "\n" not in record.getMessage()
    assert pair._election.generation == 0


def test_an_agent_cannot_act_as_the_other_controller(two):
    east, _, keys = two
    wait_for(lambda: east.pair.is_active)
    for name, reason in (("west", "found the name 'west', expected 'a'"), ("a", "a greeting that is not")):
        greeting = {"narrows": 2, "role": "controller", "name": name}
        answer = Agent("127.0.0.1", east.channel.port, "a", keys.of_agent("a"), greeting).answer
        assert answer["refused"].startswith(reason)


def test_a_controller_watches_only_the_listener_with_the_right_certificate(tmp_path):
    """The listener has an agent's certificate, and claims to be active. This claim must have no effect."""
    keys = Keys(tmp_path, ("a",), controllers=("east",))
    trusted = tmp_path / "agents.trusted"
    trusted.write_text(trusted.read_text() + (tmp_path / "east.crt").read_text())
    forged = Running("a", "east", keys.of_controller("a"))
    east = Running("east", "west", keys.of_controller("east"))
    forged.pair.state = lambda: json.dumps({"active": True, "generation": 1 << 60})
    east.watch(forged)
    wait_for(lambda: east.pair.is_active)
    assert not east.yielded.is_set()
    forged.channel.close()
    east.channel.close()
