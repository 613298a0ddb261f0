//! BRF at a port: its state, and the adapter to [`PerFlowController`].

use super::advert::Adverts;
use super::allocate::{AppClass, Shares, Terms};
use super::cycle::Cycle;
use super::link::Link;
use super::predictor::{Prediction, Predictor};
use super::reductions::Reductions;
use super::state::State;
use super::table::{FlowId, List, Meter, Table};
use super::timers::Timers;
use super::{Params, split};
use crate::parameter::Reading;
use crate::rate::aggregate::Aggregated;
use crate::rate::kit::features::second_of_day;
use crate::rate::kit::half_open::HalfOpenTable;
use crate::rate::kit::subscriber::Share;
use crate::rate::{
    Action, Admission, Class, CongestionKind, FlowEvent, FlowIdentity, FlowKey, Leaf, Message, PacketInfo,
    PerFlowController, PortCounters, PortId, Proto, Queueing, Requirements, Side,
};
use crate::units::{Bytes, Rate, Span, Time};

/// Minimum time between two readings of the port's counters, for any parameters.
pub(super) const TICK_MIN: Span = Span::from_millis(1);
/// If the host reports counts, the time between two moves of an active flow to the end of its list is at least this
/// share of the idle timeout.
pub(super) const STALE: (u64, u64) = (1, 4);

/// BRF at one port (DEV_INFO_BRF of the paper, BRF-3).
pub struct Brf<K: FlowIdentity = FlowKey> {
    pub(super) params: Params,
    pub(super) port: PortId,
    pub(super) mtu: Bytes,

    pub(super) table: Table<K>,
    pub(super) half_open: HalfOpenTable<K>,
    pub(super) timers: Timers,
    pub(super) predictor: Box<dyn Predictor<K>>,
    pub(super) adverts: Adverts<K>,

    pub(super) shares: Shares<K::Host>,
    pub(super) link: Link,
    pub(super) cycle: Cycle,
    pub(super) reductions: Reductions,
}

impl<K: FlowIdentity> Brf<K> {
    /// Creates the state of BRF at this port, with [valid](crate::rate::PortParameters::check) parameters. Full
    /// packets are `mtu` bytes long.
    pub fn new(params: Params, port: PortId, mtu: Bytes) -> Self {
        Brf {
            table: Table::new(params.max_flows, params.rtt_default),
            half_open: HalfOpenTable::new(params.max_half_open, params.handshake_timeout),
            timers: Timers::default(),
            predictor: Prediction::build(&params),
            adverts: Adverts::new(port, params.max_flows),
            shares: Shares::new(params.spread_residual, params.share != Share::Flow),
            link: Link::new(&params),
            cycle: Cycle::new(&params),
            reductions: Reductions::new(&params, mtu),
            params,
            port,
            mtu,
        }
    }

    pub(super) fn is_literal(&self) -> bool {
        self.params.mode == Reading::Literal
    }

    /// Returns the equal share of all active flows, without the current reduction.
    pub(super) fn fair_share(&self) -> Rate {
        let flows = self.shares.flows().max(1);
        Rate::from_bytes_per_sec(self.shares.capacity().as_bytes_per_sec() / flows)
    }

    /// Returns the time between two full packets at this rate, at most `period_max`. This time can exceed the RTT, a
    /// case that the paper does not consider. Senders send at least one packet per second (BRF-104), and `period_max`
    /// is 1 s by default.
    pub(super) fn packet_gap(&self, rate: Rate) -> Span {
        if self.is_literal() || self.shares.flows() == 0 {
            return Span::ZERO;
        }
        rate.time_for(self.mtu).min(self.params.period_max)
    }

    /// Returns the time without data after which a flow is idle (BRF-16). A flow is not idle between two packets, even
    /// if they are far apart. If it were idle, its share would go to other flows, and the sum of rates would exceed the
    /// capacity.
    pub(super) fn idle_after(&self) -> Span {
        let gap = self.packet_gap(self.fair_share().mul_f64(self.shares.reduction()));
        self.cycle.period.max(gap).scale(2, 1).max(self.params.idle_after)
    }

    pub(super) fn tick_every(&self) -> Span {
        let tick = self.cycle.period.min(self.params.poll);
        // If the capacity is measured, samples are also taken between ticks.
        let tick = if self.link.is_measured() { tick.scale(1, 4) } else { tick };
        tick.max(TICK_MIN)
    }

    /// Reads the capacity of the link and applies a change at once.
    pub(super) fn refresh_link(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        if self.link.refresh(now, port.capacity) {
            self.update_split(now, actions);
            // The reduction that a queue needs depends on the drain rate, so it is computed again.
            if self.cycle.is_congested() && !self.is_literal() {
                self.reduce(now, CongestionKind::Queue, port);
            }
        }
    }

