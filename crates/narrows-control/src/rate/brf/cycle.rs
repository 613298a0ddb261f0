//! The phases of a port (BRF-30 to BRF-42): settle, measure and allocate, and reduce on a verdict of the controller or
//! of the switch's detector.

use super::allocate::{AppClass, equal_share_literal};
use super::congestion::{burst_factor, burst_factor_literal, queue_factor, queue_factor_literal};
use super::judge::{self, Judge};
use super::port::{STALE, TICK_MIN};
use super::state::State;
use super::table::{Flow, FlowId, List, Meter};
use super::{Brf, Params, obedience};
use crate::parameter::Reading;
use crate::rate::counters::rated;
use crate::rate::{Action, Class, CongestionKind, FlowIdentity, Message, PacketInfo, PortCounters, Report};
use crate::units::{Bytes, Rate, Span, Time};

/// Congestion ends when the queue has at most this many packets.
const EMPTY_QUEUE: u32 = 2;
/// If there are at least this many flows, their demands are changed in bulk. A bulk change costs as much as a few
/// hundred single changes.
const BULK_FLOWS: u64 = 1000;

/// The phase of a port. Other states of the paper take no time: INIT is `on_start`, BW_INIT is a flow's first rate, and
/// ALLOC happens between two phases.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Senders learn the last allocation (BRF-36).
    Settle {
        /// The time at which the measurement begins.
        until: Time,
    },
    /// Arrivals are counted per flow.
    Measure {
        /// The time at which the measurement began.
        from: Time,
        /// The time at which the measurement ends.
        until: Time,
    },
    /// Rates are reduced until the queue has drained.
    Congested,
}

impl Phase {
    /// Returns the time at which the phase ends by itself.
    pub(super) fn until(self) -> Time {
        match self {
            Phase::Settle { until } | Phase::Measure { until, .. } => until,
            Phase::Congested => Time::NEVER,
        }
    }
}

/// The cycle of a port.
#[derive(Debug)]
pub(super) struct Cycle {
    phase: Phase,
    /// T.
    pub(super) period: Span,
    /// Largest RTT in this cycle.
    pub(super) rtt_max: Span,
    /// Number of measurement windows so far.
    pub(super) windows: u32,
    /// The time at which the port's counters are read next.
    pub(super) tick_at: Time,
}

impl Cycle {
    pub(super) fn new(params: &Params) -> Self {
        Cycle {
            phase: Phase::Settle { until: Time::NEVER },
            period: params.rtt_default.max(params.period_min).min(params.period_max),
            rtt_max: Span::ZERO,
            windows: 0,
            tick_at: Time::NEVER,
        }
    }

    /// Sets T (BRF-30).
    fn set_period(&mut self, params: &Params) {
        let rtt = if self.rtt_max > Span::ZERO { self.rtt_max } else { params.rtt_default };
        self.period = rtt.max(params.period_min).min(params.period_max).max(TICK_MIN);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Begins the first phase of a cycle: `Settle` if `settles` is set, and `Measure` otherwise.
    fn begin(&mut self, now: Time, settles: bool) {
        if settles {
            self.phase = Phase::Settle { until: now + self.period };
        } else {
            self.begin_window(now);
        }
    }

    fn begin_window(&mut self, now: Time) {
        self.count_window();
        self.phase = Phase::Measure { from: now, until: now + self.period };
    }

    /// Begins a new window. Meters discard their counts of earlier windows.
    fn count_window(&mut self) {
        self.windows = self.windows.wrapping_add(1);
    }

    /// Returns the time from which a flow's arrivals are counted in this phase, or `None` if they are not counted.
    pub(super) fn counts_from(&self, mode: Reading, meter: &Meter) -> Option<Time> {
        match self.phase {
            Phase::Settle { .. } => None,
            Phase::Measure { from, .. } => Some(judge::measured_from(mode, meter, from)),
            Phase::Congested => Some(Time::ZERO),
        }
    }

    pub(super) fn is_congested(&self) -> bool {
        self.phase == Phase::Congested
    }
}

impl<K: FlowIdentity> Brf<K> {
    /// Sets T (BRF-30) and begins the first phase of a cycle.
    pub(super) fn begin_cycle(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        self.cycle.set_period(&self.params);
        self.extend_period();
        self.table.set_patience(self.idle_after().scale(STALE.0, STALE.1));
        self.cycle.begin(now, self.params.settle);
        self.report_phase(actions);
    }

