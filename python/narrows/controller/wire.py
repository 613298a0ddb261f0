"""The lines of the agents' channel as a state machine without input or output. Each line is a JSON value.

The agent sends a greeting with its name. The controller answers with its own name or with a refusal. After an
acceptance, both ends send message bodies. If the connection uses TLS, TLS authenticates both ends
(`tls.Keys`), and the agent's name must be the name in its certificate. The agent's end is
crates/narrows-agent/src/channel/session.rs.
"""

from __future__ import annotations

import json
import re

from narrows._native import CHANNEL_VERSION, GREETING_MAX, LINE_MAX

NAME = r"[\x21-\x7e]{1,64}"
"""Pattern of the names of agents and controllers."""


class Refused(Exception):  # noqa: N818 (the name is the message)
    """The peer is refused, so the connection must be closed. The exception's text gives the reason."""


class StandbyRefusal(Refused):
    """This controller is a standby, so the agent must use the other controller."""


class Session:
    """The controller's end of one connection.

    Args:
        name: name of the controller.
        certified: name in the peer's certificate (None: no TLS).
        other: name of the other controller of the pair, which may connect like an agent.
    """

    def __init__(self, name: str, certified: str | None, other: str | None = None) -> None:
        self._name, self._certified, self._other = name, certified, other
        self._partial = bytearray()
        self.agent = ""
        """The name of the agent or of the other controller (empty: no greeting yet)."""
        self.is_controller = False
        """Whether the peer is the other controller."""

    def answer(self) -> bytes:
        """The line with which the controller accepts the agent."""
        return greeting("controller", self._name)

    @staticmethod
    def refusal(reason: str) -> bytes:
        """The line with which the controller refuses the agent."""
        return _line({"narrows": CHANNEL_VERSION, "refused": reason})

    def receive(self, data: bytes) -> list[str]:
        """Takes received bytes, and returns the message bodies that these bytes complete.

        Raises:
            Refused: the connection must be closed.
        """
        bodies = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._hold(end)
            line = bytes(self._partial)
            self._partial.clear()
            if self.agent:
                bodies.append(_text(line))
            else:
                self._greeted(line)
        self._hold(rest)
        return bodies

    def _hold(self, data: bytes) -> None:
        most = LINE_MAX if self.agent else GREETING_MAX
        if len(self._partial) + len(data) >= most:
            raise Refused(f"a line of more than {most} bytes")
        self._partial += data

    def _greeted(self, line: bytes) -> None:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            raise Refused("a greeting that is not JSON") from None
        if not isinstance(fields, dict):
            raise Refused("a greeting that is not an object")
        version, role, name = fields.get("narrows"), fields.get("role"), fields.get("name")
        is_controller = role == "controller" and name == self._other is not None
        if type(version) is not int or version != CHANNEL_VERSION or not (role == "agent" or is_controller):
            raise Refused(f"a greeting that is not from an agent of version {CHANNEL_VERSION}")
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            raise Refused("a greeting without a name of 1 to 64 printable characters")
        if self._certified is not None and name != self._certified:
            raise Refused(f"found the name {name!r}, expected {self._certified!r} as in its certificate")
        self.agent, self.is_controller = name, is_controller


def greeting(role: str, name: str) -> bytes:
    """The greeting: the first line that an end of a connection sends."""
    return _line({"narrows": CHANNEL_VERSION, "role": role, "name": name})


def line(body: str) -> bytes:
    """The line for a message body (JSON without line breaks)."""
    return body.encode() + b"\n"


def _line(fields: dict[str, object]) -> bytes:
    return line(json.dumps(fields))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused("a line that is not Unicode") from None
