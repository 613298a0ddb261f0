"""External transport stacks for simulated flows: QUIC of the Rust crate quinn.

A scenario names a stack as the `transport` of a flow. The flow's `cc` is a controller of the stack, or a
controller of the catalogue.
"""

from __future__ import annotations

import functools


@functools.cache
def controllers() -> dict[str, list[str]]:
    """The congestion controllers that each stack itself contains."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    return _native.stacks()


@functools.cache
def prefix() -> str:
    """The prefix that makes a `cc` a controller of the catalogue, even if the stack has the same name."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    return _native.CATALOGUE_PREFIX


def catalogue_name(transport: str, cc: str) -> str | None:
    """The name in the catalogue of a flow's congestion controller.

    None: the flow is UDP, or uses a controller of its stack.
    """
    if transport == "tcp":
        return cc
    if transport == "udp" or cc in controllers()[transport]:
        return None
    return cc.removeprefix(prefix())


def default_name(transport: str, cc: str) -> str:
    """The default name of a flow: its stack and its congestion controller."""
    return f"{transport}-{cc.removeprefix(prefix())}"
