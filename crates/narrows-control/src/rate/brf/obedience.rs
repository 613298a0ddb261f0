//! Detects flows that claim to follow rates but do not.
//!
//! The option in a SYN is only a claim (BRF-10). A host can announce BRF but run another congestion controller. Its
//! flows then fill the queue of the flows that follow their rates. A flow that exceeds its rate in consecutive windows
//! is demoted to the class of other TCP, where it can harm only flows of that class. It returns to the rated class when
//! its sender announces again that it applies rates. This check is ours. The paper assumes that senders follow their
//! rates.

use super::Brf;
use super::table::{Flow, FlowId, List, Meter};
use crate::rate::{Action, Class, FlowIdentity};
use crate::units::{Bytes, Span, Time};

/// A flow that sends more than this multiple of its rate gets a strike. BRF-51 has the same multiple for mice.
const MARGIN: f64 = 1.25;
/// Allowance for bursts and for the ends of a window, packets.
const TOLERANCE: f64 = 2.0;
/// The score at which a flow is demoted.
const OUT: u8 = 128;
/// Score of one strike. Eight consecutive strikes demote a flow. A few strikes may come from packets that were queued
/// before a reduction.
const STRIKE: u8 = OUT / 8;
/// A flow that exceeds its reduced rate, but not its share before the reduction, is demoted only after this time. The
/// reason is that the flow may get no feedback for a while, for example during loss recovery.
const PATIENCE: Span = Span::from_millis(1500);

/// Minimum time that a demoted flow remains with other TCP. Each demotion doubles this time, so a flow with false
/// claims is in the rated class less and less often.
const PROBATION: Span = Span::from_secs(1);
/// Maximum number of doublings of the probation. After these doublings, the probation is about a minute.
const DOUBLINGS_MOST: u8 = 6;

/// The demotions of a flow.
#[derive(Copy, Clone, Debug)]
pub(super) struct Demotions {
    doublings: u8,
    /// The end of the last probation, or "never" if there was no demotion.
    until: Time,
}

impl Demotions {
    /// The state of a flow that was never demoted.
    pub(super) const NONE: Demotions = Demotions { doublings: 0, until: Time::NEVER };

    fn add(&mut self, now: Time) {
        self.until = now + PROBATION.scale(1 << self.doublings, 1);
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MOST);
    }
}

/// Evaluates a window of length `span`, in which the flow was permitted `may` bytes/s.
pub(super) fn watch(meter: &mut Meter, span: Span, may: u64, mtu: Bytes) {
    let score = if exceeds(meter, span, may as f64, mtu) { STRIKE } else { 0 };
    add(meter, score);
}

/// Like [`watch`], but congestion has reduced the permitted rate to `factor` times `may`.
fn watch_reduced(meter: &mut Meter, span: Span, may: u64, factor: f64, mtu: Bytes) {
    let score = if exceeds(meter, span, may as f64, mtu) {
        STRIKE
    } else if exceeds(meter, span, may as f64 * factor, mtu) {
        let part = span.as_secs_f64() / PATIENCE.as_secs_f64();
        (part * f64::from(OUT)).clamp(1.0, f64::from(STRIKE)) as u8
    } else {
        0
    };
    add(meter, score);
}

fn exceeds(meter: &Meter, span: Span, may: f64, mtu: Bytes) -> bool {
    meter.bytes.as_f64() > MARGIN * may * span.as_secs_f64() + TOLERANCE * mtu.as_f64()
}

/// Adds to the sum of scores. One window within the rate (score 0) resets the sum.
fn add(meter: &mut Meter, score: u8) {
    meter.strikes = if score > 0 { meter.strikes.saturating_add(score) } else { 0 };
}

/// Returns whether the flow has exceeded its rate often enough to be demoted.
pub(super) fn must_be_demoted(meter: &Meter) -> bool {
    meter.strikes >= OUT
}

impl<K: FlowIdentity> Brf<K> {
    /// Evaluates flows during congestion, when rates change with every reading of the queue. A flow cannot follow a new
    /// rate at once, so it gets a full strike only if it exceeds its share before the reduction. If it exceeds only the
    /// reduced rate, it gets a lower score. The score is not zero, because such a flow keeps the queue full while other
    /// flows reduce their rates to almost nothing. `since` is the time of the last reduction.
    pub(super) fn watch_congested(&mut self, since: Time, now: Time, actions: &mut Vec<Action<K>>) {
        let (span, mtu, windows, mut disobeyed) = (now.since(since), self.mtu, self.cycle.windows, false);
        let factor = self.reductions.end(self.shares.reduction());
        let (shares, table) = (&self.shares, &mut self.table);
        table.each_rated(|slot, meter| {
            meter.enter(windows);
            let terms = shares.terms(slot, meter.app_class);
            let whole = terms.base(meter.demand).saturating_add(terms.spread);
            watch_reduced(meter, span, whole, factor, mtu);
            disobeyed |= must_be_demoted(meter);
        });
        if disobeyed {
            self.demote(now, actions);
        }
    }

