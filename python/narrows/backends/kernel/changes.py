"""Rates that change during a run: one resident tc(8) per port, handed a line at each step's time."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from narrows.backends.kernel.commands import rate_change
from narrows.backends.kernel.layout import Layout


@dataclass(frozen=True)
class Change:
    """At `time` (ns from the start) a line for the tc of a namespace."""

    time: int
    namespace: str
    line: str


def changes(layout: Layout) -> list[Change]:
    """All changes of rates in order of time; namespaces without the run's prefix."""
    found = [
        Change(when, layout.namespace(port.node), rate_change(port.device, port.queue, rate))
        for port in layout.ports
        if port.queue is not None
        for when, rate in port.queue.steps[1:]
    ]
    return sorted(found, key=lambda change: change.time)


@contextmanager
def making(todo: list[Change], prefix: str, start: int) -> Iterator[list[str]]:
    """Make changes in a thread while the context lasts; gives a list that complaints are added to.

    Args:
        todo: in order of time.
        prefix: of the namespaces.
        start: of the run, ns of CLOCK_MONOTONIC.
    """
    complaints: list[str] = []
    if not todo:
        yield complaints
        return
    over = threading.Event()
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

    def work() -> None:
        for change in todo:
            if over.wait(max(0.0, (start + change.time - time.monotonic_ns()) / 1e9)):
                return
            try:
                stdin = tools[change.namespace].stdin
                assert stdin is not None
                stdin.write(change.line + "\n")
                stdin.flush()
            except OSError as error:
                complaints.append(f"a change of rate failed ({error.strerror})")
                return

    thread = threading.Thread(target=work, name="narrows-rates", daemon=True)
    thread.start()
    try:
        yield complaints
    finally:
        over.set()
        thread.join()
        for tool in tools.values():
            _, words = tool.communicate()
            if words.strip():
                complaints.append(f"a change of rate failed ({words.strip().splitlines()[0]})")
