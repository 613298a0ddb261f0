"""Speaks OpenFlow 1.3 by means of os-ken.

The module only converts messages to events, and effects to messages.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import queue
import threading
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ether_types, ethernet, vlan
from os_ken.lib.packet import lldp as lldp_packet
from os_ken.ofproto import ofproto_v1_3

from narrows.controller import lldp
from narrows.controller.limits import Warnings
from narrows.controller.messages import (
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
    Match,
    PortChanged,
    PortDesc,
    PortGone,
    Remove,
    Rule,
    RuleGone,
    SendLldp,
    SwitchDown,
    SwitchUp,
)
from narrows.controller.pair import Pair
from narrows.controller.standby import GENERATIONS
from narrows.units import NANOS_PER_SEC as SECOND

LOG = logging.getLogger("narrows.controller.openflow")
WARNINGS = Warnings(LOG)

COOKIE = 0x6E61_7272_0000_0000
COOKIE_MASK = 0xFFFF_FFFF_0000_0000
"""Cookie of the controller's flow entries. The controller does not change entries with other cookies."""
_ARP_BYTES, _IPV4_BYTES, _IPV6_BYTES = 28, 20, 40
"""Lengths of the headers that contain a sender's address."""
_ICMPV6 = 58
"""IANA's protocol number of ICMPv6."""
FRAME_BYTES = 256
"""Number of bytes of a frame that are sent to the controller. This is enough for the headers and for
LLDP."""
WAITING_MAX = 20_000
"""Maximum number of messages that are queued for a slow switch. If more would be queued, the connection is
closed. When the switch reconnects, its entries are compared with the desired entries again."""
PORTS_MAX, RULES_MAX = 1024, 200_000
"""Maximum numbers of ports and of this controller's entries that a switch may describe."""


def handles(event_class: Any, states: Any) -> Any:
    """Registers a handler. An exception in the handler ends the connection.

    Without this wrapper, an exception would end the thread that handles the events of all switches. The
    reason is that os-ken's `_event_loop` raises `TaskExit` again, and os-ken's native hub defines `TaskExit`
    as `Exception`.
    """

    def register(method: Callable[[Any, Any], None]) -> Any:
        @functools.wraps(method)
        def guarded(self: Any, event: Any) -> None:
            try:
                method(self, event)
            except Exception as error:
                datapath = event.datapath if hasattr(event, "datapath") else event.msg.datapath
                WARNINGS.warn("switch %016x: %s: disconnected", datapath.id or 0, error or repr(error))
                datapath.close()

        return set_ev_cls(event_class, states)(guarded)

    return register


