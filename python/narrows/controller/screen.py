"""Checks OpenFlow messages before os-ken parses them.

Each connection has its own `Screen`, which does no input or output.

Several loops of os-ken's parser advance by a length from the message. If this length is zero, such a loop
never ends. The screen therefore accepts only the message types that this controller handles, and checks all
their lengths first.
"""

from __future__ import annotations

import struct
from enum import Enum, auto

HEADER_BYTES = 8
VERSION = 4
"""The number of OpenFlow 1.3 in the header of a message."""

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER = 0, 1, 2, 3, 4
FEATURES_REPLY, PACKET_IN, FLOW_REMOVED, PORT_STATUS = 6, 10, 11, 12
MULTIPART_REPLY, BARRIER_REPLY, ROLE_REPLY = 19, 21, 25
FLOW_STATS, PORT_STATS, PORT_DESC = 1, 4, 13
"""Types of messages and of multipart replies (OpenFlow 1.3.5, A.1 and A.3.5)."""

_MESSAGE_MAX = 0xFFFF
_LENGTHS = {
    HELLO: (8, 1024),
    ERROR: (12, _MESSAGE_MAX),
    ECHO_REQUEST: (8, 4096),
    ECHO_REPLY: (8, 4096),
    EXPERIMENTER: (16, _MESSAGE_MAX),
    FEATURES_REPLY: (32, 32),
    PACKET_IN: (34, _MESSAGE_MAX),
    FLOW_REMOVED: (56, _MESSAGE_MAX),
    PORT_STATUS: (80, 80),
    MULTIPART_REPLY: (16, _MESSAGE_MAX),
    BARRIER_REPLY: (8, 8),
    ROLE_REPLY: (24, 24),
}
"""Minimum and maximum length of each type of message that a switch may send."""
_UNASKED = {PACKET_IN, FLOW_REMOVED, PORT_STATUS}
"""Types of messages that a reconnecting switch may send unasked, even before the end of the handshake."""
_BEFORE_READY_MAX = 256
"""Maximum number of messages before the end of the handshake. More are not needed, because one message can
describe a thousand ports."""

_PORT_BYTES, _PORT_STATS_BYTES, _FLOW_STATS_BYTES = 64, 112, 48
_OXM_MATCH, _OXM_EXPERIMENTER, _ONF = 1, 0xFFFF, 0x4F4E4600
_PORT_REASON_MAX = 2
_ACTIONS = 1 << 3 | 1 << 4 | 1 << 5
_INSTRUCTION_BYTES = {1: 8, 2: 24, 6: 8}
"""Lengths of the instructions GOTO_TABLE, WRITE_METADATA and METER. The other instructions, in `_ACTIONS`,
have a list of actions."""
_ACTION_BYTES = {0: 16} | dict.fromkeys((11, 12, *range(15, 25), 26, 27), 8)
_SET_FIELD = 25


class Violation(Exception):  # noqa: N818 (the field's word)
    """A message breaks the rules, so the connection must be closed. The text gives the reason."""


class Fate(Enum):
    """How a valid message is handled."""

    PARSE = auto()
    SKIP = auto()
    REPORT = auto()
    """The message reports an error of the switch, which is logged."""


class Screen:
    """Checks the messages of a switch in the order of their arrival."""

    def __init__(self) -> None:
        self.greeted = False
        self._introduced = False
        self._count = 0

    def length(self, header: bytes) -> int:
        """The length of a message, from its first eight bytes.

        Raises:
            Violation: if no message with this version, type and length is accepted.
        """
        version, kind, length = header[0], header[1], _number(header, 2)
        if kind not in _LENGTHS:
            raise Violation(f"message type {kind}, which this controller does not accept")
        # Until the two sides have agreed on a version, each side puts its own version into the header.
        if version != VERSION and (version == 0 or kind not in (HELLO, ERROR)):
            raise Violation(f"OpenFlow version {version} in the header, expected {VERSION}")
        least, most = _LENGTHS[kind]
        if not least <= length <= most:
            raise Violation(f"length {length} of message type {kind}, expected {least} to {most}")
        return length

    def check(self, message: bytes, ready: bool) -> Fate:
        """Checks a whole message.

        Args:
            message: the message, with the length that its header states.
            ready: whether the handshake is complete.

        Raises:
            Violation: if the contents of the message are inconsistent, or if the message arrived at the
            wrong time.
        """
        kind = message[1]
        if not ready:
            self._count += 1
            if self._count > _BEFORE_READY_MAX:
                raise Violation("too many messages before the end of the handshake")
        if kind == ERROR:
            if not self.greeted:
                raise Violation("the switch refused the greeting with error {}/{}".format(*error(message)))
            return Fate.REPORT
        if (kind == HELLO) == self.greeted:
            raise Violation(f"message type {kind} before the greeting, or a second greeting")
        if kind == HELLO:
            self._hello(message)
            return Fate.PARSE
        if kind == FEATURES_REPLY:
            if self._introduced:
                raise Violation("a second description of the switch")
            if message[21] != 0:
                raise Violation("an auxiliary connection")
            self._introduced = True
            return Fate.PARSE
        if kind in (EXPERIMENTER, ECHO_REPLY) or (not ready and kind in _UNASKED):
            return Fate.SKIP
        if not ready and kind != ECHO_REQUEST and not self._is_port_desc(message):
            raise Violation(f"message type {kind} before the end of the handshake")
        _check_body(kind, message)
        return Fate.PARSE

    def _is_port_desc(self, message: bytes) -> bool:
        """Whether the message is the description of the ports, with which a handshake ends."""
        return self._introduced and message[1] == MULTIPART_REPLY and _number(message, 8) == PORT_DESC

    def _hello(self, message: bytes) -> None:
        versions: set[int] | None = None
        offset = HEADER_BYTES
        while offset < len(message):
            kind, length = _head(message, offset, len(message), "greeting element")
            if kind == 1:
                words = struct.unpack_from(f"!{(length - 4) // 4}I", message, offset + 4)
                versions = {
                    32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1
                }
            offset += _padded(length)
        if VERSION not in versions if versions is not None else message[0] < VERSION:
            raise IncompatibleVersion(versions or {message[0]})
        self.greeted = True


