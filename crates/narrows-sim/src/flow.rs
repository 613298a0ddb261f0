//! A flow in a run: the sender, the receiver, and the data for the flow's row in the results.

use narrows_control::rate::kit::features::Parts;
use narrows_control::rate::{FlowIdentity, Host, Proto};
use narrows_control::units::{Bytes, Rate, Span, Time};

use crate::error::Error;
use crate::net::{BothWays, Paths, Service, step_at};
use crate::packet::{HEADER_BYTES, Packet, Template, UDP_HEADER_BYTES, flag};
use crate::plan::{FlowPlan, Plan, Protocol, TransportPlan};
use crate::tcp::{Io, Receiver, Segment, Sender};
use crate::transport::StackFlow;

/// Identifies a flow to rate controllers. Indices take the place of addresses and ports.
///
/// When a flow has ended, a later flow may use its slot. If both flows come from the same flow plan, they have the same
/// identity. On a real network, identities also repeat when a host reuses a port.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowIndex {
    /// Slot in the table of flows.
    pub(crate) slot: u32,
    /// Index of the flow's [`FlowPlan`] in the plan.
    pub(crate) plan: u32,
    from: Node,
    to: Node,
    service: u32,
    proto: Proto,
}

/// The lowest service number of flow plans that name no service. Flow plan number `i` gets this number plus `i`. If a
/// flow plan names a service, the service is a port number, which is always lower.
const FIRST_UNNUMBERED_SERVICE: u32 = u16::MAX as u32 + 1;

/// Assumed L3 bytes of a full datagram of a [`Stack`](TransportPlan::Stack), for [`EmptyPath`].
const STACK_PACKET_BYTES: u64 = 1480;

/// Assumed L3 bytes of a full packet of a [`Program`](TransportPlan::Program), for [`EmptyPath`]. This is Ethernet's
/// MTU.
const PROGRAM_PACKET_BYTES: u64 = 1500;

/// The index of a node in the plan.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node(u32);

impl FlowIndex {
    pub(crate) fn new(slot: u32, index: u32, plan: &FlowPlan) -> Self {
        let proto = match plan.transport {
            TransportPlan::Tcp { .. } => Proto::Tcp,
            TransportPlan::Udp { .. } | TransportPlan::Stack(_) => Proto::Udp,
            TransportPlan::Program(ref program) => match program.protocol {
                Protocol::Tcp => Proto::Tcp,
                Protocol::Udp => Proto::Udp,
            },
        };
        let service = plan.service.map_or(FIRST_UNNUMBERED_SERVICE.saturating_add(index), u32::from);
        FlowIndex { slot, plan: index, from: Node(plan.from), to: Node(plan.to), service, proto }
    }

    /// Returns an identity for late packets, which arrive after their flow has ended. All late packets share this
    /// identity.
    pub(crate) fn of_late_packets(proto: Proto) -> Self {
        FlowIndex { slot: u32::MAX, plan: u32::MAX, from: Node(0), to: Node(0), service: 0, proto }
    }
}

impl FlowIdentity for FlowIndex {
    type Host = Node;

    fn source(&self) -> Node {
        self.from
    }

    fn destination(&self) -> Node {
        self.to
    }

    fn proto(&self) -> Proto {
        self.proto
    }

    /// Returns the service number of the flow. A flow plan that names no service has a number that no other plan has.
    /// Late packets have number 0, which stands for no service.
    fn service(&self) -> u32 {
        self.service
    }
}

impl Host for Node {
    /// Returns the IP network (prefix) that contains the node, represented by the node with the lowest address of the
    /// prefix. Nodes have consecutive addresses, so a /24 contains 256 nodes.
    fn network(self, ipv4: u8, _ipv6: u8) -> Node {
        Node(self.0 & u32::MAX.checked_shl(32 - u32::from(ipv4.min(32))).unwrap_or(0))
    }

    fn parts(self) -> Parts {
        Parts { high: self.0 >> 8, low: self.0 & 0xff, version: 4 }
    }
}

/// The transport of a flow, with both ends.
pub(crate) enum Body {
    Tcp(Box<Tcp>),
    Udp(Box<Udp>),
    Stack(Box<StackFlow>),
}

/// A TCP connection.
pub(crate) struct Tcp {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) delays: Delays,
}

/// One-way delays of the data segments that arrive in the measurement interval (MET-13).
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// Sum in ns; 64 bits are enough for 584 years.
    sum: u64,
    count: u32,
}

impl Delays {
    /// Adds the delay of a segment that has arrived at the receiver. Retransmitted segments are left out, because the
    /// scoreboard stores only the time of a segment's last transmission.
    #[inline]
    fn add_segment(&mut self, now: Time, segment: Option<&Segment>) {
        if let Some(segment) = segment.filter(|segment| !segment.was_retransmitted()) {
            self.add(now.since(segment.sent));
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, delay: Span) {
        self.sum = self.sum.saturating_add(delay.as_nanos());
        self.count = self.count.saturating_add(1);
    }

    /// Returns the mean in seconds; `None` if no segment was counted.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / f64::from(self.count) / 1e9)
    }
}

