"""Pairs of hosts for an entry of flows that has several senders or receivers."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from random import Random

from narrows.errors import ScenarioError, found, hint
from narrows.scenario.model import Scenario
from narrows.scenario.named import Named
from narrows.scenario.traffic import MAX_ENTRIES, Flow

Pair = tuple[str, str]
"""Sender and receiver."""


def pairs(scenario: Scenario, flow: Flow, index: int) -> list[Pair]:
    """The pairs of an entry, in the order of its senders.

    Args:
        scenario: the scenario. Its seed determines the random pairs of the patterns `permutation` and
            `random`. In a sweep, the scenario has the seed of a point's first run.
        flow: the entry.
        index: the number of the entry.

    Raises:
        ScenarioError: if a name matches no host, or if there are too few hosts.
    """
    key = f"flows.{index}"
    known = hosts(scenario)
    senders = _named(flow.source, known, f"{key}.from")
    receivers = _named(flow.to, known, f"{key}.to")
    # Use only the method random(), because only random() gives the same numbers in all versions of Python.
    random = Random(f"{scenario.seed}/{index}")
    match flow.pattern:
        case "permutation":
            if len(senders) < 2:
                raise ScenarioError(f"found {len(senders)} hosts, expected at least two", f"{key}.from")
            return list(zip(senders, _cycle(senders, random), strict=True))
        case "random":
            return [(a, _other(receivers, a, random, key)) for a in senders]
        case _:
            count = len(senders) * len(receivers) - len({*senders} & {*receivers})
            if not count:
                raise ScenarioError("found no pair of two different hosts, expected one", f"{key}.to")
            if count > MAX_ENTRIES:
                raise ScenarioError(f"found {count} pairs of hosts, expected at most {MAX_ENTRIES}", key)
            return [(a, b) for a in senders for b in receivers if a != b]


def hosts(scenario: Scenario) -> list[str]:
    """The nodes that a pattern uses if the entry of flows names no nodes.

    If the scenario has a topology, these are the topology's hosts. If a published network has no hosts of its
    own, these are all its nodes. Without a topology, these are the nodes with one neighbour.
    """
    topology = scenario.topology
    if isinstance(topology, Named):
        facts = topology.facts()
        return [node for node in facts.nodes if node in facts.hosts] or list(facts.nodes)
    if topology is not None:
        layout = topology.layout(len(scenario.flows), None)
        return list(dict.fromkeys(end for ends in zip(*layout.endpoints, strict=True) for end in ends))
    near: dict[str, set[str]] = {}
    for link in scenario.links:
        a, b = link.between
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    return [node for node, others in near.items() if len(others) == 1]


def _named(given: str | list[str] | None, known: Sequence[str], key: str) -> list[str]:
    """The hosts with these names. Names may be patterns with `*` and `?`."""
    if given is None:
        return list(known)
    names: dict[str, None] = {}
    listed = [given] if isinstance(given, str) else given
    for i, name in enumerate(listed):
        where = key if isinstance(given, str) else f"{key}.{i}"
        if not any(c in name for c in "*?"):
            # The name may be wrong. The class `Graph` checks it later, because it knows all nodes.
            names[name] = None
            continue
        # Do not use brackets as patterns, because names may contain brackets.
        matching = [host for host in known if fnmatch.fnmatchcase(host, name.replace("[", "[[]"))]
        if not matching:
            raise ScenarioError(f"found {found(name)}, expected a host{hint(name, list(known))}", where)
        names.update(dict.fromkeys(matching))
    return list(names)


def _cycle(hosts: Sequence[str], random: Random) -> list[str]:
    """A receiver for each host, in the order of `hosts`. Each host is the receiver of exactly one other host.

    This is Sattolo's algorithm: the hosts form one cycle, and all cycles are equally likely.
    """
    order = list(hosts)
    for i in range(len(order) - 1, 0, -1):
        j = int(random.random() * i)
        order[i], order[j] = order[j], order[i]
    return order


def _other(hosts: Sequence[str], sender: str, random: Random, key: str) -> str:
    """A random host that is not the sender. All other hosts are equally likely."""
    if all(host == sender for host in hosts[:2]):
        raise ScenarioError("found no receiver that is not the sender, expected one", f"{key}.to")
    while (drawn := hosts[int(random.random() * len(hosts))]) == sender:
        pass
    return drawn
