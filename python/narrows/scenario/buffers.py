"""How large a receive buffer a scenario's network needs: the same for the simulator and for real sockets."""

from __future__ import annotations

from collections.abc import Sequence

from narrows import units
from narrows.scenario.fitting import Path
from narrows.scenario.network import FULL_PACKET
from narrows.scenario.parts import Plan

DEFAULT = 6 << 20
"""Linux's largest receive buffer as delivered (tcp_rmem), bytes."""
MOST = 1 << 30
"""Half of it is near the largest window that TCP can offer (RFC 7323 section 2.3)."""
MARGIN = 4
"""Linux offers half of a buffer, and slow start doubles beyond a full pipe before the first loss is known."""


def receive_buffer(links: Sequence[Plan], paths: Sequence[Path]) -> int:
    """Linux's default, or four times what the path of the hungriest flow holds, where that is more; bytes.

    A path holds its RTT at the rate of its slowest link, and that link's queue. A receiver acknowledges each
    segment at once for as long as its window grows (`tcp/offer.rs`): algorithms that count ACKs see the size.
    """
    most = 0
    for path in paths:
        rtt = sum(max(span for _, span in links[link]["delay"]) for link in path.forth + path.back)
        slowest = min((links[link] for link in path.forth), key=_rate)
        held = _rate(slowest) * min(rtt, units.NANOS_PER_SEC) // units.NANOS_PER_SEC
        most = max(most, held + _waiting(slowest["queue"]))
    return max(DEFAULT, min(MOST, MARGIN * most))


def _rate(link: Plan) -> int:
    """The highest, or the mean of a trace, bytes/s."""
    rate = link["rate"]
    if rate["kind"] == "steps":
        return int(max(value for _, value in rate["steps"]))
    return int(len(rate["millis"]) * rate["bytes"] * 1000 // max(1, rate["period_millis"]))


def _waiting(queue: Plan) -> int:
    """What a queue holds, bytes; 0 for one without end."""
    parts = queue.get("bands") or [part.get("limit") or {} for part in queue.get("classes") or [queue]]
    return sum(part.get("bytes") or (part.get("packets") or 0) * FULL_PACKET for part in parts)
