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
