"""The agents' channel as a pure state machine: lines of JSON, each with a number and a MAC.

Both ends first send a greeting with their name and nonce. K = HMAC-SHA256(secret, "narrows-1" ||
controller's nonce || agent's nonce || controller's name || 0 || agent's name); the MAC of a line is
HMAC-SHA256(K, role || 0 || decimal sequence number || 0 || body). tests/vectors/channel.json has examples;
the agent's end is crates/narrows-agent/src/channel/session.rs.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import NamedTuple

from narrows.errors import NarrowsError

VERSION = 1
LINE_MAX = 1 << 20
"""Longest line in bytes, including its end."""
GREETING_MAX = 4096
"""Longest first line in bytes. The first line comes from an unauthenticated peer."""
NONCE_BYTES = 32
SECRET_MIN = 32
"""Shortest secret in bytes: the length of the MAC (RFC 2104, section 3)."""

_HEX_NONCE = re.compile(r"[0-9a-fA-F]{64}")
_NAME = re.compile(r"[\x21-\x7e]{1,64}")


class Refused(Exception):  # noqa: N818 (the name is the message)
    """The connection must be closed, for the reason in the text."""


def read_secret(path: Path) -> bytes:
    """The shared secret: at least 64 hexadecimal digits.

    Raises:
        NarrowsError: the file cannot be read or contains no secret.
    """
    expected = "expected at least 64 hexadecimal digits, e.g. from 'openssl rand -hex 32'"
    try:
        text = path.read_text(encoding="ascii").strip()
        secret = bytes.fromhex(text)
    except OSError as error:
        raise NarrowsError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise NarrowsError(f"{path}: found other characters, {expected}") from None
    if len(secret) < SECRET_MIN:
        raise NarrowsError(f"{path}: found {len(text)} digits, {expected}")
    return secret


class End(NamedTuple):
    """Name and nonce of an end, from its greeting."""

    name: str
    nonce: bytes


def session_key(secret: bytes, controller: End, agent: End) -> bytes:
    """The key of one connection. An agent's name contains no 0, so the names cannot be confused."""
    names = controller.name.encode() + b"\0" + agent.name.encode()
    return hmac.digest(secret, b"narrows-1" + controller.nonce + agent.nonce + names, hashlib.sha256)


def line_mac(key: bytes, role: str, seq: int, body: str) -> str:
    """The MAC of a line, in hexadecimal."""
    message = b"\0".join((role.encode(), str(seq).encode(), body.encode()))
    return hmac.digest(key, message, hashlib.sha256).hex()


class Session:
    """The controller's end of one connection.

    Args:
        secret: the shared secret; empty: no authentication.
        nonce: 32 fresh random bytes.
        name: name of the controller.
    """

    def __init__(self, secret: bytes, nonce: bytes, name: str) -> None:
        self._secret, self._nonce, self._name = secret, nonce, name
        self._key: bytes | None = None
        self._partial = bytearray()
        self._sent = self._received = 0
        self.agent = ""
        """The agent's name from its greeting, valid once `is_authenticated`."""

    @property
    def is_authenticated(self) -> bool:
        """Whether a line with a valid MAC has arrived."""
        return self._received > 0

    def greeting(self) -> bytes:
        """The first line to send."""
        greeting = {"narrows": VERSION, "role": "controller", "name": self._name, "nonce": self._nonce.hex()}
        return json.dumps(greeting).encode() + b"\n"

    def seal(self, body: str) -> bytes:
        """The next line to send. Call it only after the agent's greeting."""
        assert self._key is not None
        seq = self._sent
        self._sent += 1
        line = {"seq": seq, "body": body, "mac": line_mac(self._key, "controller", seq, body)}
        return json.dumps(line).encode() + b"\n"

    def receive(self, data: bytes) -> list[str]:
        """Takes received bytes and returns the complete bodies.

        Raises:
            Refused: the connection must be closed.
        """
        bodies = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._hold(end)
            line = bytes(self._partial)
            self._partial.clear()
            body = self._line(line)
            if body is not None:
                bodies.append(body)
        self._hold(rest)
        return bodies

    def _hold(self, data: bytes) -> None:
        most = LINE_MAX if self.is_authenticated else GREETING_MAX if self._key is None else LINE_MAX
        if len(self._partial) + len(data) >= most:
            raise Refused(f"a line of more than {most} bytes")
        self._partial += data

    def _line(self, line: bytes) -> str | None:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            raise Refused("a line that is not JSON") from None
        if not isinstance(fields, dict):
            raise Refused("a line that is not an object")
        if self._key is None:
            self._greeted(fields)
            return None
        seq, body, mac = fields.get("seq"), fields.get("body"), fields.get("mac")
        if type(seq) is not int or not isinstance(body, str) or not isinstance(mac, str):
            raise Refused("a line without seq, body and mac")
        if seq != self._received:
            raise Refused(f"found line {seq}, expected line {self._received}")
        try:
            right = line_mac(self._key, "agent", seq, body)
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can express and UTF-8 cannot
            raise Refused("a body that is not Unicode") from None
        if not hmac.compare_digest(right.encode(), mac.lower().encode("utf-8", "replace")):
            raise Refused(f"a wrong MAC on line {seq}: another secret, or the line was changed on the way")
        self._received += 1
        return body

    def _greeted(self, fields: dict[str, object]) -> None:
        version, role = fields.get("narrows"), fields.get("role")
        if version != VERSION or role != "agent":
            raise Refused(f"a greeting that is not from an agent of version {VERSION}")
        name, nonce = fields.get("name"), fields.get("nonce")
        if not isinstance(nonce, str) or not _HEX_NONCE.fullmatch(nonce):
            raise Refused("a greeting without a nonce of 64 hexadecimal digits")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Refused("a greeting without a name of 1 to 64 printable characters")
        theirs = bytes.fromhex(nonce)
        if theirs == self._nonce:
            raise Refused("a greeting with the controller's own nonce")
        self.agent = name
        self._key = session_key(self._secret, End(self._name, self._nonce), End(name, theirs))
