//! RCP at a port: the adapter of the law to [`HeaderController`]. The port gives all flows one rate and has no flow
//! table.

use super::{Law, Params};
use crate::feedback::header::Header;
use crate::rate::{HeaderController, PortCounters};
use crate::units::{Bytes, Rate, Time};

/// An RCP router's port.
#[derive(Clone, Debug)]
pub struct RcpPort {
    law: Law,
}

impl RcpPort {
    /// Returns a port with these parameters, which are [valid](crate::rate::PortParameters::check).
    pub fn new(params: Params) -> Self {
        RcpPort { law: Law::new(params, Rate::ZERO) }
    }

    fn update(&mut self, now: Time, port: &PortCounters) {
        self.law.on_interval(now, port.backlog(), port.capacity.unwrap_or_default());
    }
}

impl HeaderController for RcpPort {
    fn name(&self) -> &'static str {
        "rcp"
    }

    fn on_start(&mut self, now: Time, port: &PortCounters) {
        self.update(now, port);
    }

    /// Counts the bytes of all packets, but averages the RTT only over packets that carry one (RCP-2).
    fn on_arrival(&mut self, _now: Time, size: Bytes, header: &mut Header, _port: &PortCounters) {
        let rtt = if let Header::Rcp(header) = header { header.rtt } else { None };
        self.law.on_packet(size, rtt);
    }

    /// Lowers the rate in the header to the port's rate (RCP-4).
    fn on_departure(&mut self, _now: Time, _size: Bytes, header: &mut Header, _queued: Bytes) {
        if let Header::Rcp(header) = header {
            header.rate = self.law.stamp(header.rate);
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
