"""Connects two controllers with threads and sockets. `standby.Election` makes the decisions."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from narrows._native import ALIVE, GREETING_MAX
from narrows.controller import wire
from narrows.controller.standby import GENERATIONS, Election
from narrows.controller.tls import Keys
from narrows.errors import one_line

LOG = logging.getLogger("narrows.controller.pair")

TELL_S = 0.5
"""Interval between two messages to the other controller."""
PULSE_S = 1.0
"""Interval between two messages to each switch."""
_TICK_S = 0.1
_CONNECT_S = 2.0
_READ_BYTES = 4096


class Pair:
    """This controller and the other controller of the pair.

    Args:
        name: name of this controller.
        other: name of the other controller.
        address: address at which the other controller listens for agents.
        keys: files of the keys (None: on loopback).
        takeover_s: see `Election`.
    """

    def __init__(
        self, name: str, other: str, address: tuple[str, int], keys: Keys | None, takeover_s: float
    ) -> None:
        self.name, self.other = name, other
        self.on_active: Callable[[], None] = lambda: None
        """Called once, when this controller becomes active."""
        self.on_yield: Callable[[str], None] = lambda _: None
        """Called when this controller must step down, with the reason."""
        self.on_pulse: Callable[[], None] = lambda: None
        """Called every second and when this controller becomes active. The function asks all switches which
        role this controller has."""
        self._address, self._keys, self._silent_s = address, keys, takeover_s
        self._lock = threading.Lock()
        self._is_active = False
        self._election = Election(time.monotonic_ns(), name, other, int(takeover_s * 1e9))

    @property
    def is_active(self) -> bool:
        """Whether this controller is active, and the call of `on_active` has returned."""
        return self._is_active

    def start(self) -> None:
        """Starts the threads."""
        for target in (self._watch, self._tick):
            threading.Thread(target=target, name=f"pair{target.__name__}", daemon=True).start()

    def state(self) -> str:
        """The line about this controller's state that is sent to the other controller."""
        with self._lock:
            state = {"active": self._election.is_active, "generation": self._election.generation}
        return json.dumps(state)

    def on_switch(self, generation: int, demoted: bool) -> None:
        """Handles the generation id of a switch, see `Election.on_switch`."""
        with self._lock:
            must_yield = self._election.on_switch(time.monotonic_ns(), generation, demoted)
        if must_yield:
            self.on_yield("another controller has become the master of a switch")

    def next_generation(self) -> int:
        """Raises the generation above all known generations, and returns it."""
        with self._lock:
            return self._election.raise_generation()

    def _tick(self) -> None:
        pulse_s = 0.0
        while True:
            time.sleep(_TICK_S)
            with self._lock:
                becomes_active = self._election.tick(time.monotonic_ns())
            if becomes_active:
                self.on_active()
                self._is_active = True
            if becomes_active or time.monotonic() - pulse_s >= PULSE_S:
                pulse_s = time.monotonic()
                self.on_pulse()

    def _watch(self) -> None:
        known = ""
        while True:
            try:
                self._read()
                trouble = "it closed the connection"
            except (OSError, ValueError, RecursionError) as error:
                trouble = one_line(str(error))
            if trouble != known:  # log a problem only when it changes, not at every attempt
                LOG.warning("controller %s at %s:%d: %s", self.other, *self._address, trouble)
                known = trouble
            time.sleep(TELL_S)

    def _read(self) -> None:
        """Reads the states of the other controller until the connection ends."""
        connection = self._connect()
        try:
            connection.settimeout(self._silent_s)
            connection.sendall(wire.greeting("controller", self.name))
            data = b""
            while received := connection.recv(_READ_BYTES):
                *lines, data = (data + received).split(b"\n")
                if len(data) > GREETING_MAX:
                    raise ValueError(f"a line of more than {GREETING_MAX} bytes")
                for line in lines:
                    self._on_line(json.loads(line))
                # Answer each received state with a line, because the other end disconnects a silent peer.
                connection.sendall(wire.line(ALIVE))
        finally:
            connection.close()

    def _connect(self) -> socket.socket:
        raw = socket.create_connection(self._address, timeout=_CONNECT_S)
        if self._keys is None:
            return raw
        try:
            return self._keys.connect(raw, self.other)
        except BaseException:
            raw.close()
            raise

    def _on_line(self, fields: Any) -> None:
        if not isinstance(fields, dict):
            raise ValueError("a line that is not an object")
        if "refused" in fields:
            raise ValueError(f"refused: {fields['refused']}"[:200])
        if "active" not in fields:
            return  # the answer to the greeting
        is_active, generation = fields["active"], fields.get("generation")
        if type(is_active) is not bool or type(generation) is not int or not 0 <= generation < GENERATIONS:
            raise ValueError("a state without active and generation")
        with self._lock:
            must_yield = self._election.on_peer(time.monotonic_ns(), is_active, generation)
        if must_yield:
            self.on_yield(f"controller {self.other} is active, and has the higher generation")
