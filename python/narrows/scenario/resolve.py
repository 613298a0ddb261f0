"""Converts a scenario into the plan that a backend runs.

In a plan, indices replace names, and defaults are explicit. `crates/narrows-plan` defines the plan.
Times are in ns, rates in L3 bytes/s, sizes in bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from narrows import congestion as catalogue
from narrows import rate, stacks, units
from narrows.errors import ScenarioError, found, hint, one_of
from narrows.packets import FULL_PACKET
from narrows.parameters import Value, in_base_units, with_contents
from narrows.plan import (
    CapturePlan,
    ControllerPlan,
    FlowPlan,
    HtbClassPlan,
    KernelPlan,
    LimitPlan,
    LinkPlan,
    Plan,
    ProbePlan,
    QueuePlan,
    RedMarkPlan,
    TransportPlan,
    TriggerPlan,
)
from narrows.scenario import buffers, fitting, network, parts, program
from narrows.scenario.entries import Entry, entries
from narrows.scenario.graph import Direction, Graph
from narrows.scenario.model import Capture, Kernel, RateController, Scenario
from narrows.scenario.traffic import MAX_FLOWS, Flow
from narrows.scenario.triggers import Triggers

MAX_SAMPLED_BY_DEFAULT = 16
"""By default, all directed links are sampled if the network has at most this many directed links."""
MAX_SAMPLES = 100_000_000
"""Maximum number of sample rows of a run."""
WARMUP_SHARE = 10
"""The warm-up is the duration of the run divided by this number, within the two bounds below."""
WARMUP_RTTS = 10
"""The warm-up lasts at least this many times the longest RTT (docs/reference/results.md, conventions)."""
WARMUP_MOST = 2
"""The warm-up lasts at most the duration of the run divided by this number, so that something is left to
measure."""


def resolve(
    scenario: Scenario,
    congestion_controllers: Iterable[str] = (),
    rate_controllers: Iterable[str] = (),
    kernel: str = "",
) -> Plan:
    """The plan of one run.

    Args:
        scenario: the scenario, whose sweep is ignored.
        congestion_controllers: names that `cc` may take (empty: names are not checked).
        rate_controllers: names that a rate controller's `kind` may take (empty: names are not checked).
        kernel: the kernel that offers these congestion controllers, as messages call it (empty: the simulator
            offers them).

    Raises:
        ScenarioError: if names, routes or values contradict each other.
    """
    return survey(scenario, congestion_controllers, rate_controllers, kernel).plan


@dataclass(frozen=True)
class Survey:
    """A plan, and the network and paths from which it was made."""

    plan: Plan
    """The plan for the backend."""
    graph: Graph
    """Network of the plan."""
    paths: list[fitting.Path]
    """The links of each flow of the plan."""
    origins: dict[str, list[int]]
    """Lists for the keys `flows` and `rate_controllers`: for each element of the plan, the number of the
    scenario's entry that describes it."""

    def in_scenario(self, error: ScenarioError) -> ScenarioError:
        """The same error. In its key, the number of the scenario's entry replaces the plan's number."""
        name, _, rest = error.key.partition(".")
        number, dot, rest = rest.partition(".")
        origins = self.origins.get(name, [])
        if not number.isdecimal() or int(number) >= len(origins):
            return error
        return ScenarioError(error.message, f"{name}.{origins[int(number)]}{dot}{rest}", error.source)


def survey(
    scenario: Scenario,
    congestion_controllers: Iterable[str] = (),
    rate_controllers: Iterable[str] = (),
    kernel: str = "",
) -> Survey:
    """Like `resolve`, but also returns the network and the paths."""
    try:
        resolver = _Resolver(scenario, list(congestion_controllers), list(rate_controllers), kernel)
        plan = resolver.plan()
        flows = [entry.index for entry in resolver.entries]
        origins = {"flows": flows, "rate_controllers": resolver.controlled}
        return Survey(plan, resolver.graph, resolver.paths, origins)
    except ScenarioError as error:
        raise error.in_source(scenario.source) from None


