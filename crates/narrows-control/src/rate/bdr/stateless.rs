//! BDR for stock hosts and real switches: senders report in TCP options, and the port writes its rate into ACKs.
//!
//! The paper's receiver copies the recommendation from the designated packet into an ACK (BDR-50). Stock receivers do not
//! do this, so the switch writes the rate into the ACKs that pass it in the other direction. Deviations:
//!
//! * All ACKs carry the present rate, not only the ACK of the designated packet.
//! * A switch without flows cannot tell which ACKs belong to senders that apply rates. [`Recent`] is the only memory for this: an
//!   array of fixed size, indexed by a hash of addresses and ports, of the times at which packets were last designated.
//! * The rate has no lower limit of one packet per RTT (BDR-25), because the port does not know RTTs. The sender paces, and
//!   can send less than one packet per RTT.

use core::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::{Law, Params};
use crate::feedback::header::Header;
use crate::rate::aggregate::{Aggregated, Counts, Decision, FlowHandle, Reports, Standing};
use crate::rate::kit::classes;
use crate::rate::uniform::{Meter, Passed, Port, stamp};
use crate::rate::{
    Action, Admission, FlowEvent, FlowIdentity, Leaf, PacketInfo, PerFlowController, PortCounters, Proto,
    Queueing, Requirements,
};
use crate::units::{Bytes, Rate, Span, Time};

/// Number of cells of [`Recent`], as `NRW_DESIGNATIONS` of the switch program.
const CELLS: usize = 1 << 17;
/// Flows whose last designated packet is older than this time get no rate (ours, `NRW_DESIGNATED_NS`). The longest time
/// between two designated packets of a flow with data is two timeouts (BDR-27).
const FRESH: Span = Span::from_secs(4);
/// Maximum time between a host's readings.
const LOOK_MAX: Span = Span::from_millis(200);

/// The times of designated packets. Flows with the same hash share a cell, so a flow that designates no packets can get a
/// rate, which its sender ignores.
#[derive(Clone, Debug, Default)]
struct Recent(Vec<Time>);

impl Recent {
    fn index(key: &impl FlowIdentity) -> usize {
        FxBuildHasher.hash_one(key) as usize % CELLS
    }

    fn note(&mut self, now: Time, key: &impl FlowIdentity) {
        self.0.resize(CELLS, Time::ZERO);
        if let Some(cell) = self.0.get_mut(Self::index(key)) {
            *cell = now;
        }
    }

    fn has(&self, now: Time, key: &impl FlowIdentity) -> bool {
        self.0.get(Self::index(key)).is_some_and(|at| *at > Time::ZERO && now.since(*at) <= FRESH)
    }
}

/// BDR at a port without flows.
#[derive(Clone, Debug)]
pub struct Stateless {
    params: Params,
    law: Law,
    port: Port,
    meter: Meter,
    /// The link's rate for which the classes were computed.
    shaped: Option<Rate>,
    /// The last known time.
    at: Time,
    started: bool,
    recent: Recent,
    /// The time of the last reports of a host that counts, and the time between the last two.
    reported: Time,
    between_reports: Span,
}

impl Stateless {
    /// Returns a port of BDR with [valid](crate::rate::PortParameters::check) parameters.
    pub fn new(params: Params) -> Self {
        Stateless {
            law: Law::new(params.clone(), Rate::ZERO, Time::ZERO),
            params,
            port: Port::default(),
            meter: Meter::default(),
            shaped: None,
            at: Time::ZERO,
            started: false,
            recent: Recent::default(),
            reported: Time::ZERO,
            between_reports: Span::ZERO,
        }
    }

    fn look(&mut self, now: Time, port: &PortCounters) {
        self.at = self.at.max(now);
        self.port = Port::of(port);
    }

    fn shape<K: FlowIdentity>(&mut self, actions: &mut Vec<Action<K>>) {
        if self.shaped != Some(self.port.capacity) {
            self.shaped = Some(self.port.capacity);
            classes::set(self.port.capacity, actions);
        }
    }

    /// Returns the rate of the `newcomers`-th newcomer from now on.
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
        self.look(now, port);
        (self.meter, self.started) = (Meter::default(), false);
        self.shape(actions);
        self.law = Law::new(self.params.clone(), self.port.capacity, now);
    }

    /// Counts a designated packet (BDR-41), and returns the packet's leaf.
    fn on_data(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) -> Admission {
        self.look(now, port);
        if packet.key.proto() == Proto::Udp {
            return Admission::Queue(Leaf::Udp);
        }
        if let Header::Bdr(header) = &packet.header {
            self.recent.note(now, &packet.key);
            self.law.on_report(now, &header.report, self.port.queued, self.port.limit);
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
        self.at = self.at.max(now);
        let answers = packet.flags.syn && packet.flags.ack;
        stamp(if answers { self.first_rate(now, 1) } else { self.present_rate(now) }, packet.option)
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.look(now, port);
        self.shape(actions);
        let Passed { own, other, .. } = self.meter.read(now, self.port.capacity, port);
        self.law.on_bytes(own, other);
        self.law.on_timer(now, self.port.capacity, self.port.queued, self.port.limit);
        self.started = true;
    }

    fn next_timer(&self) -> Time {
        if self.started { self.law.next() } else { Time::ZERO }
    }

    fn allocation(&self, key: &K) -> Option<Rate> {
        self.recent.has(self.at, key).then(|| self.present_rate(self.at))
    }

    fn into_aggregated(self: Box<Self>) -> Option<Box<dyn Aggregated<K>>> {
        Some(self)
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(self.at, trace);
        trace("link", self.port.capacity.as_f64());
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
        self.look(now, port);
    }

    fn on_udp(&mut self, now: Time, _bytes: Bytes, port: &PortCounters, _actions: &mut Vec<Action<K>>) {
        self.look(now, port);
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
        Some(self.first_rate(self.at, newcomers))
    }

    fn counts_reports(&self) -> Option<Span> {
        Some(self.params.t_rep_max)
    }

    fn on_reports(&mut self, now: Time, reports: &Reports, port: &PortCounters) {
        self.look(now, port);
        self.between_reports = now.since(self.reported).min(LOOK_MAX);
        self.reported = now;
        self.law.on_reports(now, reports, self.port.queued, self.port.limit);
    }

    /// Returns the rate for the middle of the time until the next reports. The count decays in this time, so a rate for its
    /// beginning would be too low (2.5 % with reports every 10 ms and tau = 200 ms).
    fn common_rate(&self, now: Time) -> Option<Rate> {
        Some(self.present_rate(now + self.between_reports.scale(1, 2)))
    }
}
