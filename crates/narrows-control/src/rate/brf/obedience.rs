//! Flows that say they obey rates and do not.
//!
//! The option in a SYN is a claim (BRF-10): a host can announce BRF and run something else, and fill the queue of those who
//! obey. A flow that sends more than it may in window after window is moved to other TCP, where its excess is its own
//! class's trouble, and stays there for its life. Ours; the paper trusts its senders.

use super::Brf;
use super::table::{FlowId, List, Meter};
use crate::rate::{Action, Class};
use crate::units::{Bytes, Span, Time};

/// More than this part above what it may send is a strike: the margin by which a mouse may exceed its rate (BRF-51).
const MARGIN: f64 = 1.25;
/// So many in a row and it is out. A sender that drains a queue it built up before it heard of a lower rate needs a few.
const STRIKES: u8 = 8;
/// What bursts and the ends of a window add, packets.
const TOLERANCE: f64 = 2.0;

/// A window of `span` is over, in which the flow might send `may` bytes/s.
pub(super) fn watch(meter: &mut Meter, span: Span, may: u64, mtu: Bytes) {
    let may = may as f64;
    let limit = MARGIN * may * span.as_secs_f64() + TOLERANCE * mtu.as_f64();
    meter.strikes = if meter.bytes.as_f64() > limit { meter.strikes.saturating_add(1) } else { 0 };
}

/// The flow is to be demoted.
pub(super) fn is_out(meter: &Meter) -> bool {
    meter.strikes >= STRIKES
}

impl Brf {
    /// While the port is congested rates change with every look at its queue, and nobody can be held to the last one; but
    /// no flow needs more than its whole share. `since` the last reduction.
    pub(super) fn watch_congested(&mut self, since: Time, now: Time, actions: &mut Vec<Action>) {
        let (span, mtu, windows, mut disobeyed) = (now.since(since), self.mtu, self.windows, false);
        let (shares, table) = (&self.shares, &mut self.table);
        table.each_rated(|meter| {
            meter.enter(windows);
            watch(meter, span, shares.base(meter.demand).saturating_add(shares.spread()), mtu);
            disobeyed |= is_out(meter);
        });
        if disobeyed {
            self.demote(now, actions);
        }
    }

    /// Moves all flows that are out to other TCP. Rare, so it may look at every flow.
    pub(super) fn demote(&mut self, now: Time, actions: &mut Vec<Action>) {
        let out: Vec<FlowId> =
            self.table.ids(List::Rated).filter(|id| self.table.meter(*id).is_some_and(is_out)).collect();
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

    /// Two flows of a 100 Mbit/s port; the second sends at a rate of its own.
    fn with_a_cheat(mbits: f64, report_every: u64) -> Net {
        let mut net = Net::new(Params::resolved(), mbit(100.0));
        net.report_every = report_every;
        net.sender(1, 20, 0);
        net.sender(2, 20, 0).insists = Some(mbit(mbits));
        net.run(4000);
        net
    }

    #[test]
    fn a_flow_that_does_as_it_likes_loses_its_class() {
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
    fn a_tenth_more_is_forgiven() {
        for report_every in [0, 10] {
            assert_eq!(with_a_cheat(53.9, report_every).logged("flow-demoted"), 0);
        }
    }
}
