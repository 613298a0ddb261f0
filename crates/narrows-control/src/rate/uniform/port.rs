//! A law at a port that writes its rate into ACKs ("the stamped form"): the adapter to [`PerFlowController`].

use super::Law;
use super::table::Table;
use super::watch::Watch;
use crate::feedback::code::as_heard;
use crate::rate::aggregate::Aggregated;
use crate::rate::kit::half_open::HalfOpenTable;
use crate::rate::{
    Action, Admission, FlowEvent, FlowIdentity, FlowKey, Leaf, PacketInfo, PerFlowController, PortCounters,
    Proto, Queueing, RateOption, Requirements, Side, brf,
};
use crate::units::{Rate, Span, Time};

/// A law at a port that writes its rate into ACKs.
pub struct Uniform<L, K = FlowKey> {
    pub(super) law: L,
    pub(super) ageing: Ageing,
    pub(super) table: Table<K>,
    pub(super) half_open: HalfOpenTable<K>,
    pub(super) watch: Watch,
    pub(super) swept: Time,
}

/// Timeouts of flows. The values are BRF's (BRF-15, BRF-16).
#[derive(Clone, Debug)]
pub(super) struct Ageing {
    pub(super) idle_after: Span,
    pub(super) handshake_timeout: Span,
    pub(super) forget_after: Span,
    pub(super) rtt_default: Span,
}

impl<L: Law, K: FlowIdentity> Uniform<L, K> {
    /// Returns a port that applies `law` and keeps records of at most this many flows. Flows without a record also get
    /// the rate, but the law does not count them.
    pub fn new(law: L, max_flows: usize) -> Self {
        let p = brf::Params::resolved();
        Uniform {
            law,
            table: Table::new(max_flows),
            half_open: HalfOpenTable::new(p.max_half_open, p.handshake_timeout),
            ageing: Ageing {
                idle_after: p.idle_after,
                handshake_timeout: p.handshake_timeout,
                forget_after: p.forget_after,
                rtt_default: p.rtt_default,
            },
            watch: Watch::default(),
            swept: Time::ZERO,
        }
    }

    /// Returns the rate to send to this flow now.
    pub(super) fn rate_for(&self, now: Time, rtt: Option<Span>) -> Rate {
        self.law.rate(now).max(self.law.least(rtt.unwrap_or(self.ageing.rtt_default)))
    }
}

/// Returns the rate that the port writes into an ACK with this option, if the port's own rate is `rate` (BRF-61).
/// `rate` is rounded to the precision of the rate code before the comparison (BRF-8).
pub(in crate::rate) fn stamp(rate: Rate, option: RateOption) -> Option<Rate> {
    match option {
        RateOption::Assigned(value) if as_heard(rate) > value => None,
        _ => Some(rate),
    }
}

impl<L: Law + 'static, K: FlowIdentity> PerFlowController<K> for Uniform<L, K> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn requirements(&self) -> Requirements {
        let queueing = Queueing::Classes { queues_udp: false };
        Requirements { queueing, configured_capacity: true, domain: false }
    }

    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.watch.start(now, port, actions);
        self.swept = now;
        self.law.start(now, &self.watch.port);
    }

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
        let event = FlowEvent::of(packet, Side::Sender);
        let found = self.on_tcp(now, &event);
        if event.has_data
            && let Some(id) = found
        {
            self.record_data(now, id, packet.size);
        }
        let rated = match found.and_then(|id| self.table.get(id)) {
            Some(flow) => flow.is_rated(),
            None => packet.sender_follows_rates(),
        };
        Admission::Queue(if rated { Leaf::Elephant } else { Leaf::OtherTcp })
    }

    fn on_reverse(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        _actions: &mut Vec<Action<K>>,
    ) -> Option<Rate> {
        if packet.key.proto() == Proto::Udp {
            return None;
        }
        self.watch.pass(now);
        // The rate of a newcomer is computed before the law counts the newcomer, as in a data plane that prepares
        // grants.
        let answers = packet.flags.syn && packet.flags.ack;
        let granted = answers.then(|| self.law.grant(now, 1).max(Rate::from_bytes_per_sec(1)));
        let found = self.on_tcp(now, &FlowEvent::of(packet, Side::Receiver));
        let (rated, rtt) = match found.and_then(|id| self.table.get(id)) {
            Some(flow) => (flow.is_rated(), flow.rtt()),
            // The table is full. The flow still gets the rate, because all flows have the same rate.
            None => (packet.option != RateOption::Absent && !packet.flags.rst, None),
        };
        let rate = granted.unwrap_or_else(|| self.rate_for(now, rtt));
        if rated { stamp(rate, packet.option) } else { None }
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        let passed = self.watch.read(now, port, actions);
        self.law.on_timer(now, &self.watch.port, passed);
        self.sweep(now);
    }

    fn next_timer(&self) -> Time {
        if self.watch.has_read() { self.law.next() } else { Time::ZERO }
    }

    fn allocation(&self, key: &K) -> Option<Rate> {
        let flow = self.table.get(self.table.find(key)?)?;
        flow.is_rated().then(|| self.rate_for(self.watch.at, flow.rtt()))
    }

    fn into_aggregated(self: Box<Self>) -> Option<Box<dyn Aggregated<K>>> {
        Some(self)
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(self.watch.at, trace);
        trace("link", self.watch.port.capacity.as_f64());
        trace("flows_known", self.table.len() as f64);
        trace("half_open", self.half_open.len() as f64);
    }
}
