"""Checks whether the entries of a scenario fit together. Each entry has already been checked by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from narrows import units
from narrows.errors import ScenarioError, found
from narrows.packets import FULL_PACKET, HEADERS
from narrows.plan import LimitPlan
from narrows.scenario import network
from narrows.scenario.entries import Entry
from narrows.scenario.graph import Direction, Graph
from narrows.scenario.model import Scenario
from narrows.scenario.topologies import Dumbbell
from narrows.scenario.traffic import Flow


@dataclass(frozen=True)
class Path:
    """The directed links of a flow's paths."""

    forth: list[int]
    """Path of the flow's data."""
    back: list[int]
    """Path of the flow's ACKs."""
    also_forth: frozenset[int] = frozenset()
    """The links of other paths of equal length that the data may take (ECMP)."""
    also_back: frozenset[int] = frozenset()
    """The links of other paths of equal length that the ACKs may take (ECMP)."""

    @property
    def data_links(self) -> list[int]:
        """All links that data may take."""
        return [*self.forth, *sorted(self.also_forth)]


def check(scenario: Scenario, graph: Graph, entries: Sequence[Entry], paths: Sequence[Path]) -> None:
    """Check flows against the network.

    Raises:
        ScenarioError: for the first contradiction.
    """
    _every_rtt_is_used(scenario, entries)
    for forth, back in zip(graph.links[::2], graph.links[1::2], strict=True):
        _guarantees(forth)
        # Do not check a queue that the reverse direction inherits, because it was chosen for the rate of the
        # forward direction.
        if back.traits.queue is not forth.traits.queue:
            _guarantees(back)
    controlled = {
        link
        for i, controller in enumerate(scenario.rate_controllers)
        for link, _ in graph.controlled(controller, f"rate_controllers.{i}")
    }
    classes = {i: n for i, link in enumerate(graph.links) if i not in controlled and (n := _classes(link))}
    for entry, path in zip(entries, paths, strict=True):
        if classes or entry.flow.class_:
            crossed = [(graph.links[link], classes[link]) for link in _crossed(path) if link in classes]
            _class(entry.flow, f"{entry.key}.class", crossed)
    if scenario.sdn is not None and not scenario.rate_controllers:
        raise ScenarioError("found no [[rate_controllers]], expected at least one that [sdn] can poll", "sdn")


def _guarantees(link: Direction) -> None:
    """Check that the sum of the classes' rates does not exceed the link's rate.

    Links with a trace are not checked, because a trace has no single rate.
    """
    queue = link.traits.queue
    if not isinstance(queue, network.Htb) or link.capacity is not None:
        return
    most = max([link.rate, *(change.rate for change in link.traits.at if change.rate is not None)])
    total = sum(c.rate for c in queue.classes)
    if total > most:
        raise ScenarioError(
            f"found rates of {units.format_rate(total)} in all, "
            f"expected at most the link's {units.format_rate(most)}",
            f"{link.key}.queue.classes",
        )


def _crossed(path: Path) -> list[int]:
    """The links that a flow's data or ACKs cross, without duplicates."""
    return list(dict.fromkeys([*path.data_links, *path.back, *sorted(path.also_back)]))


def _class(flow: Flow, key: str, with_classes: Sequence[tuple[Direction, int]]) -> None:
    """Check that a flow's class exists. The simulator would replace a missing class by the last class.

    Args:
        flow: the flow.
        key: key of its class.
        with_classes: the links of the flow's paths whose queues have classes, each with its number of
            classes.
    """
    for link, n in with_classes:
        if flow.class_ >= n:
            what = f"0 to {n - 1}" if n > 1 else "0"
            raise ScenarioError(
                f"found {flow.class_}, expected {what} (the queue of {found(link.name)} has {n})", key
            )
    if flow.class_ and not with_classes:
        raise ScenarioError(f"found {flow.class_}, expected 0: no queue on the flow's path has classes", key)


def _classes(link: Direction) -> int:
    match link.traits.queue:
        case network.Htb(classes=classes):
            return len(classes)
        case network.Priority(classes=classes):
            return len(classes)
        case _:
            return 0


def _every_rtt_is_used(scenario: Scenario, entries: Sequence[Entry]) -> None:
    """Check that flows use each pair that `rtts` defines.

    All flows of an entry use the same pair. If there are fewer entries than pairs, some pairs have no flows.
    """
    topology = scenario.topology
    if not isinstance(topology, Dumbbell) or topology.rtts is None:
        return
    n = len(topology.rtts)
    used: set[str] = set()
    for entry in entries:
        pair = entry.index % n + 1
        used |= {entry.source or f"s{pair}", entry.to or f"d{pair}"}
    idle = [pair for pair in range(1, n + 1) if not used & {f"s{pair}", f"d{pair}"}]
    if idle and scenario.flows:
        raise ScenarioError(
            f"found {n} RTTs, but no flow uses pair {idle[0]}; give each pair an entry of flows "
            "(all flows of an entry use one pair)",
            "topology.rtts",
        )


def largest_packets(flows: Sequence[Flow], paths: Sequence[Path]) -> dict[int, int]:
    """Size of the largest data packet that crosses each link, L3 bytes."""
    largest: dict[int, int] = {}
    for flow, path in zip(flows, paths, strict=True):
        size = flow.packet if flow.transport == "udp" else flow.mss + HEADERS
        for link in path.data_links:
            largest[link] = max(largest.get(link, 0), size)
    return largest


def check_limit(limit: units.Limit, packet: int, key: str) -> None:
    """Check that a packet fits into a queue. Otherwise, each packet that arrives at a busy link is dropped.

    Raises:
        ScenarioError: if `limit` is less than a packet of `packet` bytes.
    """
    if limit.bytes is not None and limit.bytes < packet:
        raise ScenarioError(
            f"found {found(str(limit))}, expected at least a full packet of its flows ({packet}B)", key
        )


def check_burst(burst: int, packet: int, key: str) -> None:
    """Check that a packet fits into a policer's bucket. The policer would drop all larger packets.

    Raises:
        ScenarioError: if `burst` is less than a packet of `packet` bytes.
    """
    if burst < packet:
        raise ScenarioError(f"found '{burst}B', expected at least a full packet ({packet}B)", key)


def check_mark(mark: LimitPlan, limit: LimitPlan, key: str) -> None:
    """Check that a queue can mark: its marking threshold must be below its limit.

    Otherwise the queue would drop packets instead of marking them.

    Args:
        mark: resolved queue length above which an arriving packet is marked.
        limit: resolved limit of the queue.
        key: key of the mark.

    Raises:
        ScenarioError: if `limit` is so small that the queue would drop every packet that it should mark.
    """
    if limit["packets"] is not None:
        length = mark["packets"] or max(1, round((mark["bytes"] or 0) / FULL_PACKET))
        if length >= limit["packets"] - 1:
            raise ScenarioError(
                f"found {length} packets, expected less than {limit['packets'] - 1}: the queue's limit is "
                f"{limit['packets']}, so nothing would ever be marked",
                key,
            )
    elif limit["bytes"] is not None and (mark["bytes"] or 0) >= limit["bytes"]:
        raise ScenarioError(
            f"found {mark['bytes']}B, expected less than the queue's limit of {limit['bytes']}B: nothing "
            "would ever be marked",
            key,
        )
