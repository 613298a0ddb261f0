"""External transport stacks for simulated flows: QUIC of the Rust crate quinn.

A scenario names a stack as the `transport` of a flow. The `cc` of such a flow is a controller of the stack,
or a controller of Narrows' catalogue.
"""

from __future__ import annotations

import functools


@functools.cache
def controllers() -> dict[str, list[str]]:
    """For each stack, the congestion controllers that are a part of the stack."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    return _native.stacks()


@functools.cache
def prefix() -> str:
    """The prefix of `cc` that selects a controller of the catalogue instead of the stack's own controller."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    return _native.CATALOGUE_PREFIX


def catalogue_name(transport: str, cc: str) -> str | None:
    """The name that a flow's congestion controller has in Narrows' catalogue.

    The result is None if the flow is UDP, or if it uses a controller of its stack.
    """
    if transport == "tcp":
        return cc
    if transport == "udp" or cc in controllers()[transport]:
        return None
    return cc.removeprefix(prefix())


def default_name(transport: str, cc: str) -> str:
    """The default name of a flow: its stack and its congestion controller."""
    return f"{transport}-{cc.removeprefix(prefix())}"
