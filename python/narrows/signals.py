"""Handles the signals that end a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], None]


@contextmanager
def terminable() -> Iterator[None]:
    """During the block, SIGTERM and SIGHUP raise the exception of Ctrl-C, so that the block cleans up."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (a handler's arguments)
        raise KeyboardInterrupt

    with _handled(stop, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C, SIGTERM and SIGHUP during a clean-up that must be complete."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """Do nothing. Programs that start during the clean-up do not inherit this handler, unlike SIG_IGN."""

    with _handled(ignore, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def _handled(handler: _Handler, *numbers: signal.Signals) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can set handlers
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