    /// Raises T to at least the gap between two packets of a flow that has the equal share (ours). In a shorter T, most
    /// flows neither learn a new rate nor send at it.
    fn extend_period(&mut self) {
        self.cycle.period = self.cycle.period.max(self.packet_gap(self.fair_share()));
    }

    /// Returns whether the random phases of many flows may be the only cause of the verdict (ours).
    ///
    /// If N paced flows each send a packet per period, at random phases, their queue exceeds x packets with probability
    /// exp(-2 x^2 / N). This is the Brownian-bridge approximation of the queue N*D/D/1 (Roberts, Mocci and Virtamo,
    /// "Broadband Network Teletraffic", 1996). So the queue exceeds 1.5 sqrt(N) packets only 1 % of the time. If each
    /// flow sends at most one packet per period, every verdict of a burst is ignored, because the arrivals of these
    /// flows vary by more than the 2 % that the detector tolerates.
    fn is_random_in_crowd(&self, kind: CongestionKind, port: &PortCounters) -> bool {
        let flows = self.shares.flows();
        let is_crowd = self.packet_gap(self.fair_share()) >= self.cycle.period;
        let queued = f64::from(port.rated_packets());
        is_crowd && (kind == CongestionKind::Burst || queued < 1.5 * libm::sqrt(flows as f64))
    }

    pub(super) fn advance_phase(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        if now < self.cycle.phase.until() {
            return;
        }
        match self.cycle.phase {
            Phase::Settle { .. } => {
                self.cycle.begin_window(now);
                self.report_phase(actions);
            }
            Phase::Measure { from, .. } => {
                self.end_window(from, now, actions);
                self.allocate(now, actions);
            }
            Phase::Congested => {}
        }
    }

    /// Counts a data packet.
    pub(super) fn measure(&mut self, now: Time, id: FlowId, packet: &PacketInfo<K>) {
        let Some(flow) = self.table.get_mut(id) else { return };
        let missing = note_sequence(flow, packet);
        let Some(meter) = self.table.meter_mut(id) else { return };
        meter.unlimited |= packet.unlimited == Some(true);
        meter.limited |= packet.unlimited == Some(false);
        let Some(from) = self.cycle.counts_from(self.params.mode, meter) else { return };
        meter.enter(self.cycle.windows);
        if now >= from {
            meter.bytes += packet.size;
            meter.missing += missing;
        }
    }

    /// For every rated flow except newcomers, computes BW_real, the class and the demand (BRF-38, BRF-40, BRF-100).
    fn end_window(&mut self, from: Time, now: Time, actions: &mut Vec<Action<K>>) {
        // Each meter is read once, because memory access dominates the cost with 100,000 meters.
        let judge = Judge {
            params: &self.params,
            mtu: self.mtu,
            floor: self.shares.floor(),
            period: self.cycle.period,
            window: self.cycle.windows,
        };
        if self.shares.flows() >= BULK_FLOWS {
            self.shares.begin_bulk();
        }
        let (shares, mut rtt_max, mut disobeyed) = (&mut self.shares, Span::ZERO, false);
        self.table.each_rated(|slot, meter| {
            rtt_max = rtt_max.max(meter.rtt);
            if meter.app_class == AppClass::Newcomer {
                return;
            }
            let demand = meter.demand;
            judge.end_window(meter, shares.spread(slot), from, now);
            disobeyed |= obedience::must_be_demoted(meter);
            if demand != meter.demand {
                shares.change(slot, demand, meter.demand);
            }
        });
        self.cycle.rtt_max = rtt_max;
        self.shares.end_bulk();
        if disobeyed {
            self.demote(now, actions);
        }
    }

