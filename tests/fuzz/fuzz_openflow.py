"""Fuzzes a connection of a switch: the checks, os-ken's parser, our handlers, and the decisions that follow.

The input holds the bytes that a switch sends. The connection has neither threads nor a socket.
"""

import threading
import types

from narrows.controller import lldp, openflow
from narrows.controller.domain import SECOND, Domain, Params
from narrows.controller.listener import ScreenedDatapath
from narrows.controller.messages import Note
from narrows.controller.screen import Screen, Violation
from os_ken.controller.handler import DEAD_DISPATCHER, HANDSHAKE_DISPATCHER, register_instance
from os_ken.controller.ofp_handler import OFPHandler
from os_ken.ofproto import ofproto_v1_3
from os_ken.ofproto.ofproto_protocol import ProtocolDesc, set_app_supported_versions

lldp._KEY = bytes(32)  # so that the corpus can contain links
set_app_supported_versions([ofproto_v1_3.OFP_VERSION])
SENT_MAX_BYTES = 1 << 20


class NoThread:
    """A thread that never runs. It replaces the writer of a switch: this program sends in the same thread."""

    def __init__(self, **options):
        pass

    def start(self):
        pass


def registered(app):
    """An application with its handlers, as os-ken's manager registers them."""
    register_instance(app)
    return app


class Connection(ScreenedDatapath):
    """A connection whose events go directly to their handlers."""

    def __init__(self, app):
        ProtocolDesc.__init__(self)
        self.address, self.is_active = ("192.0.2.1", 1), True
        self.id = self.state = self._ports = None
        self.xid, self.sent_bytes = 0, 0
        self._screen, self._is_closed = Screen(), False
        self.ofp_brick = registered(OFPHandler())
        self.ofp_brick.send_event_to_observers = lambda event, state: [
            handler(event) for handler in app.get_handlers(event, state)
        ]
        self.set_state(HANDSHAKE_DISPATCHER)

    def send(self, buf, close_socket=False):
        self.sent_bytes += len(buf)
        return True

    def close(self):
        self._is_closed = True


def run(data):
    openflow.threading = types.SimpleNamespace(Lock=threading.Lock, Thread=NoThread)
    openflow.Switch.send = lambda switch, message: switch.datapath.send_msg(message)
    app, events, now_ns = registered(openflow.OpenFlow()), [], SECOND
    app.on_event = events.append
    domain = Domain(now_ns, Params(hold_ns=0))
    connection = Connection(app)
    try:
        connection._take(bytearray(data))
    except Violation as violation:
        assert "\n" not in str(violation)
    except Exception as error:
        # os-ken's parser may refuse a message that passes the checks. The listener then ends the connection.
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        if "os_ken" not in trace.tb_frame.f_code.co_filename and not isinstance(error, UnicodeError):
            raise
    connection.set_state(DEAD_DISPATCHER)
    for event in events:
        for step in (lambda now, event=event: domain.handle(now, event), domain.tick):
            now_ns += SECOND // 100
            for effect in step(now_ns):
                if isinstance(effect, Note):
                    assert effect.text.isprintable(), effect.text
                else:
                    app.perform(effect)
    assert connection.sent_bytes < SENT_MAX_BYTES + 64 * len(data)
