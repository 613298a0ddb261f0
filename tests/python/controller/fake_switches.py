"""Simulated switches, which forward packets by their flow entries and answer like OpenFlow switches."""

from __future__ import annotations

from collections import deque

from narrows.controller.domain import Domain, Params
from narrows.controller.messages import (
    Barrier,
    BarrierDone,
    FrameSeen,
    Install,
    LldpSeen,
    PortChanged,
    PortDesc,
    Remove,
    SendLldp,
    SwitchDown,
    SwitchUp,
)
from narrows.units import NANOS_PER_SEC as SECOND

BROADCAST = "ff:ff:ff:ff:ff:ff"


def mac_of(value, mask="ff:ff:ff:ff:ff:ff"):
    return int(value.replace(":", ""), 16) & int(mask.replace(":", ""), 16)


def matches(match, in_port, src, dst, eth_type):
    wanted = match.eth_dst
    if wanted is not None:
        mask = match.eth_dst_mask or "ff:ff:ff:ff:ff:ff"
        if mac_of(dst, mask) != mac_of(wanted, mask):
            return False
    pairs = ((match.in_port, in_port), (match.eth_src, src), (match.eth_type, eth_type))
    return all(want is None or want == have for want, have in pairs)


def pipeline(rules, in_port, src, dst, eth_type=0x0800):
    """The output ports of a packet, and whether the controller also gets it (OpenFlow 1.3.5, section 5.1)."""
    table, outputs, copied = 0, set(), False
    while table is not None:
        hits = [
            r for r in rules.values() if r.table == table and matches(r.match, in_port, src, dst, eth_type)
        ]
        if not hits:
            break  # table miss: dropped
        best = max(hits, key=lambda rule: rule.priority)
        assert sum(rule.priority == best.priority for rule in hits) == 1, (
            "two entries of equal priority match"
        )
        outputs |= set(best.outputs)
        copied |= best.to_controller
        table = best.goto
    return outputs - {in_port}, copied


class Network:
    """Switches, cables and hosts, connected to a controller's domain.

    Args:
        cables: pairs of ends (switch, port) between switches.
        hosts: for each name of a host (a MAC address), the host's end (switch, port).
    """

    def __init__(self, cables, hosts, params=None, shuffle=None):
        self.now = SECOND
        self.params = params or Params(hold_ns=0)
        self.cables = {frozenset(cable) for cable in cables}
        self.cut = set()
        self.hosts = dict(hosts)
        self.rules = {}
        self.notes = []
        self.in_flight = deque()  # flow-mods in flight; used only if `lazy`
        self.lazy = False
        self.shuffle = shuffle
        self.connected = set()
        self.domain = Domain(self.now, self.params)
        ends = {end for cable in self.cables for end in cable} | set(self.hosts.values())
        self.switches = {dpid: sorted(p for d, p in ends if d == dpid) for dpid in {d for d, _ in ends}}
        for dpid in self.switches:
            self.rules[dpid] = {}

    def peer(self, end):
        for cable in self.cables - self.cut:
            if end in cable:
                (other,) = cable - {end}
                return other
        return None

    def desc(self, end):
        up = end in self.hosts.values() or self.peer(end) is not None
        return PortDesc(end[1], f"s{end[0]}-{end[1]}", f"02:00:00:00:{end[0]:02x}:{end[1]:02x}", up, 0)

    def connect(self, dpid):
        self.connected.add(dpid)
        ports = tuple(self.desc((dpid, port)) for port in self.switches[dpid])
        self.event(SwitchUp(dpid, ports, tuple(self.rules[dpid].values())))

    def disconnect(self, dpid):
        self.connected.discard(dpid)
        self.event(SwitchDown(dpid))

    def toggle(self, cable, up):
        (self.cut.discard if up else self.cut.add)(frozenset(cable))
        for end in cable:
            if end[0] in self.connected:
                self.event(PortChanged(end[0], self.desc(end)))

    def new_controller(self):
        """Replaces the controller. The switches keep their entries."""
        connected, self.connected = sorted(self.connected), set()
        self.domain = Domain(self.now, self.params)
        return connected

    def event(self, event):
        self.perform(self.domain.handle(self.now, event))

    def run(self, seconds):
        until = self.now + int(seconds * SECOND)
        while (at := self.domain.next_timer_ns()) <= until:
            self.now = max(self.now, at)
            self.perform(self.domain.tick(self.now))
        self.now = until

    def perform(self, effects):
        for effect in effects:
            match effect:
                case Install() | Remove() | Barrier() if self.lazy:
                    self.in_flight.append(effect)
                case Install() | Remove() | Barrier():
                    self.apply(effect)
                case SendLldp(dpid, port):
                    to = self.peer((dpid, port))
                    if dpid in self.connected and to is not None and to[0] in self.connected:
                        # A switch sends an LLDP frame to the controller only if it has a flow entry for LLDP.
                        _, copied = pipeline(
                            self.rules[to[0]], to[1], "02:00:00:00:00:00", "01:80:c2:00:00:0e", 0x88CC
                        )
                        if copied:
                            self.event(LldpSeen(*to, dpid, port))
                case _:
                    self.notes.append(effect)

    def apply(self, effect):
        if effect.dpid not in self.connected:
            return
        rules = self.rules[effect.dpid]
        match effect:
            case Install(_, rule):
                rules[rule.key] = rule
            case Remove(_, rule):
                assert rules.pop(rule.key, None) is not None, "the removed entry does not exist"
            case Barrier(dpid, number):
                self.event(BarrierDone(dpid, number))

    def work_off(self, random, each):
        """Delivers the queued messages, in order for each switch. Calls `each` after each message."""
        while self.in_flight:
            dpid = random.choice(sorted({effect.dpid for effect in self.in_flight}))
            effect = next(effect for effect in self.in_flight if effect.dpid == dpid)
            self.in_flight.remove(effect)
            self.apply(effect)
            each()

    def send(self, src, dst):
        """Sends a frame. Returns its receivers and the number of switches to `dst`. Fails on a loop."""
        start = self.hosts[src]
        queue, seen, received, hops = deque([(start, 1)]), set(), [], None
        owner = {end: name for name, end in self.hosts.items()}
        while queue:
            (dpid, port), crossed = queue.popleft()
            assert (dpid, port) not in seen, f"loop at {dpid}:{port}"
            seen.add((dpid, port))
            outputs, copied = pipeline(self.rules[dpid], port, src, dst)
            if copied and dpid in self.connected:
                self.event(FrameSeen(dpid, port, src))
            for out in sorted(outputs):
                if (dpid, out) in owner:
                    received.append(owner[(dpid, out)])
                    hops = crossed if owner[(dpid, out)] == dst else hops
                elif (to := self.peer((dpid, out))) is not None:
                    queue.append((to, crossed + 1))
        return received, hops
