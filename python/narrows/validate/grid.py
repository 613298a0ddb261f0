"""The networks of a validation: all combinations of a few factors, and named subsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import product

from narrows import units
from narrows.errors import NarrowsError, hint
from narrows.packets import FULL_PACKET
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve

RATES = (20, 100)
"""L3 rates of the bottleneck, in Mbit/s."""
RTTS = (20, 40, 100)
"""Two-way propagation delays of the first flow, in ms."""
BUFFERS = (0.5, 1.0, 4.0)
"""Queues of the bottleneck, in bandwidth-delay products of the first flow."""
LOSSES = (0.0, 0.5)
"""Random loss after the bottleneck, in %."""
FARTHER = 5
"""Ratio of the second flow's RTT to the first flow's RTT, for `Flows.RTTS`."""
LATER = 5
"""In cells with two flows, the flow `near` starts this many ms after the other flow.

Real flows that should start together start up to a millisecond apart. The flow that happens to start first
leaves slow start with up to three times the window of the other flow. If the starts are 5 ms apart, a
difference of a millisecond has less effect than if they were meant to be simultaneous (`method.md`,
"Starts").
"""


class Flows(StrEnum):
    """Flows that share the bottleneck."""

    SINGLE = "single"
    """One flow of the tested algorithm, alone."""
    CUBIC = "cubic"
    """The tested algorithm, and a CUBIC flow of the same RTT."""
    RTTS = "rtts"
    """Two flows of the tested algorithm. The second flow has five times the RTT of the first flow."""


@dataclass(frozen=True)
class Cell:
    """A network and its flows."""

    rate: int
    """L3 rate of the bottleneck, in Mbit/s."""
    rtt: int
    """Two-way propagation delay of the first flow, in ms."""
    buffer: float
    """Queue of the bottleneck, in bandwidth-delay products of the first flow."""
    loss: float
    """Random loss after the bottleneck, in %."""
    flows: Flows

    @property
    def name(self) -> str:
        """All factors of the cell as one name."""
        return f"{self.rate}mbit-{self.rtt}ms-{self.buffer:g}bdp-loss{self.loss:g}-{self.flows}"

    @property
    def queue(self) -> int:
        """Length of the bottleneck's queue, in packets."""
        return max(1, round(self.buffer * self.rate * 1000 * self.rtt / 8 / FULL_PACKET))

    @property
    def jitter(self) -> int:
        """Largest random delay of the reverse path, us: a full packet's transmission time at the bottleneck.

        Without this delay, a flow has an advantage if its packets always arrive just after another packet has
        left the queue. See Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992.
        """
        return FULL_PACKET * 8 // self.rate

    @property
    def same_losses(self) -> bool:
        """Whether real and simulated runs lose the same packets.

        This is the case for a single flow with random loss: its packets have the same order on both sides.
        """
        return self.loss > 0 and self.flows is Flows.SINGLE

    @property
    def tested(self) -> tuple[str, ...]:
        """Names of the flows with the tested algorithm."""
        return ("near", "far") if self.flows is Flows.RTTS else ("near",)


def full() -> list[Cell]:
    """The cells with all combinations of levels."""
    return [Cell(*levels) for levels in product(RATES, RTTS, BUFFERS, LOSSES, Flows)]


def core() -> list[Cell]:
    """Eighteen cells: two for each pair of RTT and buffer. These two cells differ in rate and in loss.

    The kinds of flows follow a Latin square: each kind is in six cells, three of them with loss.
    """
    cells = []
    for k, rate in enumerate(RATES):
        for i, rtt in enumerate(RTTS):
            for j, buffer in enumerate(BUFFERS):
                flows = list(Flows)[(i + j + k) % len(Flows)]
                loss = LOSSES[(i == j) ^ k]
                cells.append(Cell(rate, rtt, buffer, loss, flows))
    return cells


def ci() -> list[Cell]:
    """A few cells for a test."""
    return [
        Cell(20, 20, 1.0, 0.0, Flows.SINGLE),
        Cell(20, 40, 1.0, 0.5, Flows.SINGLE),
        Cell(20, 20, 1.0, 0.0, Flows.CUBIC),
    ]


