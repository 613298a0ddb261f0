"""What lies behind a link's queue, as the kernel's own netem has it. Pure.

netem stands in the namespace `wire`, on the device towards the next node: never on the device of a rate, and
never in the sender's own host.
"""

from __future__ import annotations

from dataclasses import dataclass

from narrows.backends.kernel.queues import ENDLESS_PACKETS, relay_shapes
from narrows.scenario.parts import Plan


@dataclass(frozen=True)
class Netem:
    """Delay and loss of a link."""

    delay: int
    """ns."""
    loss: float
    """Probability that a packet is lost."""

    def words(self) -> str:
        """As tc(8) takes it."""
        loss = f" loss random {self.loss * 100:.8f}%" if self.loss else ""
        return f"netem limit {ENDLESS_PACKETS} delay {self.delay / 1000:.3f}us{loss}"


def netem(link: Plan) -> Netem | None:
    """A link's delay and loss, if netem has them as the scenario means them.

    It has not: what changes during the run; jitter, which lets packets overtake each other; duplicates, which
    are offered to the queue again; losses with a memory; rates that are none of an HTB's.
    """
    delays, losses = link["delay"], link["loss"]
    if len(delays) > 1 or len(losses) > 1 or link["jitter"] or link["duplicate"] or relay_shapes(link):
        return None
    if losses and losses[0][1]["kind"] != "bernoulli":
        return None
    return Netem(delays[0][1], losses[0][1]["p"] if losses else 0.0)
