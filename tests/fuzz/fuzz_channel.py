"""Fuzzes the controller's end of an agent's connection: the handshake, the greeting and the lines.

The first byte of the input selects TLS, the key of the peer, and the state of a controller with a standby.
The second byte is the length of the first piece that the peer sends, in units of 4 bytes. The peer sends the
rest of the input, with or without a handshake before it, and then ends the connection.
"""

import atexit
import contextlib
import re
import shutil
import socket
import ssl
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

from narrows.controller import channel, wire
from narrows.controller.messages import AgentDown, AgentMessage, AgentUp

sys.path.append(str(Path(__file__).parents[1] / "python/controller"))
from channel_keys import Keys

FOLDER = Path(tempfile.mkdtemp(prefix="narrows-fuzz-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
KEYS = Keys(FOLDER, ("a", "stranger"), controllers=("c",))
KEYS.join("agents", ("a",))
PATIENCE_S = 10
"""A thread that still runs this long after the end of the connection counts as hanging."""
channel.TELL_S = 0.001

TLS, HANDSHAKE, STRANGER, PAIR, ACTIVE = 1, 2, 4, 8, 16


class End(socket.socket):
    """The controller's socket. It is no TCP socket, so it ignores options of TCP."""

    def setsockopt(self, *option):
        pass


class Server(channel.Channel):
    """A channel that has no socket, and that keeps its events."""

    def __init__(self, settings):
        self.keys = KEYS.of_controller() if settings & TLS else None
        self.name, self.events = "c", []
        self.on_event = self.events.append
        self.pair = None
        if settings & PAIR:
            self.pair = SimpleNamespace(other="d", is_active=bool(settings & ACTIVE), state=lambda: "{}")
        self.other = self.pair and self.pair.other
        self._lock, self._known = threading.Lock(), {}


def shake_hands(end, name):
    """Does the TLS handshake of an agent with the key of this name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(FOLDER / f"{name}.crt", FOLDER / f"{name}.key")
    return context.wrap_socket(end)


def send(end, settings, pieces):
    """The peer."""
    end.settimeout(PATIENCE_S)
    with contextlib.suppress(OSError), contextlib.closing(end):
        if settings & TLS and settings & HANDSHAKE:
            end = shake_hands(end, "stranger" if settings & STRANGER else "a")
        with contextlib.closing(end):
            for piece in pieces:
                end.sendall(piece)
            socket.socket.shutdown(end, socket.SHUT_WR)
            while end.recv(4096):
                pass


def check(events, settings):
    """Checks the events of one connection: only a peer with the right key is accepted."""
    kinds = [type(event) for event in events]
    if kinds:
        assert kinds[0] is AgentUp and kinds[-1] is AgentDown, kinds
        assert set(kinds[1:-1]) <= {AgentMessage}, kinds
        assert len({event.agent for event in events}) == 1
        assert re.fullmatch(wire.NAME, events[0].agent)
    if settings & TLS:
        assert not kinds or (settings & HANDSHAKE and not settings & STRANGER)
        assert {event.agent for event in events} <= {"a"}
    if settings & PAIR and not settings & ACTIVE:
        assert not kinds, "a standby refuses agents"
    assert not any("\n" in event.body for event in events[1:-1])


def run(data):
    if len(data) < 2:
        return
    settings, cut = data[0], 4 * data[1]
    ours, theirs = socket.socketpair()
    peer = threading.Thread(target=send, args=(theirs, settings, (data[2 : 2 + cut], data[2 + cut :])))
    peer.start()
    server = Server(settings)
    channel._Connection(server, End(fileno=ours.detach()), "192.0.2.1:1").run()
    for thread in threading.enumerate():
        if thread is peer or thread.name.startswith("channel-"):
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), f"{thread.name} goes on after the end of its connection"
    check(server.events, settings)
    assert not server._known
