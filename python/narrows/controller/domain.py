"""The controller's state and decisions.

The domain takes events and returns effects. It uses neither a clock nor sockets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from narrows.controller import forwarding, path_rates
from narrows.controller.agents import AgentPort, Agents, Numbers
from narrows.controller.congestion import Congestion
from narrows.controller.hosts import Hosts, Learnt
from narrows.controller.loads import Loads
from narrows.controller.messages import (
    AgentDown,
    AgentMessage,
    AgentUp,
    AskCounters,
    Barrier,
    BarrierDone,
    Counters,
    CountersRead,
    Effect,
    Event,
    FrameSeen,
    Install,
    LldpSeen,
    Note,
    PortChanged,
    PortGone,
    PortKey,
    Remove,
    Rule,
    RuleGone,
    RuleKey,
    SendLldp,
    SwitchDown,
    SwitchUp,
)
from narrows.controller.path_rates import PathRates, Place
from narrows.controller.routes import Routes
from narrows.controller.topology import Kind, Link, Topology
from narrows.units import NANOS_PER_SEC as SECOND

VETH_SPEED_BPS = 10_000_000_000
"""The speed that a veth and other virtual devices report. The code treats this speed as unknown."""


@dataclass(frozen=True, slots=True)
class PortParams:
    """The configuration of a port."""

    rate_bps: int | None = None
    """Capacity of the port's outgoing link, bit/s."""
    delay_ns: int = 0
    """Propagation delay of the port's outgoing link."""
    counted: bool = True
    """Whether PACEC may read the port's counters. If so, PACEC reads them when the port's capacity is known
    and no agent of PACEC controls the port."""


