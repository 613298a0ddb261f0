"""Parses and prints values with units.

Times become integer nanoseconds, rates integer bit/s, sizes integer bytes, probabilities floats. Prefixes of
rates and sizes are decimal (1 kbit = 1000 bit, 1 kB = 1000 B), except for binary prefixes (KiB, Mibit).
``Mbps`` is megabit per second, unlike in ``tc``, where it is megabyte per second. Bytes need a capital B:
``MB/s``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from narrows.errors import Expected

NANOS_PER_SEC = 1_000_000_000

# With these limits, every product of two values fits into the simulator's 64 bits.
MAX_NANOS = 1_000_000 * NANOS_PER_SEC
MAX_BITS_PER_SEC = 10**15
MAX_BYTES = 10**15
MAX_PACKETS = 2**32 - 1

_NUMBER = re.compile(
    r"\s*([+-]?(?:\d{1,25}(?:\.\d{0,25})?|\.\d{1,25})(?:[eE][+-]?\d{1,2})?)\s*(.*?)\s*", re.ASCII
)

_TIME = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NANOS_PER_SEC,
    "sec": NANOS_PER_SEC,
    "min": 60 * NANOS_PER_SEC,
    "h": 3600 * NANOS_PER_SEC,
}
_TIME_UNITS = " (units: ns, us, ms, s, min, h)"
_PREFIX = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_RATE = re.compile(r"(|k|m|g|t|ki|mi|gi)(bits?|b)(/s|ps|)", re.IGNORECASE)
_SIZE = re.compile(r"(|k|m|g|t|ki|mi|gi)(B|bytes?)", re.IGNORECASE)


def _split(value: object, expected: str) -> tuple[Fraction, str]:
    """Split a string into number and unit."""
    if not isinstance(value, str) or len(value) > 80:
        raise Expected(expected)
    match = _NUMBER.fullmatch(value)
    if match is None:
        raise Expected(expected)
    return Fraction(match[1]), match[2]


def _whole(value: Fraction, most: int, expected: str) -> int:
    """The nearest integer (halves up) between 0 and `most`."""
    if value < 0:
        raise Expected(f"{expected}, not negative")
    whole = math.floor(value + Fraction(1, 2))
    if whole > most:
        raise Expected(f"{expected}, not as large")
    return whole


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def parse_duration(value: object) -> int:
    """Convert a time such as ``20ms`` to nanoseconds. A bare 0 needs no unit."""
    expected = "a time such as '20ms' or '30s'"
    if _is_zero(value):
        return 0
    number, unit = _split(value, expected)
    if unit not in _TIME:
        raise Expected(f"{expected}{_TIME_UNITS if unit else ''}")
    return _whole(number * _TIME[unit], MAX_NANOS, expected)


def parse_rate(value: object) -> int:
    """Convert a rate such as ``100mbit``, ``10kbit/s``, ``100Mbps`` or ``2MB/s`` to bit/s."""
    expected = "a rate such as '100mbit'"
    number, unit = _split(value, expected)
    match = _RATE.fullmatch(unit)
    if match is None:
        raise Expected(expected)
    octets = 8 if match[2] == "B" else 1
    if octets == 8 and not match[3]:
        raise Expected(f"{expected} (bytes per second are written 'MB/s')")
    rate = _whole(number * _PREFIX[match[1].lower()] * octets, MAX_BITS_PER_SEC, expected)
    if number > 0 and rate < 8:
        raise Expected(f"{expected}, at least one byte per second ('8bit/s')")
    return rate


def parse_size(value: object) -> int:
    """Convert a size such as ``64kB`` or ``1MiB`` to bytes. A bare 0 needs no unit."""
    expected = "a size such as '64kB'"
    if _is_zero(value):
        return 0
    number, unit = _split(value, expected)
    match = _SIZE.fullmatch(unit)
    if match is None or match[2] == "b":
        raise Expected(expected)
    return _whole(number * _PREFIX[match[1].lower()], MAX_BYTES, expected)


def parse_probability(value: object) -> float:
    """Convert a probability such as ``0.1%`` or 0.001 to a number."""
    return _parse_part(value, "a probability such as '0.1%' or 0.001")


def parse_share(value: object) -> float:
    """Convert a share such as ``50%`` or 0.5 to a number."""
    return _parse_part(value, "a share such as '50%' or 0.5")


def _parse_part(value: object, expected: str) -> float:
    """A number from 0 to 1, or in percent."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        p = float(value)
    else:
        number, unit = _split(value, expected)
        if unit not in ("", "%"):
            raise Expected(expected)
        p = float(number / 100 if unit == "%" else number)
    if not 0.0 <= p <= 1.0:
        raise Expected(f"{expected}, between 0 and 1")
    return p