    /// Runs ALLOC (BRF-40) and begins the next cycle.
    fn allocate(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        self.report_state(State::Alloc, actions);
        self.update_split(now, actions);
        self.shares.set_floor(self.minimum(self.shares.capacity(), self.shares.flows()));
        self.shares.restore();
        self.reductions.forget();
        self.shares.count_allotment();
        if self.is_literal() {
            self.allocate_literally();
        } else {
            self.shares.settle();
        }
        self.begin_cycle(now, actions);
    }

    /// Allocates by the paper's equation 14. A flow without a measurement keeps its allocation.
    fn allocate_literally(&mut self) {
        let ids = self.active();
        let headroom = self.params.b_head;
        let keeps = |meter: &Meter| match meter.app_class {
            AppClass::Limited => Some(headroom * meter.real.as_f64()),
            AppClass::Newcomer | AppClass::Unknown => Some(meter.demand as f64),
            AppClass::Unlimited | AppClass::Held => None,
        };
        let kept: Vec<Option<f64>> = ids.iter().filter_map(|id| self.table.meter(*id)).map(keeps).collect();
        let sum = kept.iter().flatten().sum();
        let unlimited = kept.iter().filter(|k| k.is_none()).count() as u64;
        let share = equal_share_literal(self.shares.capacity().as_f64(), sum, unlimited);
        for (id, kept) in ids.iter().zip(kept) {
            if let Some(meter) = self.table.meter_mut(*id) {
                let demand = Rate::from_f64(kept.unwrap_or(share)).as_bytes_per_sec();
                let old = core::mem::replace(&mut meter.demand, demand);
                self.shares.change(id.slot, old, demand);
            }
        }
    }

    /// Returns the flows with an allocation.
    fn active(&self) -> Vec<FlowId> {
        self.table.ids(List::Rated).collect()
    }

    /// Performs the periodic work: handles silent flows, runs the detector, measures the capacity, and sends
    /// advertisements.
    pub(super) fn tick(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        if self.link.observe_capacity(now, port, self.cycle.period) {
            self.refresh_link(now, port, actions);
        }
        self.reductions.record_arrivals(now, rated(&port.arrived), self.cycle.period);
        // Many flows may begin within a period, and T is not set again during congestion. So T is also extended here.
        self.extend_period();
        self.sweep(now, actions);
        self.link.observe_traffic(now, port, self.cycle.period, !self.is_literal());
        self.update_split(now, actions);
        self.advertise(now, actions);

        let report =
            || port.report(self.port, now, self.link.rate(), self.shares.capacity(), self.cycle.period);
        if let Some(verdict) = self.reductions.detect(now, report)
            && (verdict.kind.is_some() || self.cycle.is_congested())
        {
            self.on_verdict(now, verdict.kind, port, actions);
        }
        let queued = port.rated_packets();
        let settling = self.reductions.reduced_within(now, self.cycle.period);
        if self.cycle.is_congested() && queued <= EMPTY_QUEUE && !settling {
            self.on_verdict(now, None, port, actions);
        }
    }

    /// Applies the verdict of the controller or of the switch's detector (BRF-73).
    pub(super) fn on_verdict(
        &mut self,
        now: Time,
        kind: Option<CongestionKind>,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) {
        let congested = self.cycle.is_congested();
        let Some(kind) = kind else {
            if congested {
                let value = rated(&port.queued).as_f64();
                actions.push(Action::Log { event: "congestion-end", flow: None, value });
                // The new allocation is computed from the stored demands. The reduced rates are not scaled up (BRF-82).
                self.allocate(now, actions);
            }
            return;
        };
        // When the link became slower, allocations were lowered at once. Packets that were sent at the earlier rates
        // still exceed the new capacity. A reduction now would lower the rates a second time. So for two T after the
        // change, a burst causes no reduction, but a standing queue does.
        let slowed = self.link.slowed_within(now, self.cycle.period.scale(2, 1));
        if kind == CongestionKind::Burst && slowed && !self.is_literal() {
            return;
        }
        if !congested && self.is_random_in_crowd(kind, port) {
            return;
        }
        self.cycle.phase = Phase::Congested;
        if !congested {
            self.report_phase(actions);
        }
        // The last reduction may not have taken effect yet, so there is at most one reduction per T.
        if self.reductions.reduced_within(now, self.cycle.period) {
            return;
        }
        if let (Some(since), true) = (self.reductions.reduced_at(), congested) {
            self.watch_congested(since, now, actions);
        }
        self.cycle.count_window();
        self.reductions.record(now);
        let factor = self.reduce(now, kind, port);
        let event = match kind {
            CongestionKind::Queue => "congestion-queue",
            CongestionKind::Burst => "congestion-burst",
        };
        actions.push(Action::Log { event, flow: None, value: factor });
    }

