"""Progress of runs: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrows.units import NANOS_PER_SEC

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Lines:
    """A line for each tenth of the runs. A single run prints nothing."""

    clock = None

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, done: int, total: int) -> None:
        """Report finished runs."""
        if total > 1 and (done == total or done * 10 // total > (done - 1) * 10 // total):
            print(f"{self._name}: {done} of {total} runs", file=sys.stderr)


@dataclass
class Bar:
    """A bar whose unit is simulated seconds, so that it also moves during a single run."""

    bar: Progress
    task: TaskID
    duration_s: float
    """Simulated length of a run."""
    done: int = 0
    total: int = 1
    has_clock: bool = False

    def __call__(self, done: int, total: int) -> None:
        """Report finished runs."""
        self.done, self.total = done, total
        self._show(0.0)

    def clock(self, active_s: float) -> None:
        """Report the simulated seconds of the runs that are not finished, summed over them."""
        self.has_clock = True
        self._show(active_s)

    def _show(self, active_s: float) -> None:
        whole = self.total * self.duration_s
        passed = min(self.done * self.duration_s + active_s, whole)
        if self.total == 1 and not self.has_clock:
            # Without a clock the end of a single run is unknown: the bar pulses.
            self.bar.update(self.task, total=None, state=f"{whole:g} s to simulate")
            return
        if self.total == 1:
            text = f"{passed:.1f} of {whole:g} s simulated"
        else:
            text = f"{self.done} of {self.total} runs"
        self.bar.update(self.task, completed=passed, total=whole, state=text)


@contextmanager
def progress_of(name: str, duration_ns: int) -> Iterator[Bar | Lines]:
    """Show progress on stderr while runs of `duration_ns` of simulated time are active."""
    if not sys.stderr.isatty():
        yield Lines(name)
        return
    from rich.console import Console  # noqa: PLC0415 (needed on a terminal only)
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, state="")
        yield Bar(bar, task, duration_ns / NANOS_PER_SEC)
