"""Computes the receive buffer that a scenario's network needs, for the simulator and for real sockets."""

from __future__ import annotations

from collections.abc import Sequence

from narrows import units
from narrows.packets import FULL_PACKET
from narrows.plan import LinkPlan, QueuePlan
from narrows.scenario.fitting import Path

DEFAULT = 6 << 20
"""Linux's default maximum of the receive buffer (tcp_rmem), bytes."""
MOST = 1 << 30
"""Maximum size. Half of this size is near the largest window that TCP can offer (RFC 7323 section 2.3)."""
MARGIN = 4
"""Ratio of the receive buffer to the content of a path. It is 2 times 2: Linux offers only half of the buffer
as the window, and slow start sends up to twice the content of a full path before it detects a loss."""


def receive_buffer(links: Sequence[LinkPlan], paths: Sequence[Path]) -> int:
    """The size in bytes: Linux's default or four times the content of the largest path, whichever is larger.

    The content of a path is the BDP of its slowest link, plus that link's queue. The size of the buffer
    affects algorithms that count ACKs, because a receiver acknowledges each segment while its window grows
    (`tcp/offer.rs`).
    """
    most = 0
    for path in paths:
        rtt = sum(max(span for _, span in links[link]["delay"]) for link in path.forth + path.back)
        slowest = min((links[link] for link in path.forth), key=_rate)
        held = _rate(slowest) * min(rtt, units.NANOS_PER_SEC) // units.NANOS_PER_SEC
        most = max(most, held + _waiting(slowest["queue"]))
    return max(DEFAULT, min(MOST, MARGIN * most))


def _rate(link: LinkPlan) -> int:
    """The highest rate of a link, or the mean rate of its trace, bytes/s."""
    rate = link["rate"]
    if rate["kind"] == "steps":
        return max(value for _, value in rate["steps"])
    return len(rate["millis"]) * rate["bytes"] * 1000 // max(1, rate["period_millis"])


def _waiting(queue: QueuePlan) -> int:
    """Capacity of a queue in bytes; 0 if it is unlimited."""
    if queue["kind"] == "priority":
        limits = queue["classes"]
    elif queue["kind"] == "htb":
        limits = [part.get("limit", {}) for part in queue["classes"]]
    else:
        limits = [queue.get("limit", {})]
    return sum(limit.get("bytes") or (limit.get("packets") or 0) * FULL_PACKET for limit in limits)
