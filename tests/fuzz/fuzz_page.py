"""Fuzzes the controller's page: a browser's connection, through uvicorn and the application.

The first byte of the input is the length of the first piece of the request, in units of 4 bytes.
"""

import asyncio
import logging

from h11 import LocalProtocolError
from narrows.controller import http
from narrows.controller.domain import Params
from narrows.controller.runtime import Runtime
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

TOKEN = "t" * 32
LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)
APP = http.create(Runtime(Params()), True, TOKEN)
CONFIG = Config(APP, log_level="critical", access_log=False, lifespan="off")
CONFIG.load()
STATUS = {200, 400, 401, 404, 405, 421, 422, 307}
ROUNDS_MAX = 400


class Failures(logging.Handler):
    """Keeps the exceptions of the application, which uvicorn logs."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        if record.exc_info:
            self.seen.append(record.exc_info[1])


FAILURES = Failures()
logging.disable(logging.NOTSET)
LOG = logging.getLogger("uvicorn.error")
LOG.setLevel(logging.ERROR)
LOG.propagate = False
LOG.addHandler(FAILURES)


class Transport(asyncio.Transport):
    """A connection that keeps what is written to it."""

    def __init__(self):
        super().__init__()
        self.written, self.closed = bytearray(), False

    def write(self, data):
        self.written += data

    def get_extra_info(self, name, default=None):
        return {"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 80)}.get(name, default)

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


async def serve(pieces):
    transport, state = Transport(), ServerState()
    protocol = H11Protocol(CONFIG, state, {}, LOOP)
    protocol.connection_made(transport)
    for piece in pieces:
        if piece and not transport.closed:
            try:
                protocol.data_received(piece)
            except LocalProtocolError:
                # The body after a HEAD request is malformed. asyncio would also close the connection, and
                # log the error.
                transport.close()
                break
            for _ in range(20):
                await asyncio.sleep(0)
    protocol.connection_lost(None)
    for _ in range(ROUNDS_MAX):
        if not state.tasks:
            break
        await asyncio.sleep(0.001)
    assert not state.tasks, "a request goes on after the end of its connection"
    return bytes(transport.written)


def run(data):
    if not data:
        return
    cut = 4 * data[0]
    request = data[1:]
    written = LOOP.run_until_complete(serve([request[:cut], request[cut:]]))
    # uvicorn itself refuses a malformed body. The application can then not send its answer, which is an
    # error. The controller bounds the log (`limits.OneLine`).
    failures = [failure for failure in FAILURES.seen if not isinstance(failure, LocalProtocolError)]
    FAILURES.seen.clear()
    if failures:
        raise failures[0]
    if written:
        assert int(written.split(b" ", 2)[1]) in STATUS, written[:80]
    if b"authorization" not in request.lower():
        assert not written.startswith(b"HTTP/1.1 200"), "a page without the token"
