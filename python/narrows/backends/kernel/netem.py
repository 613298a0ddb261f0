"""Models the delay and loss of a link with the kernel's netem. The functions have no side effects.

netem is installed in the namespace `wire`, on the device towards the next node. This device never has a rate
limit and is never in the sender's host.
"""

from __future__ import annotations

from dataclasses import dataclass

from narrows.backends.kernel.queues import ENDLESS_PACKETS, relay_shapes
from narrows.plan import LinkPlan


@dataclass(frozen=True)
class Netem:
    """Delay and loss of a link."""

    delay: int
    """Delay of a packet, ns."""
    loss: float
    """Probability that a packet is lost."""

    def words(self) -> str:
        """The arguments of the qdisc for tc(8)."""
        loss = f" loss random {self.loss * 100:.8f}%" if self.loss else ""
        return f"netem limit {ENDLESS_PACKETS} delay {self.delay / 1000:.3f}us{loss}"


RELAYED = ("jitter", "jitter_changes", "duplicate", "policer", "aggregation")
"""Properties of a link for which netem's model differs from the simulator's. Only a relay supports them."""


def netem(link: LinkPlan) -> Netem | None:
    """A link's delay and loss, or None if netem cannot model them exactly.

    netem does not support changes during the run, correlated losses, or rates that HTB does not support.
    Jitter and duplication are not supported either: with jitter, netem reorders packets, and netem sends
    duplicates through the queue again.
    """
    delays, losses = link["delay"], link["loss"]
    if len(delays) > 1 or len(losses) > 1 or relay_shapes(link) or any(link.get(key) for key in RELAYED):
        return None
    loss = losses[0][1] if losses else None
    if loss is not None and loss["kind"] != "bernoulli":
        return None
    return Netem(delays[0][1], loss["p"] if loss else 0.0)