    /// Scales all allocations down and returns the factor.
    pub(super) fn reduce(&mut self, now: Time, kind: CongestionKind, port: &PortCounters) -> f64 {
        let (a_max, f_floor) = (self.params.a_max, self.params.f_floor);
        let capacity = self.shares.capacity().as_f64();
        let g = self.cycle.period.mul_f64(self.params.g_periods);
        let real = self.reductions.arrival_rate(now, rated(&port.arrived));
        if !self.is_literal() {
            // The factor applies to full allocations, not to reduced ones. A reduction takes two T to take effect at
            // the port. If each reduction scaled rates that are already reduced, a single queue would reduce all rates
            // several times.
            let factor = match kind {
                CongestionKind::Queue => {
                    let allocated = self.shares.full_sum();
                    queue_factor(capacity, allocated, real.as_f64(), rated(&port.queued), g, f_floor)
                }
                CongestionKind::Burst => burst_factor(capacity, a_max, real.as_f64()).max(f_floor),
            };
            self.shares.reduce(factor);
            return factor;
        }
        let ids = self.active();
        let factor = match kind {
            CongestionKind::Queue => {
                let packets: u32 = port.queued_packets.iter().copied().fold(0, u32::saturating_add);
                let queued = Bytes::new(u64::from(packets) * self.mtu.get());
                queue_factor_literal(self.shares.sum(), queued, g)
            }
            CongestionKind::Burst => burst_factor_literal(capacity, a_max, real.as_f64()),
        };
        self.scale_literally(&ids, factor);
        factor
    }

    /// Returns the port's counters for the detector.
    pub(super) fn report(&self, now: Time, port: &PortCounters) -> Report {
        port.report(self.port, now, self.link.rate(), self.shares.capacity(), self.cycle.period)
    }

    /// Once per T, advertises to the other switches the rates of flows whose ACKs take another path (BRF-63).
    fn advertise(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        if self.adverts.own.is_empty() || now < self.adverts.next_at || self.is_down() {
            return;
        }
        self.adverts.next_at = now + self.cycle.period;
        let mut own = core::mem::take(&mut self.adverts.own);
        own.retain(|id| {
            self.table.get(*id).is_some_and(|flow| flow.class == Class::Rated && !flow.ack_seen_here)
        });
        for id in &own {
            let Some(flow) = self.table.get(*id).filter(|_| self.table.list(*id) == Some(List::Rated)) else {
                continue;
            };
            let key = flow.key;
            let Some(rate) = self.table.meter(*id).map(|meter| self.rate_for(*id, meter)) else {
                continue;
            };
            let (port, valid_for) = (self.port, self.cycle.period.scale(3, 1));
            let seq = self.adverts.next_seq();
            actions.push(Action::ToController(Message::FlowAdvertisement {
                key,
                rate,
                port,
                seq,
                valid_for,
            }));
            self.note_told(now, *id);
        }
        self.adverts.own = own;
    }
}

/// Tracks the sequence numbers and returns the number of bytes that are missing before this packet.
fn note_sequence<K>(flow: &mut Flow<K>, packet: &PacketInfo<K>) -> Bytes {
    let end = packet.seq.saturating_add(packet.payload.get());
    let expected = flow.next_seq.unwrap_or(packet.seq);
    flow.next_seq = Some(expected.max(end));
    Bytes::new(packet.seq.saturating_sub(expected))
}