    /// Applies a new configured capacity.
    pub(super) fn refresh_capacity(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        if port.capacity.is_some_and(|told| told != self.link.rate()) {
            self.refresh_link(now, port, actions);
        }
    }

    /// Updates the split between the classes, and the allocations.
    pub(super) fn update_split(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        let flows = || (self.table.len(List::Rated) as u64, self.table.len(List::Other) as u64);
        let weights = self.shares.weights().unwrap_or_else(flows);
        let idle_after = self.idle_after();
        if self.link.split(now, self.cycle.period, idle_after, weights) {
            self.shares.set_capacity(self.link.shares().rated);
            // The paper changes allocations only in its ALLOC phase.
            if !self.is_literal() {
                self.shares.settle();
            }
        }
        self.link.push(actions);
    }

    /// Records the arrival of UDP.
    pub(super) fn record_udp(&mut self, now: Time, size: Bytes, actions: &mut Vec<Action<K>>) {
        self.link.udp.record(now, size);
        self.update_split(now, actions);
    }

    fn admit_udp(&mut self, now: Time, size: Bytes, actions: &mut Vec<Action<K>>) -> Admission {
        self.record_udp(now, size, actions);
        if self.link.udp_ceil().is_some() {
            return Admission::Queue(Leaf::Udp);
        }
        let rate = self.link.shares().udp;
        if self.link.udp.police(now, size, rate, split::burst(rate, self.mtu)) {
            Admission::Queue(Leaf::Udp)
        } else {
            Admission::Drop
        }
    }

    /// Returns the rate that a flow with an allocation gets as feedback. In resolved mode this rate is never zero
    /// (BRF-7, BRF-47).
    pub(super) fn rate_for(&self, id: FlowId, meter: &Meter) -> Rate {
        self.rate_by(self.shares.terms(id.slot, meter.app_class), meter.demand)
    }

    /// Like [`rate_for`](Brf::rate_for), for a flow with these terms.
    fn rate_by(&self, terms: Terms, demand: u64) -> Rate {
        let allocation = self.shares.allocation(terms, demand);
        if self.is_literal() {
            return allocation;
        }
        let base = Rate::from_bytes_per_sec(terms.base(demand));
        // If there are many flows, the floor is the whole share (BRF-47), so a reduction applies to the floor too.
        let floor = self.shares.floor().min(self.fair_share().mul_f64(self.shares.reduction()));
        allocation.max(base.min(floor)).max(Rate::from_bytes_per_sec(1))
    }

    /// Returns whether the port has no capacity, for example during an outage of a radio link. A port without capacity
    /// assigns no rates. With a very low rate, a sender would still wait for its next departure after the outage
    /// (BRF-101).
    pub(super) fn is_down(&self) -> bool {
        !self.is_literal() && self.link.rate() == Rate::ZERO
    }

    pub(super) fn rtt(&self, id: FlowId) -> Span {
        self.table.meter(id).map_or(self.params.rtt_default, |meter| meter.rtt)
    }

    /// Returns the queue for a packet of this flow. ALLOC decides the layers (BRF-50). Each flow moves to its new layer
    /// with its next packet.
    fn leaf(&mut self, now: Time, id: FlowId, size: Bytes) -> Leaf {
        let active = self.table.list(id) == Some(List::Rated);
        let Some(flow) = self.table.get(id) else { return Leaf::OtherTcp };
        if flow.class != Class::Rated {
            return Leaf::OtherTcp;
        }
        if !self.params.layers {
            return Leaf::Elephant;
        }
        let (headroom, mtu) = (self.params.mouse_headroom, self.mtu);
        if !active {
            // The last segment and retransmissions join the queue of the flow's earlier packets.
            let last = self.last_rate(id).zip(self.table.get_mut(id));
            return last
                .map_or(Leaf::Elephant, |(told, flow)| flow.layer.leaf(now, size, told, headroom, mtu));
        }
        let Some(meter) = self.table.meter(id) else { return Leaf::Elephant };
        let terms = self.shares.terms(id.slot, meter.app_class);
        let (allocated, base) = (self.rate_by(terms, meter.demand), terms.base(meter.demand));
        let unlimited = meter.app_class == AppClass::Unlimited;
        let fair = self.fair_share();
        let windows = self.cycle.windows;
        let Some(flow) = self.table.get_mut(id) else { return Leaf::Elephant };
        if flow.layer_as_of != windows {
            flow.layer_as_of = windows;
            flow.layer.assign(Rate::from_bytes_per_sec(base), fair, unlimited);
        }
        flow.layer.leaf(now, size, allocated, headroom, mtu)
    }
}

