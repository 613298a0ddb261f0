"""Reports of traffic and attackers: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LONGEST = 1 << 16
"""Longest line in bytes."""


def say(**fields: object) -> None:
    """Prints a report with these fields."""
    print(json.dumps(fields), flush=True)


def last(path: Path) -> dict[str, Any]:
    """The last report in a file, or an empty one if there is none."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2 * LONGEST))
        lines = file.read().splitlines(keepends=True)
    return next((json.loads(line) for line in reversed(lines) if _is_whole(line.decode())), {})


def every(path: Path) -> Iterator[dict[str, Any]]:
    """All reports in a file."""
    with path.open() as file:
        yield from (json.loads(line) for line in file if _is_whole(line))


def _is_whole(line: str) -> bool:
    """Whether the line is a complete report. Files also contain errors, and the last line may be cut off."""
    return line.startswith("{") and line.endswith("\n")
