"""Signals that end a command: what they end, and what they must not break off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], None]


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does, so that it cleans up behind itself."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (a handler's arguments)
        raise KeyboardInterrupt

    with _handled(stop, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP do nothing: for a clean-up that must not be left half done."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """Unlike SIG_IGN this is not handed on to programs that are started meanwhile."""

    with _handled(ignore, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def _handled(handler: _Handler, *numbers: signal.Signals) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