impl<K: FlowIdentity> PerFlowController<K> for Brf<K> {
    fn name(&self) -> &'static str {
        "brf"
    }

    fn requirements(&self) -> Requirements {
        let queueing = Queueing::Classes { queues_udp: self.link.udp.borrows() };
        Requirements { queueing, configured_capacity: false, domain: false }
    }

    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        if port.capacity.is_none() {
            self.link.measure(now, &self.params, self.mtu);
        }
        self.predictor.set_second_of_day(second_of_day(self.params.time_of_day, now));
        self.refresh_link(now, port, actions);
        self.cycle.tick_at = now + self.tick_every();
        self.report_state(State::Init, actions);
        self.begin_cycle(now, actions);
    }

    fn on_data(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) -> Admission {
        self.refresh_capacity(now, port, actions);
        if packet.key.proto() == Proto::Udp {
            return self.admit_udp(now, packet.size, actions);
        }
        let event = FlowEvent::of(packet, Side::Sender);
        let found = self.on_tcp(now, &event, actions);
        if event.has_data
            && let Some(id) = found
        {
            self.record_data(now, id, actions);
            if packet.unlimited.is_some() {
                self.readmit(now, id, actions);
            }
            self.measure(now, id, packet);
        }
        let leaf = match found {
            Some(id) => self.leaf(now, id, packet.size),
            None if packet.sender_follows_rates() => Leaf::Elephant,
            None => Leaf::OtherTcp,
        };
        if leaf == Leaf::OtherTcp {
            self.link.acks.record_other(packet.size);
        }
        Admission::Queue(leaf)
    }

    fn on_reverse(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        actions: &mut Vec<Action<K>>,
    ) -> Option<Rate> {
        if packet.key.proto() == Proto::Udp {
            return None;
        }
        // If the flow gets no record, the SYN-ACK carries an offer. No capacity is reserved for the offer.
        let offer = self.offer(packet);
        let found = self.on_tcp(now, &FlowEvent::of(packet, Side::Receiver), actions);
        match found {
            Some(id) if self.table.list(id) == Some(List::Rated) => self.answer(now, id, packet),
            Some(id) => self.repeat_last_rate(now, id, packet),
            None if offer.is_some() => offer,
            None => self.adverts.answer(now, packet, None),
        }
    }

    fn on_write_failed(&mut self, key: &K) {
        let Some(id) = self.table.find(key) else { return self.adverts.reopen(key) };
        let Some(flow) = self.table.get_mut(id) else { return };
        flow.gate.reopen();
        let before = flow.told_before;
        if let Some(meter) = self.table.meter_mut(id) {
            (meter.told, meter.told_at) = before;
        }
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.refresh_link(now, port, actions);
        self.run_flow_timers(now, actions);
        if now >= self.cycle.tick_at {
            self.predictor.set_second_of_day(second_of_day(self.params.time_of_day, now));
            self.tick(now, port, actions);
            self.cycle.tick_at = now + self.tick_every();
        }
        self.advance_phase(now, actions);
    }

    fn on_message(
        &mut self,
        now: Time,
        message: &Message<K>,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) {
        match message {
            Message::Poll => {
                self.reductions.polled(now);
                actions.push(Action::ToController(Message::Report(self.report(now, port))));
            }
            Message::Congestion { kind, port: id } if *id == self.port => {
                self.on_verdict(now, *kind, port, actions);
            }
            Message::FlowAdvertisement { key, rate, port: from, seq, valid_for } => {
                self.adverts.receive(now, *key, *rate, *from, *seq, *valid_for);
            }
            Message::Congestion { .. }
            | Message::Report(_)
            | Message::Flow { .. }
            | Message::Grants { .. } => {}
        }
    }

    fn next_timer(&self) -> Time {
        self.cycle.tick_at.min(self.cycle.phase().until()).min(self.timers.next())
    }

    fn allocation(&self, key: &K) -> Option<Rate> {
        let id = self.table.find(key)?;
        let active = self.table.list(id) == Some(List::Rated);
        self.table.meter(id).filter(|_| active).map(|meter| self.rate_for(id, meter))
    }

    fn into_aggregated(self: Box<Self>) -> Option<Box<dyn Aggregated<K>>> {
        Some(self)
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("link", self.link.rate().as_f64());
        trace("rated_share", self.shares.capacity().as_f64());
        trace("allocated", self.shares.sum());
        trace("level", self.shares.level());
        trace("newcomers", self.shares.committed().as_f64());
        if let Some(subscribers) = self.shares.subscribers() {
            trace("subscribers", subscribers as f64);
        }
        trace("flows_rated", self.table.len(List::Rated) as f64);
        trace("flows_other", self.table.len(List::Other) as f64);
        trace("flows_idle", self.table.len(List::Idle) as f64);
        trace("half_open", self.half_open.len() as f64);
        trace("period", self.cycle.period.as_secs_f64());
        trace("congested", if self.cycle.is_congested() { 1.0 } else { 0.0 });
    }
}