class Switch:
    """A connected switch.

    Each switch has its own sending thread, so a switch that does not read its messages does not delay other
    switches.
    """

    def __init__(self, datapath: Any) -> None:
        self.datapath = datapath
        self.dpid: int = datapath.id
        self.ports: dict[int, PortDesc] = {}
        self.rules: list[Rule] = []
        self.is_master = False
        """Whether this controller is the switch's master. Not used without a standby."""
        self.pulse_is_due = False
        """Whether `pulse` has asked for the role, and the switch has not answered yet. After the answer, this
        controller raises the generation if it is the switch's master."""
        self.up = False
        """Whether the switch's ports and entries have been read and passed to the domain."""
        self.barrier: tuple[int, int] | None = None
        """Transaction id of the unanswered barrier, and the barrier's number in the domain (None: no
        barrier)."""
        self._waiting: queue.Queue[Any] = queue.Queue(WAITING_MAX)
        threading.Thread(target=self._write, name=f"switch-{self.dpid:x}", daemon=True).start()

    def send(self, message: Any) -> None:
        """Queues a message. Never blocks."""
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            LOG.warning("switch %016x is too slow: disconnected", self.dpid)
            self.datapath.close()

    def describe(self) -> None:
        """Requests the switch's ports. The flow entries are requested when the ports have arrived."""
        self.send(self.datapath.ofproto_parser.OFPPortDescStatsRequest(self.datapath, 0))

    def ask_role(self, role: int | None = None, generation: int = 0) -> None:
        """Requests a role (None: no change, to learn the current role)."""
        if role is None:
            role = self.datapath.ofproto.OFPCR_ROLE_NOCHANGE
        self.send(self.datapath.ofproto_parser.OFPRoleRequest(self.datapath, role, generation))

    def check_size(self) -> None:
        """Refuses a switch that describes too many ports or entries.

        Raises:
            ValueError: there are more than `PORTS_MAX` ports or `RULES_MAX` entries.
        """
        if len(self.ports) > PORTS_MAX or len(self.rules) > RULES_MAX:
            raise ValueError(f"more than {PORTS_MAX} ports or {RULES_MAX} entries")

    def stop(self) -> None:
        """Ends the thread."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)

    def _write(self) -> None:
        while (message := self._waiting.get()) is not None:
            if not self.datapath.send_msg(message):
                return


class OpenFlow(OSKenApp):
    """The os-ken application.

    A process can have only one such application. Set `on_event` before the application starts, because
    os-ken's threads call it.
    """

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    on_event: Callable[[Event], None] = staticmethod(lambda _: None)
    pair: Pair | None = None
    """The pair of this controller and its standby (None: no standby). With a standby, a controller asks for
    a switch's ports only if it is the switch's master."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lock = threading.Lock()
        self._switches: dict[int, Switch] = {}

    # Effects

    def perform(self, effect: Effect) -> None:
        """Carry out an effect on a switch, unless the switch has disconnected."""
        if not isinstance(effect, Install | Remove | Barrier | SendLldp | AskCounters):
            return
        with self._lock:
            switch = self._switches.get(effect.dpid)
        if switch is None:
            return
        of, make = switch.datapath.ofproto, switch.datapath.ofproto_parser
        match effect:
            case Install(_, rule):
                switch.send(flow_mod(switch.datapath, rule, of.OFPFC_ADD))
            case Remove(_, rule):
                switch.send(flow_mod(switch.datapath, rule, of.OFPFC_DELETE_STRICT))
            case Barrier(_, number):
                request = make.OFPBarrierRequest(switch.datapath)
                switch.datapath.set_xid(request)
                switch.barrier = request.xid, number
                switch.send(request)
            case AskCounters():
                switch.send(make.OFPPortStatsRequest(switch.datapath, 0, of.OFPP_ANY))
            case SendLldp(dpid, number):
                port = switch.ports.get(number)
                if port is not None:
                    switch.send(
                        make.OFPPacketOut(
                            datapath=switch.datapath,
                            buffer_id=of.OFP_NO_BUFFER,
                            in_port=of.OFPP_CONTROLLER,
                            actions=[make.OFPActionOutput(number)],
                            data=lldp.frame((dpid, number), port.mac),
                        )
                    )

    def pulse(self) -> None:
        """Asks each switch which role this controller has.

        After each answer, the active controller raises the generation at the switch, to show that it is
        alive.
        """
        with self._lock:
            switches = list(self._switches.values())
        for switch in switches:
            switch.pulse_is_due = True
            switch.ask_role()

    # Events

    @handles(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state(self, event: Any) -> None:
        datapath = event.datapath
        if datapath.id is None:
            return
        if event.state == MAIN_DISPATCHER:
            switch = Switch(datapath)
            with self._lock:
                before = self._switches.get(datapath.id)
                self._switches[datapath.id] = switch
            if before is not None:
                before.stop()
                before.datapath.close()
            if self.pair is None:
                switch.describe()
            else:
                switch.ask_role()
            return
        with self._lock:
            gone = self._switches.get(datapath.id)
            if gone is None or gone.datapath is not datapath:
                return  # a newer connection of this switch has replaced the one that ended
            del self._switches[datapath.id]
        gone.stop()
        if gone.up:
            self.on_event(SwitchDown(datapath.id))

    @handles(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def _role(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is None or self.pair is None:
            return
        of, message = switch.datapath.ofproto, event.msg
        if message.role == of.OFPCR_ROLE_MASTER:
            if not switch.is_master:
                switch.is_master = True
                switch.describe()
            elif switch.pulse_is_due and self.pair.is_active:
                # Only the master raises the generation. If every active controller raised it, two active
                # controllers would take turns as master.
                switch.pulse_is_due = False
                switch.ask_role(of.OFPCR_ROLE_MASTER, self.pair.next_generation())
            return
        self.pair.on_switch(message.generation_id, demoted=switch.is_master)
        if self.pair.is_active:
            switch.ask_role(of.OFPCR_ROLE_MASTER, self.pair.next_generation())
        elif message.role != of.OFPCR_ROLE_SLAVE:
            known = message.generation_id % (GENERATIONS - 1)  # the largest id means: no generation
            switch.ask_role(of.OFPCR_ROLE_SLAVE, known)

    @handles(ofp_event.EventOFPPortDescStatsReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def _ports(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is None or switch.up:
            return
        of, make = switch.datapath.ofproto, switch.datapath.ofproto_parser
        for port in event.msg.body:
            if port.port_no <= of.OFPP_MAX:
                switch.ports[port.port_no] = port_desc(of, port)
        switch.check_size()
        if event.msg.flags & of.OFPMPF_REPLY_MORE:
            return
        any_port, any_group = of.OFPP_ANY, of.OFPG_ANY
        switch.send(
            make.OFPFlowStatsRequest(
                switch.datapath, 0, of.OFPTT_ALL, any_port, any_group, COOKIE, COOKIE_MASK, make.OFPMatch()
            )
        )

    @handles(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def _rules(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is None or switch.up:
            return
        of = switch.datapath.ofproto
        switch.rules += [rule_of(of, entry) for entry in event.msg.body]
        switch.check_size()
        if event.msg.flags & of.OFPMPF_REPLY_MORE:
            return
        switch.up = True
        self.on_event(SwitchUp(switch.dpid, tuple(switch.ports.values()), tuple(switch.rules)))

    @handles(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is None:
            return
        of, port = switch.datapath.ofproto, event.msg.desc
        if port.port_no > of.OFPP_MAX:
            return
        if event.msg.reason == of.OFPPR_DELETE:
            switch.ports.pop(port.port_no, None)
            change: Event = PortGone(switch.dpid, port.port_no)
        else:
            switch.ports[port.port_no] = port_desc(of, port)
            switch.check_size()
            change = PortChanged(switch.dpid, switch.ports[port.port_no])
        if switch.up:
            self.on_event(change)

    @handles(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _packet(self, event: Any) -> None:
        switch = self._switch(event)
        port = event.msg.match.get("in_port")
        if switch is None or not switch.up or not isinstance(port, int):
            return
        seen = read_frame(switch.dpid, port, event.msg.data)
        if seen is not None:
            self.on_event(seen)

    @handles(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def _removed(self, event: Any) -> None:
        switch, message = self._switch(event), event.msg
        if switch is None or not switch.up or message.cookie & COOKIE_MASK != COOKIE:
            return
        of = switch.datapath.ofproto
        if message.reason in (of.OFPRR_IDLE_TIMEOUT, of.OFPRR_HARD_TIMEOUT):
            gone = Rule(message.table_id, message.priority, match_of(message.match))
            self.on_event(RuleGone(switch.dpid, gone))

    @handles(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def _counters(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is None:
            return
        counters = {
            entry.port_no: Counters(
                entry.rx_packets,
                entry.tx_packets,
                entry.rx_bytes,
                entry.tx_bytes,
                entry.rx_dropped,
                entry.tx_dropped,
                entry.duration_sec * SECOND + entry.duration_nsec,
            )
            for entry in event.msg.body
            if entry.port_no <= switch.datapath.ofproto.OFPP_MAX
        }
        self.on_event(CountersRead(switch.dpid, counters))

    @handles(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def _barrier(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is None or switch.barrier is None or switch.barrier[0] != event.msg.xid:
            return
        number, switch.barrier = switch.barrier[1], None
        self.on_event(BarrierDone(switch.dpid, number))

    def _switch(self, event: Any) -> Switch | None:
        with self._lock:
            switch = self._switches.get(event.msg.datapath.id)
        return switch if switch is not None and switch.datapath is event.msg.datapath else None


def flow_mod(datapath: Any, rule: Rule, command: int) -> Any:
    """The message that adds or removes an entry."""
    of, make = datapath.ofproto, datapath.ofproto_parser
    fields: dict[str, Any] = {}
    match = rule.match
    for name in ("in_port", "eth_src", "eth_type"):
        if getattr(match, name) is not None:
            fields[name] = getattr(match, name)
    if match.eth_dst is not None:
        fields["eth_dst"] = (
            match.eth_dst if match.eth_dst_mask is None else (match.eth_dst, match.eth_dst_mask)
        )
    if match.icmp6_type is not None:
        fields |= {"ip_proto": _ICMPV6, "icmpv6_type": match.icmp6_type}
    actions = [make.OFPActionOutput(number) for number in rule.outputs]
    if rule.to_controller:
        actions.append(make.OFPActionOutput(of.OFPP_CONTROLLER, FRAME_BYTES))
    instructions = [make.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, actions)] if actions else []
    if rule.goto is not None:
        instructions.append(make.OFPInstructionGotoTable(rule.goto))
    return make.OFPFlowMod(
        datapath=datapath,
        cookie=COOKIE,
        table_id=rule.table,
        command=command,
        idle_timeout=rule.idle_s,
        priority=rule.priority,
        buffer_id=of.OFP_NO_BUFFER,
        out_port=of.OFPP_ANY,
        out_group=of.OFPG_ANY,
        flags=of.OFPFF_SEND_FLOW_REM if rule.idle_s else 0,
        match=make.OFPMatch(**fields),
        instructions=instructions,
    )


def rule_of(of: Any, entry: Any) -> Rule:
    """Converts an entry from the form in which a switch reports it."""
    outputs: list[int] = []
    to_controller, goto = False, None
    for instruction in entry.instructions:
        if instruction.type == of.OFPIT_GOTO_TABLE:
            goto = instruction.table_id
        for action in getattr(instruction, "actions", []):
            if getattr(action, "port", None) == of.OFPP_CONTROLLER:
                to_controller = True
            elif hasattr(action, "port"):
                outputs.append(action.port)
    return Rule(
        entry.table_id,
        entry.priority,
        match_of(entry.match),
        tuple(sorted(outputs)),
        to_controller,
        goto,
        entry.idle_timeout,
    )


def match_of(match: Any) -> Match:
    """Converts a match from the form in which a switch reports it."""
    eth_dst, mask = match.get("eth_dst"), None
    if isinstance(eth_dst, tuple):
        eth_dst, mask = eth_dst
    return Match(
        match.get("in_port"),
        match.get("eth_src"),
        eth_dst,
        mask,
        match.get("eth_type"),
        match.get("icmpv6_type"),
    )


def port_desc(of: Any, port: Any) -> PortDesc:
    """Converts a port from the form in which a switch reports it. OpenFlow's speeds are in kbit/s."""
    up = not port.state & of.OFPPS_LINK_DOWN and not port.config & of.OFPPC_PORT_DOWN
    name = port.name.decode("utf-8", "replace") if isinstance(port.name, bytes) else str(port.name)
    # The name is written to the log, where a name with line breaks could forge lines.
    name = "".join(char if char.isprintable() else "?" for char in name)
    return PortDesc(port.port_no, name, port.hw_addr.lower(), bool(up), 1000 * port.curr_speed)


def read_frame(dpid: int, port: int, data: bytes) -> LldpSeen | FrameSeen | None:
    """The link that an LLDP frame shows, or the host and the address in another frame.

    Any host can have sent the frame, and the frame may be truncated.
    """
    try:
        # Parse only the headers that are needed. os-ken's `Packet` parses every protocol that a frame claims
        # to contain, and some of os-ken's parsers do not terminate on hostile input.
        ether, _, rest = ethernet.ethernet.parser(data)
        kind = ether.ethertype
        if kind == ether_types.ETH_TYPE_8021Q:
            tag, _, rest = vlan.vlan.parser(rest)
            kind = tag.ethertype
        if kind == lldp.ETHERTYPE:
            source = lldp.origin(lldp_packet.lldp.parser(rest)[0].tlvs)
            return None if source is None else LldpSeen(dpid, port, *source)
        return FrameSeen(dpid, port, ether.src.lower(), _source(kind, rest))
    except Exception as error:
        LOG.debug("cannot parse a frame: %s", error)
        return None


def _source(kind: int, rest: bytes) -> str | None:
    """The sender's IPv4 or IPv6 address, if the packet has one."""
    address: IPv4Address | IPv6Address
    match kind:
        case ether_types.ETH_TYPE_ARP if len(rest) >= _ARP_BYTES:
            address = IPv4Address(rest[14:18])  # RFC 826, for IPv4 over Ethernet
        case ether_types.ETH_TYPE_IP if len(rest) >= _IPV4_BYTES:
            address = IPv4Address(rest[12:16])
        case ether_types.ETH_TYPE_IPV6 if len(rest) >= _IPV6_BYTES:
            address = IPv6Address(rest[8:24])
        case _:
            return None
    return None if address.is_unspecified else str(address)
