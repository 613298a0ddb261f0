"""Reads capacity traces in the formats mahimahi and CSV. Errors name the line."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from narrows import rate, units
from narrows.errors import Expected, ScenarioError, found, hint
from narrows.packets import FULL_PACKET
from narrows.parameters import files_of
from narrows.plan import RatePlan
from narrows.scenario.model import Scenario
from narrows.scenario.network import Trace, Traits
from narrows.scenario.traffic import SNDLIB

MAX_TRACE_BYTES = 1 << 30
_TIME_SCALE = {"s": units.NANOS_PER_SEC, "ms": 1_000_000, "us": 1_000}
_DEFAULT_GAP_STEPS = 10
_DEFAULT_GAP = 10 * units.NANOS_PER_SEC
_MAX_MILLIS = 2**32 - 1
_MAX_HOLE_MILLIS = 60_000
"""Longest accepted gap in a mahimahi trace. A radio may be silent for many seconds. If a gap is longer than a
minute, a part of the recording is probably missing."""
_SEPARATED = re.compile(r"[,;\s]")
"""A separator of columns. Each data line of a CSV trace has a separator, but no line of a mahimahi trace has
one."""


@dataclass(frozen=True)
class Capacity:
    """A parsed trace."""

    plan: RatePlan
    """The value of `rate` in the plan."""
    mean: int
    """Mean rate of the trace, bit/s."""
    peak: int
    """Highest rate (mahimahi: highest mean over 100 ms), bit/s."""


def read(trace: Trace, folder: Path) -> Capacity:
    """Read a trace.

    Args:
        trace: the file and its format.
        folder: the folder to which its path is relative.

    Raises:
        ScenarioError: for an error in the trace, with its file and line.
    """
    path = folder / trace.file
    try:
        state = path.stat()
        if state.st_size > MAX_TRACE_BYTES:
            raise ScenarioError(f"found a trace of more than {MAX_TRACE_BYTES >> 20} MiB", "file")
        return _read(trace, path, state.st_mtime_ns)
    except UnicodeDecodeError:
        raise ScenarioError(f"found {found(trace.file)}, expected a text file", "file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise ScenarioError(
            f"found {found(trace.file)}, expected a readable file ({reason})", "file"
        ) from None


@functools.lru_cache(maxsize=8)
def _read(trace: Trace, path: Path, modified: int) -> Capacity:  # noqa: ARG001 (a changed file is read again)
    """Read a trace. The result is cached, so that all points of a sweep share it."""
    text = path.read_text(encoding="utf-8")
    lines = [(i + 1, line.strip()) for i, line in enumerate(text.splitlines())]
    lines = [(i, line) for i, line in lines if line and not line.startswith("#")]
    if not lines:
        raise _bad(trace, 1, "found an empty trace, expected at least one line")
    return _mahimahi(trace, lines) if trace.format == "mahimahi" else _csv(trace, lines)


def digests(scenarios: Iterable[Scenario], folder: Path) -> dict[str, str]:
    """SHA-256 of each file that the scenarios name: traces, matrices, and files of parameters and programs.

    The keys of the result are the paths as written in the scenarios.
    """
    known = list(scenarios)
    files = {
        flow.demands
        for scenario in known
        for flow in scenario.flows
        if flow.demands is not None and flow.demands != SNDLIB
    }
    files |= {
        traits.trace.file
        for scenario in known
        for link in (scenario.topology, *scenario.links)
        if link is not None
        for traits in (link, getattr(link, "back", None))
        if isinstance(traits, Traits) and traits.trace is not None
    }
    controllers = [controller for scenario in known for controller in scenario.rate_controllers]
    if any(controller.params for controller in controllers):
        rows = rate.catalogue()
        for controller in controllers:
            files.update(files_of(controller.params, rows[controller.kind].parameters).values())
    for scenario in known:
        for flow in scenario.flows:
            files.update(flow.program.files if flow.program is not None else [])
    return {file: _digest(folder / file) for file in sorted(files)}


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files in a folder."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(path)}\0{content}\0".encode())
    return digest.hexdigest()


def _bad(trace: Trace, line: int, message: str) -> ScenarioError:
    return ScenarioError(message, f"line {line}", trace.file)


def _mahimahi(trace: Trace, lines: list[tuple[int, str]]) -> Capacity:
    """Each line is the time in ms at which 1500 bytes may be sent. Times do not decrease (mm-link(1))."""
    millis: list[int] = []
    for number, line in lines:
        if not line.isascii() or not line.isdigit() or len(line) > 10 or int(line) > _MAX_MILLIS:
            csv = '; is it format = "csv"?' if _SEPARATED.search(line) else ""
            raise _bad(trace, number, f"found {found(line)}, expected whole milliseconds{csv}")
        at = int(line)
        if millis and at < millis[-1]:
            raise _bad(trace, number, f"found {at} after {millis[-1]}, expected times that do not decrease")
        if at - (millis[-1] if millis else 0) > _MAX_HOLE_MILLIS:
            hole = (at - (millis[-1] if millis else 0)) // 1000
            raise _bad(
                trace, number, f"found a gap of {hole} s, expected at most {_MAX_HOLE_MILLIS // 1000} s"
            )
        millis.append(at)
    period = millis[-1]
    if period == 0:
        raise _bad(trace, lines[-1][0], "found a trace of 0 ms, expected a last line above 0")
    mean = len(millis) * FULL_PACKET * 8 * 1000 // period
    # The peak is the highest rate over 100 ms, because a burst within one millisecond is not a rate.
    window: dict[int, int] = {}
    for at in millis:
        window[at // 100] = window.get(at // 100, 0) + 1
    peak = max(window.values()) * FULL_PACKET * 8 * 10
    plan: RatePlan = {
        "kind": "opportunities",
        "millis": millis,
        "period_millis": period,
        "bytes": FULL_PACKET,
    }
    return Capacity(plan, max(8, mean), max(peak, mean, 8))


def _csv(trace: Trace, lines: list[tuple[int, str]]) -> Capacity:
    """Each line has a time and a rate.

    The scenario names the columns by number, or by name if the file has a header.

    Columns are separated by commas, semicolons, tabs or blanks.
    """
    try:
        per_unit = units.parse_rate(f"1{trace.unit}")
    except Expected:
        raise ScenarioError(f"found {found(trace.unit)}, expected a unit such as 'mbit/s'", "unit") from None
    split = _splitter(lines[0][1])
    header = split(lines[0][1])
    has_header = any(_number(cell) is None for cell in header)
    time_at = _column(trace.time, header if has_header else None, len(header), "time")
    rate_at = _column(trace.rate, header if has_header else None, len(header), "rate")
    rows = lines[1:] if has_header else lines
    if not rows:
        raise _bad(trace, lines[0][0], "found a header only, expected at least one line of figures")

    times: list[int] = []
    rates: list[int] = []
    for number, line in rows:
        cells = split(line)
        values = []
        for name, column in (("time", time_at), ("rate", rate_at)):
            cell = cells[column] if column < len(cells) else ""
            value = _number(cell)
            if value is None:
                raise _bad(trace, number, f"found {found(cell)} for {name}, expected a number")
            values.append(value)
        at, rate = round(values[0] * _TIME_SCALE[trace.time_unit]), int(values[1] * per_unit)
        if rate < 0:
            raise _bad(trace, number, f"found a rate of {values[1]}, expected none below zero")
        if rate > units.MAX_BITS_PER_SEC:
            raise _bad(trace, number, f"found a rate above {units.format_rate(units.MAX_BITS_PER_SEC)}")
        if times and at <= times[-1]:
            raise _bad(trace, number, "found a time that is not after the one before, expected rising times")
        times.append(at)
        rates.append(rate)
    _check_gaps(trace, rows, times)
    steps = [b - a for a, b in itertools.pairwise(times)]
    last_step = round(statistics.median(steps)) if steps else units.NANOS_PER_SEC
    length = times[-1] - times[0] + last_step
    if length > units.MAX_NANOS:
        raise _bad(
            trace,
            rows[-1][0],
            f"found a trace of more than {units.MAX_NANOS / 86_400e9:.1f} days, expected another time_unit",
        )
    if not any(rate >= 8 for rate in rates):
        raise _bad(trace, rows[0][0], "found no rate above zero in the whole trace")
    plan: RatePlan = {
        "kind": "steps",
        "steps": [(t - times[0], rate // 8) for t, rate in zip(times, rates, strict=True)],
        "period": length if trace.repeat else None,
    }
    area = sum(rate * step for rate, step in zip(rates, [*steps, last_step], strict=True))
    return Capacity(plan, max(8, area // length), max(rates))


def _check_gaps(trace: Trace, rows: list[tuple[int, str]], times: list[int]) -> None:
    """Raise an error if the measurement has a gap. During a gap, the rate would seem to be constant."""
    steps = [b - a for a, b in itertools.pairwise(times)]
    if not steps:
        return
    longest = trace.max_gap or max(_DEFAULT_GAP, _DEFAULT_GAP_STEPS * round(statistics.median(steps)))
    for i, step in enumerate(steps):
        if step > longest:
            gap = units.format_duration(step)
            most = units.format_duration(longest)
            raise _bad(trace, rows[i + 1][0], f"found a gap of {gap}, expected at most {most} (see max_gap)")


def _splitter(line: str) -> Any:
    for separator in (",", ";", "\t"):
        if separator in line:
            return lambda text, s=separator: [cell.strip() for cell in text.split(s)]
    return str.split


_DECIMAL = re.compile(r"[+-]?(\d{1,25}(\.\d{0,25})?|\.\d{1,25})([eE][+-]?\d{1,2})?", re.ASCII)


def _number(cell: str) -> Fraction | None:
    return Fraction(cell) if _DECIMAL.fullmatch(cell) else None


def _column(which: str | int, header: list[str] | None, width: int, key: str) -> int:
    if isinstance(which, str):
        if header is None:
            raise ScenarioError(f"found {found(which)}, expected a number: the trace has no header", key)
        if which not in header:
            raise ScenarioError(f"found {found(which)}, expected a column{hint(which, header)}", key)
        return header.index(which)
    if not 0 <= which < width:
        raise ScenarioError(f"found {which}, expected a column from 0 to {width - 1}", key)
    return which