/// A constant-rate stream of datagrams.
pub(crate) struct Udp {
    pub(crate) template: Template,
    /// L3 bytes of a datagram.
    pub(crate) size: u16,
    pub(crate) rate: Rate,
    pub(crate) next: Time,
    pub(crate) stop: Time,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) delivered: u64,
}

/// A slot of the flow table.
pub(crate) struct Flow {
    pub(crate) body: Body,
    pub(crate) meta: Meta,
    /// Times of the pending Timer and Send events; [`Time::NEVER`] if no such event is pending.
    pub(crate) timer_at: Time,
    pub(crate) send_at: Time,
}

/// Properties of a flow's path, if no other traffic uses the path.
#[derive(Copy, Clone, Debug)]
pub struct EmptyPath {
    /// RTT of a full segment and its ACK. The RTT includes their transmission times (MET-10).
    pub rtt: Span,
    /// The sum of the propagation delays in both directions.
    pub propagation: Span,
    /// Rate of the slowest link from the sender to the receiver.
    pub bottleneck: Rate,
}

impl EmptyPath {
    /// Computes the properties from the links of both directions. For each link, `link` returns the mean rate during
    /// the flow and the delay when the flow starts.
    pub(crate) fn along(
        plan: &FlowPlan,
        forward: &[u32],
        reverse: &[u32],
        link: impl Fn(u32) -> (Rate, Span),
    ) -> Self {
        let data = match &plan.transport {
            TransportPlan::Tcp { mss, .. } => *mss as u64 + HEADER_BYTES as u64,
            TransportPlan::Udp { packet, .. } => *packet as u64,
            TransportPlan::Stack(_) => STACK_PACKET_BYTES,
            TransportPlan::Program(_) => PROGRAM_PACKET_BYTES,
        };
        let mut path = EmptyPath { rtt: Span::ZERO, propagation: Span::ZERO, bottleneck: Rate::MAX };
        for (is_forward, links, bytes) in [(true, forward, data), (false, reverse, HEADER_BYTES as u64)] {
            for &l in links {
                let (rate, delay) = link(l);
                path.propagation += delay;
                path.rtt += delay + rate.time_for(Bytes::new(bytes));
                if is_forward {
                    path.bottleneck = path.bottleneck.min(rate);
                }
            }
        }
        path
    }

    /// Returns the empty path of each flow of a plan. The plan must have passed [`plan::check`](crate::plan::check).
    /// The function ignores the `shape` of rate controllers.
    ///
    /// # Errors
    /// Returns an error if a flow has no path.
    pub fn of_flows(plan: &Plan) -> Result<Vec<EmptyPath>, Error> {
        let mut paths = Paths::new(plan);
        let services: Vec<Service> = plan.links.iter().map(|l| Service::new(&l.rate)).collect();
        let end = Time::ZERO + plan.duration;
        plan.flows
            .iter()
            .map(|flow| {
                let BothWays { forward, reverse } = paths.both_ways(plan, flow)?;
                let link = |l: u32| {
                    let delay = step_at(&plan.links[l as usize].delay, flow.start);
                    (services[l as usize].mean_rate(flow.start, end), delay)
                };
                let (forward, reverse) = (paths.links_of(forward), paths.links_of(reverse));
                Ok(EmptyPath::along(flow, forward, reverse, link))
            })
            .collect()
    }
}

/// The data that the flow's row in the results needs.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    /// Number in the results.
    pub(crate) id: u32,
    /// Index of the flow's [`FlowPlan`]. `member` is the flow's number among the flows of this plan.
    pub(crate) plan: u32,
    pub(crate) member: u32,
    pub(crate) key: FlowIndex,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    pub(crate) size: u64,
    pub(crate) empty: EmptyPath,
    /// Whether the results contain samples and an RTT histogram of the flow. This is false for flows of a Poisson
    /// source.
    pub(crate) is_sampled: bool,
    /// Application bytes that had been delivered in order when the flow's measurement interval started and ended.
    pub(crate) delivered_at_start: u64,
    pub(crate) delivered_at_stop: Option<u64>,
    /// L3 bytes that both ends sent. `signal_bytes` is the part of these bytes that carries headers and options for
    /// rate control (MET-82).
    pub(crate) sent_bytes: u64,
    pub(crate) signal_bytes: u64,
    /// Values of the counters at the previous sample.
    pub(crate) last: LastSample,
}

/// Values of the counters at the previous sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastSample {
    pub(crate) delivered: u64,
    pub(crate) sent_bytes: u64,
}