    /// Moves all flows that do not follow their rates to other TCP. Demotions are rare, so the cost of visiting every
    /// flow does not matter.
    pub(super) fn demote(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        let out: Vec<FlowId> = self
            .table
            .ids(List::Rated)
            .filter(|id| self.table.meter(*id).is_some_and(must_be_demoted))
            .collect();
        for id in out {
            self.deactivate(now, id, List::Other, actions);
            if let Some(meter) = self.table.meter_mut(id) {
                meter.strikes = 0;
            }
            let Some(flow) = self.table.get_mut(id) else { continue };
            (flow.class, flow.life.guessed) = (Class::OtherTcp, false);
            flow.demotions.add(now);
            let (key, value) = (Some(flow.key), self.table.len(List::Rated) as f64);
            actions.push(Action::Log { event: "flow-demoted", flow: key, value });
        }
    }

    /// Called when data of a demoted flow announces that its sender applies rates. If the probation is over, the flow
    /// is rated again.
    pub(super) fn readmit(&mut self, now: Time, id: FlowId, actions: &mut Vec<Action<K>>) {
        let is_due = |flow: &Flow<K>| flow.class == Class::OtherTcp && flow.demotions.until <= now;
        if self.table.list(id) != Some(List::Other) || !self.table.get(id).is_some_and(is_due) {
            return;
        }
        self.deactivate(now, id, List::Idle, actions);
        let Some(flow) = self.table.get_mut(id) else { return };
        (flow.class, flow.demotions.until) = (Class::Rated, Time::NEVER);
        let key = Some(flow.key);
        self.rejoin(now, id, actions);
        let value = self.table.len(List::Rated) as f64;
        actions.push(Action::Log { event: "flow-readmitted", flow: key, value });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Params;
    use super::super::harness::{Net, key, mbit};
    use crate::units::Rate;

    /// Returns a network with two flows on a port of 100 Mbit/s. The second flow ignores its rate.
    fn with_a_cheat(mbits: f64, report_every: u64) -> Net {
        let mut net = Net::new(Params::resolved(), mbit(100.0));
        net.report_every = report_every;
        net.sender(1, 20, 0);
        net.sender(2, 20, 0).insists = Some(mbit(mbits));
        net.run(4000);
        net
    }

    #[test]
    fn a_flow_that_ignores_its_rate_loses_its_class() {
        for (mbits, report_every) in [(80.0, 0), (80.0, 10), (200.0, 0), (200.0, 10)] {
            let net = with_a_cheat(mbits, report_every);
            assert_eq!(net.logged("flow-demoted"), 1, "{mbits} Mbit/s, reports every {report_every} ms");
            assert_eq!(net.allocated(2), Rate::ZERO);
            let rest = net.allocated(1).as_bits_per_sec() / 49e6;
            assert!((rest - 1.0).abs() < 0.01, "{rest} at {mbits} Mbit/s, reports every {report_every} ms");
            assert!(net.brf.table.find(&key(2)).is_some());
        }
    }

    /// A sender without an agent ignores its rate and does not announce that it applies rates. After the agent starts
    /// again, the sender applies the rate and announces it.
    #[test]
    fn a_demoted_flow_returns_when_its_sender_applies_rates_again() {
        for report_every in [0, 10] {
            let mut net = with_a_cheat(80.0, report_every);
            assert_eq!(net.logged("flow-demoted"), 1);
            net.run(8000);
            assert_eq!(net.logged("flow-readmitted"), 0, "a silent flow stays");
            (net.senders[1].insists, net.senders[1].says) = (None, true);
            net.run(9000);
            assert_eq!(net.logged("flow-readmitted"), 1, "reports every {report_every} ms");
            net.run(12_000);
            assert_eq!(net.logged("flow-demoted"), 1, "reports every {report_every} ms");
            for n in [1, 2] {
                let share = net.allocated(n).as_bits_per_sec() / 49e6;
                assert!((share - 1.0).abs() < 0.02, "flow {n}: {share}, reports every {report_every} ms");
            }
        }
    }

    /// The probation doubles with each demotion, so the flow returns six times in two minutes.
    #[test]
    fn a_flow_that_claims_to_apply_rates_returns_more_and_more_rarely() {
        for report_every in [0, 10] {
            let mut net = with_a_cheat(80.0, report_every);
            net.senders[1].says = true;
            net.run(120_000);
            let found = (net.logged("flow-demoted"), net.logged("flow-readmitted"));
            assert_eq!(found, (7, 6), "reports every {report_every} ms");
        }
    }

    /// Each of four flows stays below 1.25 times its share, but together they fill the link and ignore reductions.
    #[test]
    fn flows_that_ignore_reductions_together_lose_their_class() {
        for (mbits, report_every) in [(24.0, 0), (24.0, 10), (19.9, 0), (19.9, 10)] {
            let mut net = Net::new(Params::resolved(), mbit(80.0));
            net.report_every = report_every;
            for n in 1..=4 {
                net.sender(n, 20, 0).insists = Some(mbit(mbits));
            }
            net.sender(5, 20, 1000);
            net.run(8000);
            assert_eq!(net.logged("flow-demoted"), 4, "{mbits} Mbit/s, reports every {report_every} ms");
            let rest = net.allocated(5).as_bits_per_sec() / mbit(15.7).as_bits_per_sec();
            assert!((rest - 1.0).abs() < 0.02, "{rest} at {mbits} Mbit/s, reports every {report_every} ms");
        }
    }

    #[test]
    fn an_excess_of_a_tenth_is_tolerated() {
        for report_every in [0, 10] {
            assert_eq!(with_a_cheat(53.9, report_every).logged("flow-demoted"), 0);
        }
    }
}