class IncompatibleVersion(Violation):
    """The switch does not speak OpenFlow 1.3."""

    def __init__(self, versions: set[int]) -> None:
        named = ", ".join(str(version) for version in sorted(versions)[:8])
        super().__init__(f"OpenFlow versions {named} on the wire, expected {VERSION} (OpenFlow 1.3)")


def error(message: bytes) -> tuple[int, int]:
    """Type and code of an error message."""
    kind, code = struct.unpack_from("!HH", message, HEADER_BYTES)
    return kind, code


def _check_body(kind: int, message: bytes) -> None:
    end = len(message)
    match kind:
        case 10:  # PACKET_IN
            if _match(message, 24, end) + 2 > end:
                raise Violation("a packet without its padding")
        case 11:  # FLOW_REMOVED
            if _match(message, 48, end) != end:
                raise Violation("bytes after the match of a removed entry")
        case 12:  # PORT_STATUS
            if message[8] > _PORT_REASON_MAX:
                raise Violation(f"reason {message[8]} of a port's change, expected 0 to {_PORT_REASON_MAX}")
        case 19:  # MULTIPART_REPLY
            _multipart(_number(message, 8), message)


def _multipart(kind: int, message: bytes) -> None:
    end = len(message)
    size = {PORT_DESC: _PORT_BYTES, PORT_STATS: _PORT_STATS_BYTES}.get(kind)
    if size is not None:
        if (end - 16) % size:
            raise Violation(f"{end - 16} bytes in multipart type {kind}, expected a multiple of {size}")
        return
    if kind != FLOW_STATS:
        raise Violation(f"multipart type {kind}, which was not requested")
    offset = 16
    while offset < end:
        if end - offset < _FLOW_STATS_BYTES + 8:
            raise Violation("a truncated flow entry")
        length = _number(message, offset)
        if length < _FLOW_STATS_BYTES + 8 or length % 8 or offset + length > end:
            raise Violation(f"length {length} of a flow entry")
        _instructions(message, _match(message, offset + _FLOW_STATS_BYTES, offset + length), offset + length)
        offset += length


def _instructions(message: bytes, offset: int, end: int) -> None:
    while offset < end:
        kind, length = _head(message, offset, end, "instruction")
        if kind < 8 and 1 << kind & _ACTIONS:
            if length < HEADER_BYTES:
                raise Violation(f"length {length} of instruction {kind}")
            _action_list(message, offset + 8, offset + length)
        elif _INSTRUCTION_BYTES.get(kind) != length:
            raise Violation(f"length {length} of instruction {kind}")
        offset += length


def _action_list(message: bytes, offset: int, end: int) -> None:
    while offset < end:
        kind, length = _head(message, offset, end, "action")
        if kind == _SET_FIELD and length >= 8 and length % 8 == 0:
            _oxm(message, offset + 4, offset + length)
        elif _ACTION_BYTES.get(kind) != length:
            raise Violation(f"length {length} of action {kind}")
        offset += length


def _match(message: bytes, offset: int, end: int) -> int:
    """Checks a match, and returns the offset after the match's padding."""
    kind, length = _head(message, offset, end, "match")
    after = offset + _padded(length)
    if kind != _OXM_MATCH or after > end:
        raise Violation(f"match of type {kind} and length {length}")
    at, fields_end = offset + 4, offset + length
    while at < fields_end:
        at = _oxm(message, at, fields_end)
    return after


def _oxm(message: bytes, offset: int, end: int) -> int:
    """Checks a field of a match, and returns the offset after the field."""
    if end - offset < 4:
        raise Violation("a truncated field of a match")
    oxm_class, masked, length = _number(message, offset), message[offset + 2] & 1, message[offset + 3]
    inner = length
    if oxm_class == _OXM_EXPERIMENTER:
        inner -= 4
        if inner > 2 and message[offset + 2] >> 1 == 0 and _long(message, offset + 4) == _ONF:
            inner -= 2
    if inner <= 0 or (masked and inner % 2) or offset + 4 + length > end:
        raise Violation(f"length {length} of a field of a match")
    return offset + 4 + length


def _head(message: bytes, offset: int, end: int, what: str) -> tuple[int, int]:
    """Type and length of an element.

    The length includes the four bytes of the type and length fields.
    """
    if end - offset < 4:
        raise Violation(f"a truncated {what}")
    kind, length = struct.unpack_from("!HH", message, offset)
    if length < 4 or offset + length > end:
        raise Violation(f"length {length} of a {what}")
    return kind, length


def _number(message: bytes, offset: int) -> int:
    return int.from_bytes(message[offset : offset + 2], "big")


def _long(message: bytes, offset: int) -> int:
    return int.from_bytes(message[offset : offset + 4], "big")


def _padded(length: int) -> int:
    return (length + 7) & ~7