impl Flow {
    /// Returns the position in the table of paths at which the path of the flow's data starts.
    pub(crate) fn forward(&self) -> u32 {
        match &self.body {
            Body::Tcp(tcp) => tcp.sender.config.template.hop,
            Body::Udp(udp) => udp.template.hop,
            Body::Stack(stack) => stack.forward.hop,
        }
    }

    /// Returns the position in the table of paths at which the path of the flow's ACKs starts. UDP has no ACKs.
    pub(crate) fn reverse(&self) -> Option<u32> {
        match &self.body {
            Body::Tcp(tcp) => Some(tcp.receiver.template().hop),
            Body::Udp(_) => None,
            Body::Stack(stack) => Some(stack.reverse.hop),
        }
    }

    /// Returns the application bytes that have been delivered in order so far (UDP: all payload).
    pub(crate) fn delivered(&self) -> u64 {
        match &self.body {
            Body::Tcp(tcp) => tcp.receiver.delivered,
            Body::Udp(udp) => udp.delivered,
            Body::Stack(stack) => stack.transport().delivered().get(),
        }
    }

    /// Returns the times of the flow's next Timer event and next Send event. A time is [`Time::NEVER`] if there is no
    /// such event.
    #[inline]
    pub(crate) fn wakes(&self, now: Time) -> (Time, Time) {
        match &self.body {
            Body::Tcp(tcp) => (tcp.sender.deadline().min(tcp.receiver.deadline()), tcp.sender.send_at(now)),
            Body::Udp(udp) => (Time::NEVER, udp.next),
            Body::Stack(stack) => (stack.next_timer(), Time::NEVER),
        }
    }

    /// Handles a packet that has reached one of the flow's ends.
    #[inline]
    pub(crate) fn on_packet(&mut self, io: &mut Io<'_>, p: &Packet) {
        match &mut self.body {
            Body::Tcp(tcp) => {
                if p.is(flag::REVERSE) {
                    tcp.sender.on_packet(io, p);
                } else {
                    if p.payload > 0 && tcp.sender.rtts.has_begun(io.now) {
                        tcp.delays.add_segment(io.now, tcp.sender.flight.board.get(p.seq));
                    }
                    tcp.receiver.on_packet(io, p);
                }
            }
            Body::Udp(udp) => {
                udp.received += 1;
                udp.delivered += p.payload as u64;
            }
            Body::Stack(stack) => stack.on_datagram(io, p, Vec::new()),
        }
    }

    /// Handles a datagram with contents that has reached one of the flow's ends.
    pub(crate) fn on_datagram(&mut self, io: &mut Io<'_>, p: &Packet, contents: Vec<u8>) {
        if let Body::Stack(stack) = &mut self.body {
            stack.on_datagram(io, p, contents);
        }
    }

    /// Starts the flow.
    pub(crate) fn start(&mut self, io: &mut Io<'_>) {
        match &mut self.body {
            Body::Tcp(tcp) => tcp.sender.connect(io),
            Body::Udp(udp) => udp.on_send(io),
            Body::Stack(stack) => stack.start(io),
        }
    }

    /// Runs the due timers of both ends.
    pub(crate) fn on_timer(&mut self, io: &mut Io<'_>) {
        match &mut self.body {
            Body::Tcp(tcp) => {
                if tcp.receiver.deadline() <= io.now {
                    tcp.receiver.on_timer(io);
                }
                if tcp.sender.deadline() <= io.now {
                    tcp.sender.on_timer(io);
                }
            }
            Body::Udp(_) => {}
            Body::Stack(stack) => stack.on_timer(io),
        }
    }

    /// Handles a Send event. Runs the congestion controller's timer if it is due. Then sends the packets that the pacer
    /// and the application allow.
    pub(crate) fn on_send(&mut self, io: &mut Io<'_>) {
        match &mut self.body {
            Body::Tcp(tcp) => tcp.sender.on_send(io),
            Body::Udp(udp) => udp.on_send(io),
            Body::Stack(_) => {}
        }
    }

    /// Whether both ends have finished.
    pub(crate) fn is_finished(&self) -> bool {
        match &self.body {
            Body::Tcp(tcp) => {
                let closed = tcp.sender.phase == crate::tcp::Phase::Closed;
                let failed = closed && tcp.sender.completed_at().is_none();
                failed || closed && tcp.receiver.is_closed()
            }
            Body::Udp(udp) => udp.next == Time::NEVER,
            Body::Stack(stack) => stack.is_finished(),
        }
    }
}

impl Udp {
    #[inline(always)]
    fn on_send(&mut self, io: &mut Io<'_>) {
        if io.now < self.next {
            return;
        }
        if io.now >= self.stop {
            self.next = Time::NEVER;
            return;
        }
        let mut p = self.template.packet(self.size);
        p.payload = self.size.saturating_sub(UDP_HEADER_BYTES as u16);
        p.seq = self.sent as u32;
        self.sent += 1;
        io.send(p);
        self.next = io.now + self.rate.time_for(Bytes::new(self.size as u64));
    }
}