_OWN = " (FILE.py:CLASS is a controller of your own)"
"""The words that end the message about an unknown congestion controller if no known name is similar."""


class _CodelLaw(TypedDict):
    """The keys that `codel` and `fq-codel` share."""

    limit: LimitPlan
    target: int
    interval: int
    ecn: bool


class _Resolver:
    def __init__(self, scenario: Scenario, ccs: list[str], rate_controllers: list[str], kernel: str) -> None:
        self.scenario = scenario
        self.ccs = ccs
        self.kernel = kernel
        self.rate_controllers = rate_controllers
        self.entries = entries(scenario)
        flows = [entry.flow for entry in self.entries]
        ends = [end for entry in self.entries for end in (entry.source, entry.to) if end is not None]
        self.graph = Graph(scenario, Path(scenario.source).parent, ends)
        self.names = parts.names(flows)
        self.flows = [self._flow(i, entry) for i, entry in enumerate(self.entries)]
        self.paths = [self._path(i, flow) for i, flow in enumerate(self.flows)]
        self.packets = fitting.largest_packets(flows, self.paths)
        self.rtts = self._rtts()
        self.longest_rtt = max(self.rtts.values(), default=0)
        self.controlled: list[int] = []

    def plan(self) -> Plan:
        scenario = self.scenario
        seen: set[str] = set()
        for i, flow in enumerate(self.flows):
            if flow["name"] in seen:
                raise ScenarioError(
                    f"found {found(flow['name'])} again, expected another name", f"{self.entries[i].key}.name"
                )
            seen.add(flow["name"])
        if not self.flows:
            raise ScenarioError("found none, expected at least one entry [[flows]]", "flows")
        total = sum(entry.flow.count for entry in self.entries)
        if total > MAX_FLOWS:
            raise ScenarioError(f"found {total} flows, expected at most {MAX_FLOWS}", "flows")
        fitting.check(scenario, self.graph, self.entries, self.paths)
        rate_controllers = self._rate_controllers()
        links = [self._link(link, i) for i, link in enumerate(self.graph.links)]
        named = scenario.receive_buffer
        plan: Plan = {
            "seed": scenario.seed,
            "duration": scenario.duration,
            "warmup": self._warmup(),
            "nodes": self.graph.nodes,
            "links": links,
            "flows": self.flows,
            "rate_controllers": rate_controllers,
            "sdn": None,
            "receive_buffer": named if isinstance(named, int) else buffers.receive_buffer(links, self.paths),
            "receive_memory": named is not None,
            "ecmp": scenario.ecmp,
            "probes": self._probes([c["link"] for c in rate_controllers], total),
        }
        if triggers := self._triggers():
            plan["triggers"] = triggers
        if scenario.sdn is not None:
            sdn = scenario.sdn
            outages = [(start, stop) for start, stop in sdn.outages]
            plan["sdn"] = {"poll": sdn.poll, "delay": sdn.delay, "outages": outages}
        if scenario.capture is not None:
            plan["capture"] = self._capture(scenario.capture)
        if scenario.kernel is not None:
            plan["kernel"] = _kernel(scenario.kernel)
        return plan

    def _warmup(self) -> int:
        scenario = self.scenario
        if scenario.warmup is not None:
            if scenario.warmup >= scenario.duration:
                raise ScenarioError(
                    f"found {found(units.format_duration(scenario.warmup))}, expected less than the duration",
                    "warmup",
                )
            return scenario.warmup
        wanted = max(scenario.duration // WARMUP_SHARE, WARMUP_RTTS * self.longest_rtt)
        return min(wanted, scenario.duration // WARMUP_MOST)

    def _rtts(self) -> dict[int, int]:
        """For each link, the longest two-way propagation delay of the flows whose data crosses it."""
        longest: dict[int, int] = {}
        for path in self.paths:
            rtt = sum(self.graph.links[link].delay for link in path.forth + path.back)
            for link in path.data_links:
                longest[link] = max(longest.get(link, 0), rtt)
        return longest

    def _path(self, i: int, flow: FlowPlan) -> fitting.Path:
        entry = self.entries[i]
        try:
            forth = self._route(flow["from"], flow["to"], entry.end("to"))
            also_forth = self._equal(flow["from"], flow["to"])
            return_path = flow["return_path"]
            if not return_path:
                back = self._route(flow["to"], flow["from"], entry.end("from"))
                return fitting.Path(forth, back, also_forth, self._equal(flow["to"], flow["from"]))
        except ScenarioError as error:
            raise entry.misplaced(error) from None
        pairs = itertools.pairwise(return_path)
        back = [self._hop(a, b, f"{entry.key}.return_path") for a, b in pairs]
        return fitting.Path(forth, back, also_forth)

    def _equal(self, source: int, to: int) -> frozenset[int]:
        """The links of all paths from which ECMP chooses; empty without ECMP."""
        return self.graph.equal(source, to) if self.scenario.ecmp else frozenset()

    def _route(self, source: int, to: int, key: str) -> list[int]:
        route = self.graph.route(source, to)
        if route is None:
            a, b = self.graph.nodes[source], self.graph.nodes[to]
            raise ScenarioError(f"found no path from {found(a)} to {found(b)}, expected one", key)
        return route

    def _hop(self, source: int, to: int, key: str) -> int:
        link = self.graph.hop(source, to)
        if link is None:
            a, b = self.graph.nodes[source], self.graph.nodes[to]
            raise ScenarioError(f"found {found(b)} after {found(a)}, expected a neighbour", key)
        return link

    # Links

    def _link(self, link: Direction, index: int) -> LinkPlan:
        traits = link.traits
        timed = [change for change in traits.at if change.when is None]
        changes = sorted(timed, key=lambda change: change.time or 0)
        if timed != changes:
            raise ScenarioError("found changes out of order, expected rising times", f"{link.key}.at")
        queue, jitter = traits.queue or network.Fifo(kind="fifo"), traits.jitter
        policer = traits.policer
        if policer is not None:
            largest = max(self.packets.get(index, 0), FULL_PACKET)
            fitting.check_burst(policer.burst, largest, f"{link.key}.policer.burst")
        plan: LinkPlan = {
            "name": link.name,
            "from": link.source,
            "to": link.to,
            "rate": link.capacity.plan if link.capacity else parts.rate(link.rate, changes),
            "delay": parts.delay(link.delay, changes),
            "jitter": None if jitter is None else parts.jitter_plan(jitter),
            "loss": parts.loss(traits.loss, changes),
            "duplicate": traits.duplicate,
            "policer": None if policer is None else {"rate": policer.rate // 8, "burst": policer.burst},
            "aggregation": traits.aggregation,
            "queue": self._queue(queue, link, index),
        }
        if jitter_changes := parts.jitter(changes):
            plan["jitter_changes"] = jitter_changes
        return plan

    def _triggers(self) -> list[TriggerPlan]:
        """The changes of links and applications at the beginning of phases."""
        triggers = Triggers(self.flows, self.kernel)
        for i, link in enumerate(self.graph.links):
            triggers.of_link(i, link.traits.at, link.key)
        for i, entry in enumerate(self.entries):
            if entry.flow.app is not None:
                triggers.of_app(i, entry.flow.app.at, entry.key)
        return triggers.made

    def _limit(self, limit: units.Limit, link: Direction, index: int, key: str = "") -> LimitPlan:
        """The limit of a queue in packets or bytes. A queue with this limit always admits a full packet.

        A BDP is the link's rate times the longest two-way propagation delay of the flows that send data over
        the link. If no flow sends data over the link, the longest RTT of all flows is used.
        """
        packet = self.packets.get(index, 0)
        if limit.bdp is None:
            fitting.check_limit(limit, packet, key or f"{link.key}.queue")
            return {"packets": limit.packets, "bytes": limit.bytes}
        rtt = self.rtts.get(index, 0) or self.longest_rtt or 2 * link.delay
        size = math.ceil(limit.bdp * link.rate * rtt / (8 * units.NANOS_PER_SEC))
        return {"packets": None, "bytes": min(units.MAX_BYTES, max(FULL_PACKET, packet, size))}

    def _queue(self, queue: network.Queue, link: Direction, index: int) -> QueuePlan:
        if isinstance(queue, network.Priority):
            return {
                "kind": "priority",
                "classes": [self._limit(limit, link, index) for limit in queue.classes],
            }
        if isinstance(queue, network.Htb):
            classes: list[HtbClassPlan] = [
                {
                    "rate": c.rate // 8,
                    "ceil": (c.ceil or c.rate) // 8,
                    "limit": self._limit(c.limit, link, index),
                    "priority": c.priority,
                }
                for c in queue.classes
            ]
            return {"kind": "htb", "classes": classes}
        limit = self._limit(queue.limit, link, index)
        if isinstance(queue, network.Threshold):
            mark = self._limit(queue.mark, link, index, f"{link.key}.queue.mark")
            fitting.check_mark(mark, limit, f"{link.key}.queue.mark")
            whole = max(1, round((mark["bytes"] or 0) / FULL_PACKET))
            return {
                "kind": "fifo",
                "limit": limit,
                "mark": {"kind": "threshold", "packets": mark["packets"] or whole},
            }
        if isinstance(queue, network.Red):
            red: RedMarkPlan = {
                "kind": "red",
                "min": queue.min,
                "max": queue.max,
                "max_p": queue.max_p,
                "weight": queue.weight,
                "ecn": queue.ecn,
            }
            return {"kind": "fifo", "limit": limit, "mark": red}
        if isinstance(queue, network.Codel | network.FqCodel):
            law: _CodelLaw = {
                "limit": limit,
                "target": queue.target,
                "interval": queue.interval,
                "ecn": queue.ecn,
            }
            if isinstance(queue, network.Codel):
                return {"kind": "codel", **law}
            return {"kind": "fq-codel", **law, "quantum": queue.quantum, "queues": queue.queues}
        return {"kind": "fifo", "limit": limit}

    # Flows

    def _ends(self, entry: Entry) -> list[int]:
        """The flow's sending and receiving nodes."""
        endpoints = self.graph.endpoints
        default = endpoints[entry.index % len(endpoints)] if endpoints else (None, None)
        ends = []
        for given, usual, which in ((entry.source, default[0], "from"), (entry.to, default[1], "to")):
            name = usual if given is None else given
            if name is None:
                raise ScenarioError("found nothing, expected a node", entry.end(which))
            ends.append(self.graph.end(name, entry.end(which)))
        if ends[0] == ends[1]:
            raise ScenarioError(
                f"found {found(self.graph.nodes[ends[1]])}, expected another node than from", entry.end("to")
            )
        return ends

    def _unknown(self, flow: Flow) -> str:
        """The message about an unknown congestion controller.

        If a kernel offers the controllers, the message lists all names, because a kernel has few. Suggesting
        only the most similar name (`bbr` for `bbr3`) would look like the correction of a typing error,
        although the simulator has both controllers.
        """
        name = flow.cc.name
        if not self.kernel:
            own = stacks.controllers()
            owner = next((stack for stack, names in own.items() if name in names), None)
            if owner is not None:
                return f"found {found(name)}, which is a controller of {owner}, expected one of Narrows"
            known = [*own.get(flow.transport, []), *self.ccs]
            message = one_of(name, known, "a congestion controller", "congestion")
            return message + (_OWN if message.endswith(" has them") else "")
        if catalogue.class_file(name) is not None:
            return f"found {found(name)}, expected --on sim, because Python classes run only in the simulator"
        return f"found {found(name)}, expected one that {self.kernel} has: {', '.join(self.ccs)}"

    def _flow(self, i: int, entry: Entry) -> FlowPlan:
        flow, key = entry.flow, entry.key
        try:
            ends = self._ends(entry)
        except ScenarioError as error:
            raise entry.misplaced(error) from None
        duration = self.scenario.duration
        if flow.start >= duration:
            raise ScenarioError(
                f"found {found(units.format_duration(flow.start))}, expected less than the duration",
                f"{key}.start",
            )
        last = flow.start + (flow.count - 1) * flow.spacing
        for name, added in (("spacing", 0), ("start_jitter", flow.start_jitter)):
            if last + added >= duration:
                value = found(units.format_duration(getattr(flow, name)))
                at = units.format_duration(last + added)
                raise ScenarioError(
                    f"found {value} (the last flow would start at {at}), "
                    "expected all to start within the duration",
                    f"{key}.{name}",
                )
        if flow.is_stack and self.kernel:
            raise ScenarioError(
                f"found {flow.transport}, expected --on sim, because this stack runs only in the simulator",
                f"{key}.transport",
            )
        cc = stacks.catalogue_name(flow.transport, flow.cc.name)
        if cc is not None and self.ccs and cc not in self.ccs:
            raise ScenarioError(self._unknown(flow), f"{key}.cc")
        return {
            "name": self.names[i],
            "from": ends[0],
            "to": ends[1],
            "return_path": self._return_path(flow, ends, key),
            "start": flow.start,
            "stop": None if flow.stop is None or flow.stop >= duration else flow.stop,
            "count": flow.count,
            "spacing": flow.spacing,
            "start_jitter": flow.start_jitter,
            "class": flow.class_,
            "service": flow.service,
            "transport": self._transport(i, flow, key),
            "app": parts.app(flow, duration, key),
        }

    def _transport(self, i: int, flow: Flow, key: str) -> TransportPlan:
        if flow.program is None:
            return parts.transport(flow, self.scenario.duration, key)
        cc = parts.congestion(flow, f"{key}.cc") if flow.program.protocol == "tcp" else None
        return program.plan(flow.program, cc, i, Path(self.scenario.source).parent, key)

    def _return_path(self, flow: Flow, ends: list[int], key: str) -> list[int] | None:
        if flow.return_path is None:
            return None
        path = [self.graph.node(name, f"{key}.return_path.{j}") for j, name in enumerate(flow.return_path)]
        if path[0] != ends[1] or path[-1] != ends[0]:
            first, last = flow.return_path[0], flow.return_path[-1]
            raise ScenarioError(
                f"found a path from {first} to {last}, expected nodes from the receiver to the sender",
                f"{key}.return_path",
            )
        return path

    # Rate controllers and probes

    def _rate_controllers(self) -> list[ControllerPlan]:
        """The rate controllers, at most one for each link. An entry can define several rate controllers."""
        made: dict[int, ControllerPlan] = {}
        for i, controller in enumerate(self.scenario.rate_controllers):
            key = f"rate_controllers.{i}"
            if self.rate_controllers and controller.kind not in self.rate_controllers:
                raise ScenarioError(
                    one_of(controller.kind, self.rate_controllers, "a rate controller", "rate"), f"{key}.kind"
                )
            for index, where in self.graph.controlled(controller, key):
                if index in made:
                    name = self.graph.links[index].name
                    raise ScenarioError(
                        f"found {found(name)} again, expected one rate controller per link", where
                    )
                made[index] = self._controller(controller, index, key)
                self.controlled.append(i)
        return list(made.values())

    def _controller(self, controller: RateController, index: int, key: str) -> ControllerPlan:
        link = self.graph.links[index]
        queue = link.traits.queue
        limit = controller.queue or (
            queue.limit if isinstance(queue, network.Limited) else network.TXQUEUELEN
        )
        shape = None
        if controller.shape is not None:
            shape = [(step.time, step.rate // 8) for step in controller.shape]
            times = [time for time, _ in shape]
            if times[0] != 0 or times != sorted(set(times)):
                raise ScenarioError("expected rising times from '0s' on", f"{key}.shape")
        return {
            "kind": controller.kind,
            "link": index,
            "shape": shape,
            "told": controller.capacity == "told",
            "limit": self._limit(limit, link, index, f"{key}.queue" if controller.queue else ""),
            "params": self._params(controller, key),
            "outages": [(start, stop) for start, stop in controller.outages],
        }

    def _params(self, controller: RateController, key: str) -> dict[str, Value]:
        known = rate.catalogue()
        if controller.kind not in known:
            raise ScenarioError(one_of(controller.kind, known, "a rate controller", "rate"), f"{key}.kind")
        row = known[controller.kind]
        folder = Path(self.scenario.source).parent
        params = with_contents(controller.params, row.parameters, folder, f"{key}.params")
        return in_base_units(params, row.parameters, row.name, f"{key}.params")

    def _probes(self, controlled: list[int], flows: int) -> ProbePlan:
        probes, everything = self.scenario.probes, range(len(self.graph.links))
        if probes.links == ["all"]:
            links = list(everything)
        elif probes.links is not None:
            named = [self.graph.link(name, f"probes.links.{j}") for j, name in enumerate(probes.links)]
            links = sorted(set(named))
        elif len(everything) <= MAX_SAMPLED_BY_DEFAULT:
            links = list(everything)
        else:
            tight = [self.graph.link(name, "probes.links") for name in self.graph.bottlenecks]
            links = sorted({*controlled, *tight})
        if probes.interval:
            entities = len(links) + (flows if probes.flows else 0)
            samples = self.scenario.duration // probes.interval * entities
            if samples > MAX_SAMPLES:
                raise ScenarioError(
                    f"found {units.format_duration(probes.interval)} ({samples} samples), "
                    f"expected an interval that gives at most {MAX_SAMPLES} samples (0 gives none)",
                    "probes.interval",
                )
        return {
            "interval": probes.interval,
            "links": links,
            "flows": probes.flows,
            "traces": probes.traces,
            "acks": self._recorded(probes.acks or []),
            "ack_rows": probes.ack_rows,
        }

    def _recorded(self, names: list[str]) -> list[int]:
        """The numbers of the flows whose ACKs are recorded."""
        if names and self.kernel:
            raise ScenarioError(
                "found flows, expected --on sim, because real stacks are sampled at intervals only",
                "probes.acks",
            )
        tcp = {flow["name"]: i for i, flow in enumerate(self.flows) if flow["transport"]["kind"] == "tcp"}
        if names == ["all"]:
            return list(tcp.values())
        for j, name in enumerate(names):
            if name not in tcp:
                raise ScenarioError(
                    f"found {found(name)}, expected the name of a TCP flow{hint(name, tcp)}",
                    f"probes.acks.{j}",
                )
        return sorted({tcp[name] for name in names})

    def _capture(self, capture: Capture) -> CapturePlan:
        links = [self.graph.link(name, f"capture.links.{i}") for i, name in enumerate(capture.links)]
        hosts = [self.graph.node(name, f"capture.hosts.{i}") for i, name in enumerate(capture.hosts)]
        return {
            "links": sorted(set(links)),
            "hosts": sorted(set(hosts)),
            "snap": capture.snap,
            "qlog": capture.qlog,
        }


def _kernel(kernel: Kernel) -> KernelPlan:
    return {
        "forwarding": kernel.forwarding,
        "datapath": kernel.datapath,
        "interval": kernel.interval,
        "tool": kernel.tool,
        "delay": kernel.delay,
        "host_queue": kernel.host_queue,
    }
