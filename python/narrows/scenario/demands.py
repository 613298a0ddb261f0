"""Traffic matrices from CSV files. Each demand is a line `from,to,mbit`."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from narrows.errors import ScenarioError, found
from narrows.topology.facts import Demand

MAX_BYTES = 16 << 20
"""Maximum size of a file."""
MOST_MBIT = 1e9
"""Maximum demand. It is the same as the maximum rate of a link."""
_HEADER = ["from", "to", "mbit"]


def read(file: str, folder: Path, key: str) -> list[tuple[Demand, str]]:
    """Demands, each with its line number. Empty lines, comments (#) and a header are skipped.

    Raises:
        ScenarioError: for an error in the file, with the file and the line. If the file cannot be read, the
            error names `key` instead of a line.
    """
    path = folder / file
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise ScenarioError(f"found more than {MAX_BYTES >> 20} MiB, expected a traffic matrix", "", file)
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError("found other bytes, expected UTF-8 text", "", file) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise ScenarioError(
            f"found {found(file)}, expected 'sndlib' or a readable CSV file ({reason})", key
        ) from None
    demands: list[tuple[Demand, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if not demands and [cell.lower() for cell in cells] == _HEADER:
            continue
        where = f"line {number}"
        if len(cells) != len(_HEADER):
            raise ScenarioError(f"found {len(cells)} columns, expected from,to,mbit", where, file)
        demands.append((Demand(cells[0], cells[1], _mbit(cells[2], where, file)), where))
    if not demands:
        raise ScenarioError("found no demands, expected lines such as 'a,b,12.5' (from,to,mbit)", "", file)
    return demands


def _mbit(cell: str, where: str, file: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_MBIT:
        raise ScenarioError(f"found {found(cell)}, expected Mbit/s from 0 to {MOST_MBIT:.0f}", where, file)
    return value