@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of the domain. Times in ns."""

    lldp_ns: int = 1 * SECOND
    """Interval between LLDP frames of a port: the interval of fast transmission in IEEE 802.1AB. With
    the standard's default of 30 s, loops would be found too late."""
    probe_ns: int = 2 * SECOND
    """A port that receives no LLDP from another switch for this time becomes an edge."""
    link_expire_ns: int = 5 * SECOND
    """A link without LLDP for this time is removed. Five frames are sent in this time, because a busy switch
    loses some frames."""
    counters_ns: int = 1 * SECOND
    """Interval between readings of port counters. Intervals below 0.1 s would cost too much. 95 % of a
    switch's answers arrive within 12 ms."""
    poll_ns: int = SECOND // 10
    """Longest interval between polls of an agent (BRF-73)."""
    host_idle_s: int = 300
    """A host that sends no packet for this time is removed (IEEE 802.1Q, table 8-6)."""
    hold_ns: int = 10 * SECOND
    """After a start, switches keep existing entries for this time, and traffic continues unchanged. During
    this time all switches connect (Open vSwitch tries at least every 8 s), and the controller finds the
    links."""
    barrier_ns: int = 1 * SECOND
    """Longest wait for a switch's answer to a barrier."""
    ports: Mapping[PortKey, PortParams] = field(default_factory=dict)
    paths: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Configured paths by source and destination address: the agents' ports on the path, as AGENT/INTERFACE.
    They replace the paths of the flow entries."""


class Domain:
    """The state of the network and of its control."""

    def __init__(self, now_ns: int, params: Params) -> None:
        self.params = params
        self.topology = Topology(params.probe_ns, params.link_expire_ns)
        self.hosts = Hosts()
        self.loads = Loads()
        self.congestion = Congestion(params.poll_ns)
        numbers = Numbers()
        self.path_rates = PathRates(numbers, self._path)
        self.agents = Agents(numbers, {"brf": self.congestion, path_rates.NAME: self.path_rates})
        self.installed: dict[int, dict[RuleKey, Rule]] = {}
        """The flow entries of each connected switch, including entries that were sent but not processed
        yet."""
        self.heard_ns: dict[str, int] = {}
        """Time of the last message of each connected agent."""
        self._hold_until_ns = now_ns + params.hold_ns
        self._held: set[int] = set()
        """Switches whose flow entries the controller does not change until `_hold_until_ns`."""
        self._waiting: dict[int, tuple[int, int]] = {}
        """For each switch with an unanswered barrier, the barrier's number and the time until which the
        controller waits."""
        self._barriers = 0
        self._links: set[Link] = set()
        self._dirty = False
        self._lldp_at_ns = now_ns
        self._counters_at_ns = now_ns
        self._sample_at_ns = now_ns
        """Time of the next reading of PACEC's counters."""
        self._routes: Routes | None = None
        self._controlled: dict[PortKey, AgentPort] | None = None
        """The cached result of `controlled`. This cache and `_routes` are valid until something changes."""

    def handle(self, now_ns: int, event: Event) -> list[Effect]:
        """Handles an event."""
        effects = self._on(now_ns, event)
        return effects + self._sync(now_ns)

    def tick(self, now_ns: int) -> list[Effect]:
        """Handles the passage of time."""
        effects: list[Effect] = []
        if self._lldp_at_ns <= now_ns:
            self._lldp_at_ns = now_ns + self.params.lldp_ns
            effects += [SendLldp(*port) for port in self.topology.live_ports()]
        if self._counters_at_ns <= now_ns:
            self._counters_at_ns = now_ns + self.params.counters_ns
            effects += [AskCounters(dpid) for dpid in sorted(self.topology.switches)]
        if self.topology.tick(now_ns):
            self._dirty = True
        if self._held and self._hold_until_ns <= now_ns:
            self._held.clear()
            self._dirty = True
        for dpid in [dpid for dpid, (_, until) in self._waiting.items() if until <= now_ns]:
            del self._waiting[dpid]
            self._dirty = True
        return effects + self._sample(now_ns) + self.agents.tick(now_ns) + self._sync(now_ns)

    def next_timer_ns(self) -> int:
        """Time of the next call of `tick`."""
        times = [self._lldp_at_ns, self._counters_at_ns, *(until for _, until in self._waiting.values())]
        times += [at for at in (self.topology.next_timer_ns(), self.agents.next_timer_ns()) if at is not None]
        if self._held:
            times.append(self._hold_until_ns)
        if self.path_rates.switches():
            times.append(self._sample_at_ns)
        return min(times)

    def is_held(self, dpid: int) -> bool:
        """Whether a switch still uses the entries of an earlier controller."""
        return dpid in self._held

    def controlled(self) -> Mapping[PortKey, AgentPort]:
        """The switches' ports that agents control.

        Ports are matched by name and hardware address, because several interfaces can have the same address.
        """
        if self._controlled is None:
            by_interface = {
                (port.info.mac.lower(), port.info.interface): port for _, port in self.agents.ports()
            }
            self._controlled = {
                (dpid, number): own
                for dpid, ports in self.topology.switches.items()
                for number, port in ports.items()
                if (own := by_interface.get((port.desc.mac.lower(), port.desc.name))) is not None
            }
            self.path_rates.set_counted(self._counted(self._controlled))
        return self._controlled

    def _counted(self, controlled: Mapping[PortKey, AgentPort]) -> list[Place]:
        """The ports whose counters PACEC reads.

        They include ports whose agent has another rate controller than PACEC.
        """
        places: list[Place] = []
        for dpid, ports in self.topology.switches.items():
            for number, port in ports.items():
                key = (dpid, number)
                own = controlled.get(key)
                if own is not None and own.info.rate_controller == path_rates.NAME:
                    continue
                params = self.params.ports.get(key, PortParams())
                if params.counted and (rate := self.capacity_bps(key)) is not None:
                    # A switch reports the rate of the wire, but the rate of IP datagrams is lower.
                    on_wire = params.rate_bps is None and rate == port.desc.speed_bps
                    places.append(Place(key, path_rates.l3(rate) if on_wire else rate))
        return places

    def capacity_bps(self, port: PortKey) -> int | None:
        """Capacity of a port in bit/s.

        The sources in order of preference are the port's agent, the configuration and the switch.
        """
        known = self.topology.port(port)
        if known is None:
            return None
        if (controlled := self.controlled().get(port)) is not None:
            return 8 * controlled.info.capacity
        configured = self.params.ports.get(port, PortParams()).rate_bps
        if configured is not None:
            return configured
        speed = known.desc.speed_bps
        return speed if speed not in (0, VETH_SPEED_BPS) else None

    def delay_ns(self, link: Link) -> int:
        """Propagation delay of a link, from the configuration."""
        ends = (self.params.ports.get(end, PortParams()) for end in (link.a, link.b))
        return max(end.delay_ns for end in ends)

    def _on(self, now_ns: int, event: Event) -> list[Effect]:
        match event:
            case SwitchUp():
                return self._switch_up(now_ns, event)
            case SwitchDown(dpid):
                if not self.topology.remove_switch(dpid):
                    return []
                self._forget_switch(dpid)
                return [Note("switch-down", f"switch {dpid:016x} disconnected", {"switch": dpid})]
            case PortChanged(dpid, desc):
                self._controlled = None
                if self.topology.set_port(now_ns, dpid, desc):
                    self._dirty = True
                    self.hosts.forget_at((dpid, desc.number))
                    self._lldp_at_ns = now_ns
                    state = "up" if desc.up else "down"
                    data = {"switch": dpid, "port": desc.number}
                    return [Note(f"port-{state}", f"port {desc.name} of {dpid:016x} is {state}", data)]
            case PortGone(dpid, port):
                if self.topology.remove_port(dpid, port):
                    self._dirty = True
                    self.hosts.forget_at((dpid, port))
                    self.loads.forget(dpid, port)
                    data = {"switch": dpid, "port": port}
                    return [Note("port-down", f"port {port} of {dpid:016x} was removed", data)]
            case LldpSeen(dpid, port, from_dpid, from_port):
                if self.topology.lldp(now_ns, (dpid, port), (from_dpid, from_port)):
                    self._dirty = True
                    self.hosts.forget_at((dpid, port))
                    self.hosts.forget_at((from_dpid, from_port))
            case FrameSeen(dpid, port, mac, ip):
                return self._frame(now_ns, (dpid, port), mac, ip)
            case RuleGone(dpid, rule):
                return self._rule_gone(dpid, rule)
            case CountersRead(dpid, ports):
                return self._read(now_ns, dpid, ports)
            case BarrierDone(dpid, number):
                if self._waiting.get(dpid, (None, 0))[0] == number:
                    del self._waiting[dpid]
                    self._dirty = True
            case AgentUp(agent, address):
                self._controlled = None
                self.heard_ns[agent] = now_ns
                return self.agents.up(now_ns, agent, address)
            case AgentDown(agent, reason):
                self._controlled = None
                self.heard_ns.pop(agent, None)
                return self.agents.down(agent, reason)
            case AgentMessage(agent, body):
                return self._agent_message(now_ns, agent, body)
        return []

    def _agent_message(self, now_ns: int, agent: str, body: str) -> list[Effect]:
        known = self.agents.by_name.get(agent)
        if known is not None:
            self.heard_ns[agent] = now_ns
        before = None if known is None else known.ports
        effects = self.agents.on_message(now_ns, agent, body)
        if known is not None and known.ports is not before:
            self._controlled = None
        return effects

    def _sample(self, now_ns: int) -> list[Effect]:
        """Requests counters for PACEC, which needs them more often than the page does."""
        self.controlled()
        switches = self.path_rates.switches()
        if not switches or now_ns < self._sample_at_ns:
            return []
        interval = self.path_rates.interval_ns
        self._sample_at_ns = max(self._sample_at_ns + interval, now_ns + interval // 2)
        return [AskCounters(dpid) for dpid in switches]

    def _read(self, now_ns: int, dpid: int, ports: dict[int, Counters]) -> list[Effect]:
        effects: list[Effect] = []
        often = bool(self.path_rates.switches())
        for number, counters in ports.items():
            port = (dpid, number)
            if self.topology.port(port) is None:
                continue
            # Accept an answer that comes a little early. After a late answer of a busy switch, the next
            # answer comes after less than the interval.
            if not often or self.loads.is_due(now_ns, port, self.params.counters_ns * 3 // 4):
                self.loads.read(now_ns, port, counters, self.capacity_bps(port))
            effects += self.agents.translate(now_ns, None, self.path_rates.read(now_ns, port, counters))
        return effects

    def _path(self, source: str, to: str) -> list[int]:
        """Numbers of the ports on the path from `source` to `to`. Ports without a number are left out."""
        # Addresses are compared in their canonical form.
        ends = (str(ip_address(source)), str(ip_address(to)))
        if (configured := self.params.paths.get(ends)) is not None:
            return self._configured(configured)
        a, b = (self.hosts.find(address) for address in ends)
        if a is None or b is None:
            return []
        if self._routes is None:
            self._routes = Routes(self.topology, self.delay_ns)
        numbers = (self._number(hop) for hop in self._routes.path(a.at, b.at))
        return [number for number in numbers if number is not None]

    def _configured(self, path: Iterable[str]) -> list[int]:
        """Numbers of the ports of a configured path. Ports that no agent of PACEC controls are left out."""
        numbers = []
        for name in path:
            agent, _, interface = name.partition("/")
            known = self.agents.by_name.get(agent)
            ports = known.ports.values() if known is not None else ()
            numbers += [
                port.id
                for port in ports
                if port.info.interface == interface and port.info.rate_controller == path_rates.NAME
            ]
        return numbers

    def _number(self, port: PortKey) -> int | None:
        """The number of a port that an agent of PACEC controls, or whose counters PACEC reads."""
        controlled = self.controlled().get(port)
        if controlled is not None and controlled.info.rate_controller == path_rates.NAME:
            return controlled.id
        return self.path_rates.number(port)

    def _switch_up(self, now_ns: int, event: SwitchUp) -> list[Effect]:
        self._forget_switch(event.dpid)
        self.topology.add_switch(now_ns, event.dpid, event.ports, forwarding.adopted_trunks(event.rules))
        self.installed[event.dpid] = {rule.key: rule for rule in event.rules}
        if event.rules and now_ns < self._hold_until_ns:
            self._held.add(event.dpid)
        # After a restart, the controller learns the hosts from the switches' existing entries. These entries
        # admit the hosts' frames.
        for port, mac in forwarding.adopted_hosts(event.rules):
            if self.topology.port((event.dpid, port)) is not None:
                self.hosts.learn(now_ns, (event.dpid, port), mac, None)
        self._lldp_at_ns = now_ns
        kept = f", {len(event.rules)} existing entries" if event.rules else ""
        text = f"switch {event.dpid:016x} connected: {len(event.ports)} ports{kept}"
        return [Note("switch-up", text, {"switch": event.dpid})]

    def _forget_switch(self, dpid: int) -> None:
        self._dirty = True
        self.installed.pop(dpid, None)
        self._held.discard(dpid)
        self._waiting.pop(dpid, None)
        self.loads.forget(dpid)
        for at in {host.at for host in self.hosts.by_mac.values() if host.at[0] == dpid}:
            self.hosts.forget_at(at)

    def _frame(self, now_ns: int, at: PortKey, mac: str, ip: str | None) -> list[Effect]:
        port = self.topology.port(at)
        if port is None or port.kind is not Kind.EDGE:
            return []
        host = self.hosts.by_mac.get(mac)
        had_none = host is not None and not host.ips
        learnt = self.hosts.learn(now_ns, at, mac, ip)
        if had_none and ip is not None:
            self._dirty = True
        if learnt is Learnt.NOTHING:
            return []
        self._dirty = True
        verb = "is new" if learnt is Learnt.NEW else "has moved"
        text = f"host {mac} {verb} at port {at[1]} of {at[0]:016x}"
        return [Note(f"host-{learnt.value}", text, {"host": mac, "switch": at[0], "port": at[1]})]

    def _rule_gone(self, dpid: int, rule: Rule) -> list[Effect]:
        if self.installed.get(dpid, {}).pop(rule.key, None) is None:
            return []  # the entry is gone because the controller removed it
        self._dirty = True
        host = self.hosts.by_mac.get(rule.match.eth_src or "")
        if host is None or host.at != (dpid, rule.match.in_port):
            return []
        self.hosts.forget(host.mac)
        return [
            Note(
                "host-gone",
                f"host {host.mac} was removed: it sent no packet for {self.params.host_idle_s} s",
                {"host": host.mac},
            )
        ]

    def _sync(self, now_ns: int) -> list[Effect]:
        """Updates the switches' flow entries to the desired entries."""
        if not self._dirty:
            return []
        self._dirty = False
        self._routes = self._controlled = None
        effects: list[Effect] = [*self._link_notes()]
        rules = forwarding.desired(
            self.topology, self.hosts.by_mac.values(), self.delay_ns, self.params.host_idle_s
        )
        rules = [(dpid, rule) for dpid, rule in rules if dpid not in self._held]
        wanted: dict[int, dict[RuleKey, Rule]] = {}
        for dpid, rule in rules:
            wanted.setdefault(dpid, {})[rule.key] = rule
        effects += self._shrink_trees(now_ns, wanted)
        for dpid, keep in wanted.items():
            have = self.installed[dpid]
            effects += [Remove(dpid, have.pop(key)) for key in list(have) if key not in keep]
        for dpid, rule in rules:
            have = self.installed[dpid]
            if have.get(rule.key) == rule or (rule.key == forwarding.FLOOD_KEY and self._waiting):
                continue
            have[rule.key] = rule
            effects.append(Install(dpid, rule))
        return effects

    def _shrink_trees(self, now_ns: int, wanted: Mapping[int, Mapping[RuleKey, Rule]]) -> list[Effect]:
        """Starts a change of the spanning tree: keeps only ports that are in the old and the new tree.

        Each changed switch also gets a barrier. When all barriers are answered, the rest of the new tree is
        installed. Before that moment, switches use only ports of the old tree. After that moment, they use
        only ports of the new tree. The two trees are never mixed, so there is never a loop.
        """
        effects: list[Effect] = []
        for dpid, keep in wanted.items():
            old = self.installed[dpid].get(forwarding.FLOOD_KEY)
            if old is None:
                continue
            common = tuple(p for p in old.outputs if p in keep[forwarding.FLOOD_KEY].outputs)
            if common == old.outputs:
                continue
            rule = Rule(*forwarding.FLOOD_KEY, outputs=common)
            self.installed[dpid][rule.key] = rule
            self._barriers += 1
            self._waiting[dpid] = (self._barriers, now_ns + self.params.barrier_ns)
            effects += [Install(dpid, rule), Barrier(dpid, self._barriers)]
        return effects

    def _link_notes(self) -> list[Note]:
        links = set(self.topology.links())
        changes = [("link-up", link) for link in sorted(links - self._links, key=str)]
        changes += [("link-down", link) for link in sorted(self._links - links, key=str)]
        self._links = links
        return [
            Note(
                kind,
                f"link {link.a[0]:016x} port {link.a[1]} - {link.b[0]:016x} port {link.b[1]} is {kind[5:]}",
                {"a": link.a, "b": link.b},
            )
            for kind, link in changes
        ]
