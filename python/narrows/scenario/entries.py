"""Expands entries of [[flows]] that describe several flows: patterns, matrices, groups of topologies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows import units
from narrows.errors import ScenarioError, found
from narrows.scenario import demands, patterns
from narrows.scenario.model import Scenario
from narrows.scenario.named import LEAST_RATE, RATES, Named
from narrows.scenario.traffic import MAX_ENTRIES, SNDLIB, App, Flow
from narrows.topology.facts import Demand


@dataclass(frozen=True)
class Entry:
    """One flow of the plan."""

    flow: Flow
    """The flow as in the scenario. Its keys `from` and `to` can be lists or patterns. The fields `source` and
    `to` below name single nodes."""
    index: int
    """Number of the entry in the scenario's list of flows."""
    source: str | None
    """Sending node; None: the topology's default."""
    to: str | None
    """Receiving node; None: the topology's default."""
    ends: str = ""
    """The scenario's key that defines both ends of the flow (empty: the flow's keys `from` and `to` define
    them)."""
    file: str = ""
    """The file that defines both ends, if `ends` is not empty (empty: the scenario file)."""

    @property
    def key(self) -> str:
        """The key of this entry in the scenario."""
        return f"flows.{self.index}"

    def end(self, which: str) -> str:
        """The key that defines the flow's `from` or `to`."""
        return self.ends or f"{self.key}.{which}"

    def misplaced(self, error: ScenarioError) -> ScenarioError:
        """The error about an end of the flow, with the name of the file that defines this end."""
        return error.in_source(self.file) if self.file else error


def entries(scenario: Scenario) -> list[Entry]:
    """The flows of a scenario, with all entries expanded.

    Raises:
        ScenarioError: if a matrix or topology does not define the flows.
    """
    found_entries: list[Entry] = []
    folder = Path(scenario.source).parent
    for index, flow in enumerate(scenario.flows):
        if flow.groups is not None:
            found_entries += _groups(scenario, flow, index)
        elif flow.has_pairs:
            found_entries += _pairs(scenario, flow, index)
        elif flow.demands is not None:
            found_entries += _matrix(scenario, flow, index, folder)
        else:
            found_entries.append(Entry(flow, index, _one(flow.source), _one(flow.to)))
    if len(found_entries) > MAX_ENTRIES:
        raise ScenarioError(f"found {len(found_entries)} flows, expected at most {MAX_ENTRIES}", "flows")
    return found_entries


def _one(end: str | list[str] | None) -> str | None:
    assert not isinstance(end, list), "entries with lists are expanded into pairs"
    return end


def _pairs(scenario: Scenario, flow: Flow, index: int) -> list[Entry]:
    pairs = patterns.pairs(scenario, flow, index)
    return [Entry(_made(flow, f"{a}-{b}"), index, a, b) for a, b in pairs]


def _groups(scenario: Scenario, flow: Flow, index: int) -> list[Entry]:
    key = f"flows.{index}.groups"
    topology = scenario.topology
    facts = topology.facts() if isinstance(topology, Named) else None
    if facts is None or not facts.groups:
        raise ScenarioError(
            f"found {found(flow.groups)}, expected groups only with the topology gfc-1 or gfc-2", key
        )
    return [
        Entry(_made(flow, group.name, count=group.count, groups=None), index, group.source, group.to, key)
        for group in facts.groups
    ]


def _matrix(scenario: Scenario, flow: Flow, index: int, folder: Path) -> list[Entry]:
    key = f"flows.{index}.demands"
    file = flow.demands or ""
    listed: list[tuple[Demand, str]]
    if file == SNDLIB:
        topology = scenario.topology
        facts = topology.facts() if isinstance(topology, Named) else None
        if facts is None or not facts.demands:
            what = "no topology is named" if facts is None else f"{found(facts.name)} has no demands"
            raise ScenarioError(
                f"found {found(file)}, expected a CSV file: {what} (abilene and sndlib/... have demands)",
                key,
            )
        listed, file = [(demand, key) for demand in facts.demands], ""
    else:
        listed = demands.read(file, folder, key)
    scale = 1.0 if flow.scale is None else flow.scale
    return [
        Entry(_limited(flow, demand, scale, index), index, demand.source, demand.to, where, file)
        for demand, where in listed
        if demand.mbit > 0
    ]


def _limited(flow: Flow, demand: Demand, scale: float, index: int) -> Flow:
    rate = round(demand.mbit * 1e6 * scale)
    if not LEAST_RATE <= rate <= units.MAX_BITS_PER_SEC:
        raise ScenarioError(
            f"found {scale:g} (the demand from {found(demand.source)} to {found(demand.to)} would be "
            f"{units.format_rate(rate)}), expected a scale that gives a rate {RATES}",
            f"flows.{index}.scale",
        )
    app = App.model_construct(rate=rate)
    name = f"{demand.source}-{demand.to}"
    return _made(flow, name, app=app, demands=None, scale=None)


def _made(flow: Flow, name: str, **changes: object) -> Flow:
    full = f"{flow.name}.{name}" if flow.name else name
    return flow.model_copy(update={"name": full, **changes})
