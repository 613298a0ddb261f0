"""Changes rates during a run: one resident tc(8) per namespace gets a line at the time of each step."""

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
    """A line for the tc of a namespace, due at `time` (ns after the start)."""

    time: int
    namespace: str
    line: str


def changes(layout: Layout) -> list[Change]:
    """All changes of rates in order of time. Namespaces are named without the run's prefix."""
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
