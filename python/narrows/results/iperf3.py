"""Reads the sender's report of each interval from iperf3's JSON (`iperf3 --json` on the client)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from narrows.errors import OutputError, one_line, unreadable

MOST_STREAMS = 8
"""Maximum number of streams. It is the number of colours in a figure that are easy to distinguish."""
MOST = 1e18
"""Largest accepted number of bytes, bit/s or microseconds."""
WRITTEN = "a file that iperf3 --json wrote"
"""The words for the expected file in error messages."""


@dataclass(frozen=True)
class Trace:
    """One run of iperf3."""

    title: str
    streams: dict[str, list[dict[str, Any]]]
    """Intervals of each stream, in order."""
    udp: bool = False


def read(path: Path) -> Trace:
    """Read a file of iperf3.

    Raises:
        OutputError: if the file cannot be read or is not from iperf3.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OutputError(f"{path}: {unreadable(error, WRITTEN)}") from None
    except (ValueError, RecursionError) as error:
        raise OutputError(one_line(f"{path}: not JSON: {error}")) from None
    return parse(data, path)


def parse(data: Any, path: Path) -> Trace:
    """The run in a report of iperf3.

    Args:
        data: the report.
        path: the report's file, for errors and for the title.

    Raises:
        OutputError: if the data is not from iperf3.
    """
    intervals = data.get("intervals") if isinstance(data, dict) else None
    if not isinstance(intervals, list):
        why = f": iperf3 says {data['error']!r}" if isinstance(data, dict) and "error" in data else ""
        raise OutputError(one_line(f"{path}: found no intervals, expected the output of iperf3 --json{why}"))
    streams: dict[str, list[dict[str, Any]]] = {}
    for number, interval in enumerate(intervals):
        for stream in _list(interval, "streams"):
            if not isinstance(stream, dict) or not all(is_number(stream.get(k)) for k in ("start", "end")):
                raise OutputError(f"{path}: intervals.{number}: found a stream without start and end")
            if not stream.get("omitted"):
                name = _drawable(f"stream {stream.get('socket', '?')}")
                streams.setdefault(name, []).append(stream)
    if not streams:
        raise OutputError(f"{path}: found no interval with a stream, expected at least one")
    if len(streams) > MOST_STREAMS:
        raise OutputError(f"{path}: found {len(streams)} streams, expected at most {MOST_STREAMS}")
    if len(streams) == 1:
        streams = {"": next(iter(streams.values()))}
    return Trace(_title(data, path), streams, _get(data, "start", "test_start", "protocol") == "UDP")


def _title(data: dict[str, Any], path: Path) -> str:
    algorithm = _get(data, "end", "sender_tcp_congestion")
    host = _get(data, "start", "connecting_to", "host")
    parts = [path.name, str(algorithm or ""), f"to {host}" if host else ""]
    return _drawable(", ".join(filter(None, parts)))


def _drawable(text: str) -> str:
    """The text without unpaired surrogates, which JSON allows but a picture does not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _get(of: Any, *keys: str) -> Any:
    """The value under these nested keys, or None if a key is missing."""
    for key in keys:
        of = of.get(key) if isinstance(of, dict) else None
    return of


def _list(of: Any, key: str) -> list[Any]:
    found = of.get(key) if isinstance(of, dict) else None
    return found if isinstance(found, list) else []


def is_number(value: object) -> TypeGuard[float]:
    """Whether the value is a number that can be drawn. An integer in JSON may be too large for a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST
