"""Progress of runs: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from narrows.units import NANOS_PER_SEC

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

    from narrows.backends import Pace


_SAYS_SECONDS = 60.0
"""Maximum time between two lines about the progress of long runs."""
_RATE_SECONDS = 5.0
"""Time over which the rate of events is measured."""
_MOST_HOSTS = 8
"""Maximum number of hosts that are shown."""


class Hosts:
    """For each host of an executor, the numbers of finished and failed runs."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def __call__(self, host: str, done: int, failed: int) -> None:
        """Record how many runs of a batch a host has finished, and how many have failed."""
        self._done[host] += done
        self._failed[host] += failed

    @property
    def rate(self) -> float:
        """Finished runs per second."""
        return self._done.total() / max(time.monotonic() - self._begun, 1e-9)

    def __str__(self) -> str:
        """Runs per second, number of failed runs, and runs of each host (empty: no run has finished)."""
        if not self._done:
            return ""
        hosts = [
            f"{host} {self._done[host]}" + (f" ({self._failed[host]} failed)" if self._failed[host] else "")
            for host in sorted(self._done)
        ]
        more = [f"{len(hosts) - _MOST_HOSTS} more hosts"] if len(hosts) > _MOST_HOSTS else []
        shown = ", ".join(hosts[:_MOST_HOSTS] + more)
        return f", {self.rate:.3g} runs/s, {self._failed.total()} failed ({shown})"


class Events:
    """The rate of events, measured over the last `_RATE_SECONDS`."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._active = 0
        self._total = 0

    def __call__(self, active: int, now_s: float) -> None:
        """Record the total number of events of the active runs. This total decreases when a run ends."""
        self._total += max(active - self._active, 0)
        self._active = active
        self._seen.append((now_s, self._total))
        while now_s - self._seen[0][0] > _RATE_SECONDS:
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """Events per second of wall time; 0 if it is unknown."""
        if len(self._seen) < 2:
            return 0.0
        (begin, first), (end, last) = self._seen[0], self._seen[-1]
        return (last - first) / max(end - begin, 1e-9)


def _events(rate: float) -> str:
    """A rate of events as text; empty if it is unknown."""
    return f", {rate / 1e6:.3g} M events/s" if rate else ""


def simulated(passed_s: float, whole_s: float, left_s: float | None, rate: float = 0.0) -> str:
    """The progress of a run as text, e.g. ``12.0 of 60.0 s simulated, 9.1 M events/s, 8 s left``.

    Args:
        passed_s: simulated seconds.
        whole_s: duration of the run in simulated seconds.
        left_s: estimated wall time to the end, in seconds; None if there is no estimate yet.
        rate: events per second of wall time; 0 if it is unknown.
    """
    text = f"{passed_s:.1f} of {whole_s:.1f} s simulated{_events(rate)}"
    return text if left_s is None else f"{text}, {_time(left_s)} left"


def _time(seconds: float) -> str:
    """A time as text, in whole seconds and at most two units."""
    minutes, secs = divmod(math.ceil(seconds), 60)
    hours, mins = divmod(minutes, 60)
    if hours:
        return f"{hours} h {mins} min"
    return f"{mins} min {secs} s" if mins else f"{secs} s"


class Lines:
    """Prints the progress as lines: one for each tenth of the runs, and one per minute during long runs."""

    def __init__(self, name: str, duration_s: float) -> None:
        self._name, self._duration_s = name, duration_s
        self._tenth = 0
        self._done = 0
        self._kept: int | None = None
        self._events = Events()
        self._begun = self._said = time.monotonic()
        self.hosts = Hosts()

    def clock(self, pace: Pace, total: int) -> None:
        """Print the progress of the active runs, if nothing was printed for a while."""
        now = time.monotonic()
        self._events(pace.events, now)
        if self._kept is None:
            self._kept = self._done
        if now - self._said < _SAYS_SECONDS:
            return
        self._said = now
        passed, whole = self._done * self._duration_s + pace.seconds, total * self._duration_s
        # Do not count runs that were already finished when this sweep began, because they took none of its
        # time.
        made = passed - self._kept * self._duration_s
        left = (whole - passed) * (now - self._begun) / made if made > 0 else None
        print(f"{self._name}: {simulated(passed, whole, left, self._events.rate)}", file=sys.stderr)

    def __call__(self, done: int, total: int) -> None:
        """Print the number of finished runs, at most ten times in a sweep."""
        self._done = done
        tenth = done * 10 // total
        if total > 1 and tenth > self._tenth:
            rate = self.hosts.rate
            left = f", {_time((total - done) / rate)} left" if rate and done < total else ""
            print(f"{self._name}: {done} of {total} runs{self.hosts}{left}", file=sys.stderr)
            self._said = time.monotonic()
        self._tenth = tenth


@dataclass
class Bar:
    """A bar whose unit is simulated seconds, so that it also moves during a single run."""

    bar: Progress
    task: TaskID
    duration_s: float
    """Simulated length of a run."""
    done: int = 0
    total: int = 1
    passed_s: float = 0.0
    """Simulated seconds of all runs, as shown. When a run ends, its seconds are removed from `Pace` shortly
    before `done` includes the run. This number does not decrease even then."""
    has_clock: bool = False
    hosts: Hosts = field(default_factory=Hosts)
    events: Events = field(default_factory=Events)

    def __call__(self, done: int, total: int) -> None:
        """Show the number of finished runs."""
        self.done, self.total = done, total
        self._show(0.0)

    def clock(self, pace: Pace, total: int) -> None:
        """Report the progress of the runs that are not finished."""
        self.total, self.has_clock = total, True
        self.events(pace.events, time.monotonic())
        self._show(pace.seconds)

    def _show(self, active_s: float) -> None:
        whole = self.total * self.duration_s
        self.passed_s = min(max(self.passed_s, self.done * self.duration_s + active_s), whole)
        if self.total == 1 and not self.has_clock:
            # If the backend does not report simulated time, the progress of a single run is unknown, so the
            # bar pulses.
            self.bar.update(self.task, total=None, state=f"{whole:g} s to simulate")
            return
        self.bar.update(self.task, completed=self.passed_s, total=whole, is_single=self.total == 1)
        if self.total == 1:
            text = simulated(self.passed_s, whole, self.bar.tasks[self.task].time_remaining, self.events.rate)
        else:
            text = f"{self.done} of {self.total} runs{self.hosts}{_events(self.events.rate)}"
        self.bar.update(self.task, state=text)


@contextmanager
def progress_of(name: str, duration_ns: int) -> Iterator[Bar | Lines]:
    """Show progress on stderr while runs of `duration_ns` of simulated time are active."""
    if not sys.stderr.isatty():
        yield Lines(name, duration_ns / NANOS_PER_SEC)
        return
    from rich.console import Console  # noqa: PLC0415 (needed on a terminal only)
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Left(TimeRemainingColumn):
        """The remaining time of a sweep (empty for a single run, whose progress text already has it)."""

        def render(self, task: Task) -> Text:
            return Text() if task.fields["is_single"] else super().render(task).append(" left")

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, state="", is_single=True)
        yield Bar(bar, task, duration_ns / NANOS_PER_SEC)
