//! BDR at a port: the adapter of the law to [`HeaderController`]. When a designated packet arrives, the port reads its
//! report and writes the recommendation. The law gets the bytes of all packets from the port's counters.

use super::{Law, Params};
use crate::feedback::header::Header;
use crate::rate::counters::rated;
use crate::rate::{HeaderController, PortCounters};
use crate::units::{Bytes, Rate, Time};

/// A BDR router's port.
#[derive(Clone, Debug)]
pub struct BdrPort {
    params: Params,
    law: Law,
    /// Bytes that had left the port at the last reading: of BDR flows, and of all other flows.
    seen: (Bytes, Bytes),
    /// Time of the last reading, for traces.
    at: Time,
}

impl BdrPort {
    /// Returns a port with these parameters, which are [valid](crate::rate::PortParameters::check).
    pub fn new(params: Params) -> Self {
        let law = Law::new(params.clone(), Rate::ZERO, Time::ZERO);
        BdrPort { params, law, seen: (Bytes::ZERO, Bytes::ZERO), at: Time::ZERO }
    }

    /// Passes to the law the bytes that have left the port since the last reading (BDR-42).
    fn count(&mut self, now: Time, port: &PortCounters) {
        self.at = now;
        let (own, other) = departed(port);
        self.law.on_bytes(own - self.seen.0, other - self.seen.1);
        self.seen = (own, other);
    }
}

/// Returns the bytes that have left the port so far: of flows with the header, and of all other flows.
fn departed(port: &PortCounters) -> (Bytes, Bytes) {
    let own = rated(&port.departed);
    (own, port.departed.iter().copied().sum::<Bytes>() - own)
}

impl HeaderController for BdrPort {
    fn name(&self) -> &'static str {
        "bdr"
    }

    fn on_start(&mut self, now: Time, port: &PortCounters) {
        self.law = Law::new(self.params.clone(), port.capacity.unwrap_or_default(), now);
        // The router may have restarted, so the port's counters may not be zero now.
        self.seen = departed(port);
    }

    /// Writes the recommendation into a designated packet (BDR-41).
    fn on_arrival(&mut self, now: Time, _size: Bytes, header: &mut Header, port: &PortCounters) {
        if let Header::Bdr(header) = header {
            self.count(now, port);
            let ours = self.law.on_report(now, &header.report, port.backlog(), port.limit());
            // A SYN gets no gain, because its flow has no window yet (BDR-D6).
            if !(header.report.syn && matches!(ours, super::Recommendation::Gain(_))) {
                header.advice = Some(ours.stamp(header.advice));
            }
        }
    }

    /// Runs the law's timer (BDR-43).
    fn on_timer(&mut self, now: Time, port: &PortCounters) {
        self.count(now, port);
        self.law.on_timer(now, port.capacity.unwrap_or_default(), port.backlog(), port.limit());
    }

    fn next_timer(&self) -> Time {
        self.law.next()
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(self.at, trace);
    }
}
