"""Defines the request for a matrix.

The command line imports this module at every start, so it has no slow imports.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ask:
    """The request for a matrix."""

    controllers: tuple[str, ...]
    rate: str = "100mbit"
    """L3 rate of the bottleneck."""
    rtt: str = "40ms"
    """Two-way propagation delay of all flows."""
    buffers: tuple[str, ...] = ("0.5bdp", "1bdp", "4bdp")
    """Lengths of the bottleneck's queue."""
    duration: str = "60s"
    seeds: int = 5
    seed: int = 1
    loss: str | float = 0.0
    """Random loss after the bottleneck's queue."""
    mark: str | None = None
    """Queue length above which packets are marked, for controllers that use ECN (None: no marks)."""