def parse_loss(value: object) -> float:
    """Convert a loss such as ``0.1%`` or 0.001 to a number. A bare 1 (1 % or 100 %?) is an error."""
    p = parse_probability(value)
    if p == 1 and not (isinstance(value, str) and "%" in value):
        raise Expected("a loss such as '1%' or 0.01 ('100%' loses every packet)")
    return p


@dataclass(frozen=True)
class Limit:
    """Maximum length of a queue in packets, bytes or bandwidth-delay products (all None: no limit)."""

    packets: int | None = None
    bytes: int | None = None
    bdp: float | None = None

    def __str__(self) -> str:
        if self.packets is not None:
            return f"{self.packets}p"
        if self.bytes is not None:
            return format_size(self.bytes)
        return "infinite" if self.bdp is None else f"{self.bdp!r}bdp".replace(".0bdp", "bdp")


def parse_limit(value: object) -> Limit:
    """Convert the length of a queue such as ``1000p``, ``150kB``, ``1bdp`` or ``infinite``."""
    expected = "a queue length such as '1000p', '150kB', '1bdp' or 'infinite'"
    if isinstance(value, Limit):
        return value
    if value == "infinite":
        return Limit()
    number, unit = _split(value, expected)
    if number <= 0:
        raise Expected(f"{expected}, above zero")
    if unit in ("p", "packets", "pkts"):
        packets = _whole(number, MAX_PACKETS, expected)
        if packets != number:
            raise Expected(f"{expected}, whole packets")
        return Limit(packets=packets)
    if unit.lower() == "bdp":
        if number > 1_000_000:
            raise Expected(f"{expected}, no larger than 1000000bdp")
        return Limit(bdp=float(number))
    try:
        return Limit(bytes=max(1, parse_size(value)))
    except Expected:
        raise Expected(expected) from None


def parse_finite_limit(value: object) -> Limit:
    """Convert a queue length as `parse_limit` does, but refuse ``infinite``."""
    limit = parse_limit(value)
    if limit == Limit():
        raise Expected("a length such as '0.17bdp' or a number of packets")
    return limit


def format_duration(nanos: int) -> str:
    """A time in nanoseconds as text, in the largest unit that is exact."""
    for unit, scale in (("s", NANOS_PER_SEC), ("ms", 1_000_000), ("us", 1_000)):
        if nanos % scale == 0:
            return f"{nanos // scale}{unit}"
    return f"{nanos}ns"


def format_rate(bits_per_sec: int) -> str:
    """A rate in bit/s as text, in the largest unit that is exact."""
    for unit, scale in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if bits_per_sec and bits_per_sec % scale == 0:
            return f"{bits_per_sec // scale}{unit}"
    return f"{bits_per_sec}bit"


def format_size(size: int) -> str:
    """A size in bytes as text, in the largest unit that is exact."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size and size % scale == 0:
            return f"{size // scale}{unit}"
    return f"{size}B"


def spelled_rate(rate: int) -> str:
    """A rate in bit/s for people to read, e.g. `100 Mbit/s`."""
    for factor, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if rate >= factor:
            return f"{rate / factor:.4g} {unit}"
    return f"{rate} bit/s"
