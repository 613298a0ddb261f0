//! BDR at a port: the law behind the contract. Designated packets are read and written when they arrive; of all others only
//! bytes are counted.

use super::{Law, Params};
use crate::feedback::header::Header;
use crate::rate::{Action, Leaf, PortCounters, Queueing, RateController};
use crate::units::{Bytes, Rate, Time};

/// A BDR router's port.
#[derive(Clone, Debug)]
pub struct BdrPort {
    params: Params,
    law: Law,
    /// Bytes that had left the port at the last look: of BDR's flows, of all others.
    seen: (Bytes, Bytes),
    /// The last look, for traces.
    at: Time,
}

impl BdrPort {
    /// A port with these parameters (see [`Params::check`]).
    pub fn new(params: Params) -> Self {
        let law = Law::new(params.clone(), Rate::ZERO, Time::ZERO);
        BdrPort { params, law, seen: (Bytes::ZERO, Bytes::ZERO), at: Time::ZERO }
    }

    /// BDR-42, at the moments that matter instead of at each packet.
    fn count(&mut self, now: Time, port: &PortCounters) {
        self.at = now;
        let own = port.departed[Leaf::Mouse as usize] + port.departed[Leaf::Elephant as usize];
        let other = port.departed.iter().copied().sum::<Bytes>() - own;
        self.law.on_bytes(own - self.seen.0, other - self.seen.1);
        self.seen = (own, other);
    }
}

/// The limit of the port's queue, if packets of `size` are what it counts.
pub(in crate::rate) fn limit(port: &PortCounters) -> Option<Bytes> {
    let packets = port.limit_packets[Leaf::Elephant as usize];
    (packets > 0).then(|| Bytes::new(u64::from(packets) * 1500))
}

impl RateController for BdrPort {
    fn name(&self) -> &'static str {
        "bdr"
    }

    fn queueing(&self) -> Queueing {
        Queueing::Own
    }

    fn works_on_headers(&self) -> bool {
        true
    }

    fn must_be_told(&self) -> bool {
        true
    }

    fn on_start(&mut self, now: Time, port: &PortCounters, _actions: &mut Vec<Action>) {
        self.law = Law::new(self.params.clone(), port.capacity.unwrap_or_default(), now);
    }

    /// BDR-41.
    fn on_arrival(&mut self, now: Time, _size: Bytes, header: &mut Header, port: &PortCounters) {
        if let Header::Bdr(header) = header {
            self.count(now, port);
            let ours = self.law.on_report(now, &header.report, port.backlog(), limit(port));
            // A handshake has no window that a gain could be added to (BDR-D6).
            if !(header.report.syn && matches!(ours, super::Recommendation::Gain(_))) {
                header.advice = Some(ours.stamp(header.advice));
            }
        }
    }

    /// BDR-43.
    fn on_timer(&mut self, now: Time, port: &PortCounters, _actions: &mut Vec<Action>) {
        self.count(now, port);
        self.law.on_timer(now, port.capacity.unwrap_or_default(), port.backlog(), limit(port));
    }

    fn next_timer(&self) -> Time {
        self.law.next()
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(self.at, trace);
    }
}
