"""Changes rates during a run. One tc(8) process per namespace stays open and reads a line for each change."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from narrows.backends.kernel.commands import rate_change
from narrows.backends.kernel.layout import Layout
from narrows.backends.kernel.timeline import Timeline


@dataclass(frozen=True)
class Change:
    """A line that the tc process of a namespace reads at `time` (ns after the start)."""

    time: int
    namespace: str
    line: str


def changes(layout: Layout) -> list[Change]:
    """All changes of rates in order of time. The namespaces' names are without the run's prefix."""
    found = [
        Change(when, layout.namespace(port.node), rate_change(port.device, port.queue, rate))
        for port in layout.ports
        if port.queue is not None
        for when, rate in port.queue.steps[1:]
    ]
    return sorted(found, key=lambda change: change.time)


@contextmanager
def making(todo: list[Change], prefix: str, start: int) -> Iterator[list[str]]:
    """Apply changes in a thread while the context lasts. Yields a list that receives errors.

    Args:
        todo: changes in order of time.
        prefix: prefix of the namespaces.
        start: start of the run, ns of CLOCK_MONOTONIC.
    """
    complaints: list[str] = []
    if not todo:
        yield complaints
        return
    tools = {
        name: subprocess.Popen(
            ["tc", "-n", prefix + name, "-batch", "-"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for name in sorted({change.namespace for change in todo})
    }

    def work(timeline: Timeline) -> None:
        for change in todo:
            if not timeline.wait_until(change.time):
                return
            try:
                stdin = tools[change.namespace].stdin
                assert stdin is not None
                stdin.write(change.line + "\n")
                stdin.flush()
            except OSError as error:
                complaints.append(f"a change of rate failed ({error.strerror})")
                return

    try:
        with Timeline(start).working(work):
            yield complaints
    finally:
        for tool in tools.values():
            _, words = tool.communicate()
            if words.strip():
                complaints.append(f"a change of rate failed ({words.strip().splitlines()[0]})")
