//! BDR for stock hosts and real switches: senders report in TCP options, and the port writes its rate into ACKs.
//!
//! The paper's receiver copies the recommendation from the designated packet into an ACK (BDR-50). Stock receivers do
//! not do this. So the switch writes the rate into the ACKs that it forwards in the reverse direction. Deviations:
//!
//! * All ACKs of a flow carry the present rate. In the paper, only the ACK of the designated packet carries the rate.
//! * A switch without a flow table does not know which senders apply rates. So it writes rates only into ACKs of flows
//!   that have sent a designated packet recently. The times of designated packets are in [`Recent`], an array indexed
//!   by a hash of addresses and ports.
//! * The rate has no lower limit of one packet per RTT (BDR-25), because the port does not know RTTs. Senders pace
//!   their packets, so they can also send at lower rates.

use core::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::{Law, Params};
use crate::feedback::header::Header;
use crate::rate::aggregate::{Aggregated, Counts, Decision, FlowHandle, ReportCounter, Reports, Standing};
use crate::rate::uniform::{Passed, Port, Watch, stamp};
use crate::rate::{
    Action, Admission, FlowEvent, FlowIdentity, Leaf, PacketInfo, PerFlowController, PortCounters, Proto,
    Queueing, Requirements,
};
use crate::units::{Bytes, Rate, Span, Time};

/// Number of cells for the times of designated packets; a power of two.
pub const CELLS: u32 = 1 << 17;
/// Flows whose last designated packet is older than this time get no rate (ours). A flow with data sends designated
/// packets at most two timeouts apart (BDR-27).
pub const FRESH: Span = Span::from_secs(4);

/// The times of designated packets. Flows with the same hash share a cell. So ACKs of a flow without designated packets
/// may carry a rate, which its sender ignores.
#[derive(Clone, Debug, Default)]
struct Recent(Vec<Time>);

impl Recent {
    fn index(key: &impl FlowIdentity) -> usize {
        FxBuildHasher.hash_one(key) as usize % CELLS as usize
    }

    fn note(&mut self, now: Time, key: &impl FlowIdentity) {
        self.0.resize(CELLS as usize, Time::ZERO);
        if let Some(cell) = self.0.get_mut(Self::index(key)) {
            *cell = now;
        }
    }

    fn has(&self, now: Time, key: &impl FlowIdentity) -> bool {
        self.0.get(Self::index(key)).is_some_and(|at| *at > Time::ZERO && now.since(*at) <= FRESH)
    }
}

/// BDR at a port without a flow table.
#[derive(Clone, Debug)]
pub struct Stateless {
    params: Params,
    law: Law,
    watch: Watch,
    recent: Recent,
    /// The time of the last call of [`on_reports`](ReportCounter::on_reports).
    reported: Time,
}

impl Stateless {
    /// Returns a port of BDR with [valid](crate::rate::PortParameters::check) parameters.
    pub fn new(params: Params) -> Self {
        Stateless {
            law: Law::new(params.clone(), Rate::ZERO, Time::ZERO),
            params,
            watch: Watch::default(),
            recent: Recent::default(),
            reported: Time::ZERO,
        }
    }

    /// Returns the first rate of the n-th newcomer from now, for n = `newcomers`.
    fn first_rate(&self, now: Time, newcomers: u64) -> Rate {
        self.law.rate_with(now, newcomers).max(Rate::from_bytes_per_sec(1))
    }

    fn present_rate(&self, now: Time) -> Rate {
        self.law.rate(now).max(Rate::from_bytes_per_sec(1))
    }
}

