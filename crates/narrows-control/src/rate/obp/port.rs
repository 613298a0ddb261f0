//! OBP at a port, without a flow table: the adapter of the law to [`HeaderController`].

use super::{Law, Params};
use crate::feedback::header::Header;
use crate::rate::{HeaderController, PortCounters};
use crate::units::{Bytes, Time};

/// An OBP router's port.
#[derive(Clone, Debug)]
pub struct ObpPort {
    law: Law,
}

impl ObpPort {
    /// Returns a port with these parameters, which are [valid](crate::rate::PortParameters::check).
    pub fn new(params: Params) -> Self {
        ObpPort { law: Law::new(params) }
    }

    fn update(&mut self, now: Time, port: &PortCounters) {
        let departed = port.departed.iter().copied().sum();
        self.law.on_interval(now, departed, port.backlog(), port.capacity.unwrap_or_default());
    }
}

impl HeaderController for ObpPort {
    fn name(&self) -> &'static str {
        "obp"
    }

    fn on_start(&mut self, now: Time, port: &PortCounters) {
        self.update(now, port);
    }

    /// When a packet departs, writes the remaining bandwidth and the rate into its header (OBP-1).
    fn on_departure(&mut self, _now: Time, _size: Bytes, header: &mut Header, _queued: Bytes) {
        if let Header::Obp(header) = header {
            self.law.stamp(header);
        }
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters) {
        self.update(now, port);
    }

    fn next_timer(&self) -> Time {
        self.law.next()
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(trace);
    }
}
