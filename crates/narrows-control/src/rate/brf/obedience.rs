//! Detects flows that claim to follow rates but do not.
//!
//! The option in a SYN is only a claim (BRF-10): a host can announce BRF, run another controller,
//! and fill the queue of flows that follow their rates. A flow that exceeds its rate in consecutive
//! windows moves to other TCP, where its excess harms only its own class, for the rest of its life.
//! This check is ours; the paper trusts its senders.

use super::Brf;
use super::table::{FlowId, List, Meter};
use crate::rate::{Action, Class, FlowIdentity};
use crate::units::{Bytes, Span, Time};

/// An excess above this share is a strike. A mouse may exceed its rate by the same margin (BRF-51).
const MARGIN: f64 = 1.25;
/// Consecutive strikes that demote a flow. A sender that drains a queue from before a reduction may have a
/// few strikes.
const STRIKES: u8 = 8;
/// Allowance for bursts and for the ends of a window, packets.
const TOLERANCE: f64 = 2.0;

/// Evaluates a window of length `span`, in which the flow was permitted `may` bytes/s.
pub(super) fn watch(meter: &mut Meter, span: Span, may: u64, mtu: Bytes) {
    let may = may as f64;
    let limit = MARGIN * may * span.as_secs_f64() + TOLERANCE * mtu.as_f64();
    meter.strikes = if meter.bytes.as_f64() > limit { meter.strikes.saturating_add(1) } else { 0 };
}

/// Whether the flow has exceeded its rate often enough.
pub(super) fn must_be_demoted(meter: &Meter) -> bool {
    meter.strikes >= STRIKES
}

impl<K: FlowIdentity> Brf<K> {
    /// During congestion rates change with every reading of the queue, so the last rate is not
    /// binding. But no flow needs more than its whole share. `since` is the time since the last reduction.
    pub(super) fn watch_congested(&mut self, since: Time, now: Time, actions: &mut Vec<Action<K>>) {
        let (span, mtu, windows, mut disobeyed) = (now.since(since), self.mtu, self.windows, false);
        let (shares, table) = (&self.shares, &mut self.table);
        table.each_rated(|slot, meter| {
            meter.enter(windows);
            watch(meter, span, shares.base(slot, meter.demand).saturating_add(shares.spread(slot)), mtu);
            disobeyed |= must_be_demoted(meter);
        });
        if disobeyed {
            self.demote(now, actions);
        }
    }

    /// Moves all flows that do not follow their rates to other TCP. It is rare, so it may visit every flow.
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
            (flow.class, flow.guessed) = (Class::OtherTcp, false);
            let (key, value) = (Some(flow.key), self.table.len(List::Rated) as f64);
            actions.push(Action::Log { event: "flow-demoted", flow: key, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Params;
    use super::super::harness::{Net, key, mbit};
    use crate::units::Rate;

    /// Two flows on a port of 100 Mbit/s. The second ignores its rate.
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

    #[test]
    fn an_excess_of_a_tenth_is_tolerated() {
        for report_every in [0, 10] {
            assert_eq!(with_a_cheat(53.9, report_every).logged("flow-demoted"), 0);
        }
    }
}