SUBSETS = {"full": full, "core": core, "ci": ci}


def choose(words: Iterable[str]) -> list[Cell]:
    """Cells by name, by name of a subset, or by a pattern such as ``100mbit-*-single``. No cell occurs twice.

    Raises:
        NarrowsError: if a word matches no cell.
    """
    every = {cell.name: cell for cell in full()}
    found: dict[str, Cell] = {}
    for word in words:
        named = SUBSETS[word]() if word in SUBSETS else [c for n, c in every.items() if fnmatchcase(n, word)]
        if not named:
            near = hint(word, [*SUBSETS, *every], most=len(SUBSETS) + 1)
            raise NarrowsError(
                f"--cells: found {word!r}, expected a part of the grid or names of cells{near}"
            )
        found |= {cell.name: cell for cell in named}
    if not found:
        raise NarrowsError(f"--cells: found '', expected {', '.join(SUBSETS)}, names or patterns of cells")
    return list(found.values())


_LINK = """\
[[links]]
between = ["{a}", "{b}"]
rate = "{access}mbit"
delay = "{delay}us"
queue = "infinite"

"""

_SCENARIO = """\
# narrows validate: {cc}, {name}
name = "{name}"
duration = "{duration}"
{buffer}
[[links]]
name = "bottleneck"
between = ["r1", "r2"]
rate = "{rate}mbit"
delay = "{delay}us"
queue = "{queue}p"
{loss}# ACKs get a random delay of up to a packet time. Without this delay, the queue would favour one flow.
back = {{ rate = "{access}mbit", queue = "infinite", jitter = {{ max = "{jitter}us" }} }}

{links}{flows}# netem is not used: behind a token bucket, it delivers two packets at once, which alters runs.
# The relay serves packets one after the other, and loses the same packets as the simulator.
[kernel]
delay = "relay"

[probes]
interval = "50ms"
links = ["bottleneck"]
"""

_FLOW = """\
[[flows]]
name = "{name}"
from = "{a}"
to = "{b}"
cc = "{cc}"
{start}
"""


def scenario(cell: Cell, algorithm: str, duration: str) -> str:
    """A cell's scenario file for an algorithm.

    Only the bottleneck has delay and loss, so a packet on real stacks passes one relay. Only packets of the
    far flow (`Flows.RTTS`) pass a second relay, which adds the rest of this flow's longer RTT.
    """
    pairs = [("near", algorithm, 0)]
    if cell.flows is Flows.CUBIC:
        pairs.append(("rival", "cubic", 0))
    elif cell.flows is Flows.RTTS:
        pairs.append(("far", algorithm, (FARTHER - 1) * cell.rtt))
    access = 10 * cell.rate
    links, flows = "", ""
    for number, (name, cc, extra) in enumerate(pairs, start=1):
        links += _LINK.format(a=f"s{number}", b="r1", access=access, delay=0)
        links += _LINK.format(a="r2", b=f"d{number}", access=access, delay=extra * 1000 // 2)
        start = f'start = "{LATER}ms"\n' if name == "near" and len(pairs) > 1 else ""
        flows += _FLOW.format(name=name, a=f"s{number}", b=f"d{number}", cc=cc, start=start)
    levels = {
        "cc": algorithm,
        "name": cell.name,
        "duration": duration,
        "rate": cell.rate,
        "delay": cell.rtt * 1000 // 2,
        "queue": cell.queue,
        "loss": f'loss = "{cell.loss:g}%"\n' if cell.loss else "",
        "access": access,
        "jitter": cell.jitter,
        "links": links,
        "flows": flows,
    }
    # This is the buffer that real sockets have by default. The scenario sets its size, so that simulated
    # sockets have the same buffer.
    size = resolve(loads(_SCENARIO.format(buffer="", **levels)))["receive_buffer"] or 0
    return _SCENARIO.format(buffer=f'receive_buffer = "{units.format_size(size)}"\n', **levels)