impl<K: FlowIdentity> PerFlowController<K> for Stateless {
    fn name(&self) -> &'static str {
        "bdr"
    }

    fn requirements(&self) -> Requirements {
        let queueing = Queueing::Classes { queues_udp: false };
        Requirements { queueing, configured_capacity: true, domain: false }
    }

    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.watch.start(now, port, actions);
        self.law = Law::new(self.params.clone(), self.watch.port.capacity, now);
    }

    /// Counts a designated packet (BDR-41), and returns the packet's leaf.
    fn on_data(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) -> Admission {
        self.watch.look(now, port);
        if packet.key.proto() == Proto::Udp {
            return Admission::Queue(Leaf::Udp);
        }
        if let Header::Bdr(header) = &packet.header {
            self.recent.note(now, &packet.key);
            self.law.on_report(now, &header.report, self.watch.port.queued, self.watch.port.limit);
        }
        let rated = packet.header != Header::None && self.recent.has(now, &packet.key);
        Admission::Queue(if rated { Leaf::Elephant } else { Leaf::OtherTcp })
    }

    fn on_reverse(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        _actions: &mut Vec<Action<K>>,
    ) -> Option<Rate> {
        if packet.key.proto() == Proto::Udp || packet.flags.rst || !self.recent.has(now, &packet.key) {
            return None;
        }
        self.watch.pass(now);
        let answers = packet.flags.syn && packet.flags.ack;
        stamp(if answers { self.first_rate(now, 1) } else { self.present_rate(now) }, packet.option)
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        let Passed { own, other, .. } = self.watch.read(now, port, actions);
        let Port { capacity, queued, limit } = self.watch.port;
        self.law.on_bytes(own, other);
        self.law.on_timer(now, capacity, queued, limit);
    }

    fn next_timer(&self) -> Time {
        if self.watch.has_read() { self.law.next() } else { Time::ZERO }
    }

    fn allocation(&self, key: &K) -> Option<Rate> {
        self.recent.has(self.watch.at, key).then(|| self.present_rate(self.watch.at))
    }

    fn into_aggregated(self: Box<Self>) -> Option<Box<dyn Aggregated<K>>> {
        Some(self)
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(self.watch.at, trace);
        trace("link", self.watch.port.capacity.as_f64());
    }
}

impl<K: FlowIdentity> Aggregated<K> for Stateless {
    fn handle(&self, _key: &K) -> Option<FlowHandle> {
        None
    }

    fn on_event(
        &mut self,
        now: Time,
        _event: &FlowEvent<K>,
        port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) {
        self.watch.look(now, port);
    }

    fn on_udp(&mut self, now: Time, _bytes: Bytes, port: &PortCounters, _actions: &mut Vec<Action<K>>) {
        self.watch.look(now, port);
    }

    fn on_counts(
        &mut self,
        _now: Time,
        _flow: FlowHandle,
        _counts: &Counts,
        _actions: &mut Vec<Action<K>>,
    ) -> Standing {
        Standing::Gone
    }

    fn decide(&mut self, _now: Time, _flow: FlowHandle) -> Option<Decision> {
        None
    }

    fn version(&self) -> u64 {
        0
    }

    fn advertised(&self, _now: Time, _key: &K) -> Option<(Rate, Time)> {
        None
    }

    fn grant(&self, _key: Option<&K>, newcomers: u64) -> Option<Rate> {
        Some(self.first_rate(self.watch.at, newcomers))
    }

    fn report_counter(&mut self) -> Option<&mut dyn ReportCounter> {
        Some(self)
    }
}

impl ReportCounter for Stateless {
    fn report_max(&self) -> Span {
        self.params.t_rep_max
    }

    fn on_reports(&mut self, now: Time, reports: &Reports, port: &PortCounters) {
        self.watch.look(now, port);
        self.watch.set_between(now.since(self.reported));
        self.reported = now;
        self.law.on_reports(now, reports, self.watch.port.queued, self.watch.port.limit);
    }

    /// Between reports, the estimated number of flows decays, and the law's rate rises. So this function returns the
    /// law's rate for the middle of the time until the next reports. With reports every 10 ms and tau = 200 ms, the
    /// law's present rate would be 2.5 % too low on average.
    fn common_rate(&self, now: Time) -> Rate {
        self.present_rate(self.watch.ahead(now))
    }
}
