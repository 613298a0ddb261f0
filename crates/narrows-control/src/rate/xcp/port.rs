//! XCP at a port: the adapter of the law to [`HeaderController`]. The port reads the header of every packet when the
//! packet arrives, and changes the header when the packet departs.

use super::{Law, Params};
use crate::feedback::header::Header;
use crate::rate::{HeaderController, PortCounters};
use crate::units::{Bytes, Rate, Time};

/// An XCP router's port.
#[derive(Clone, Debug)]
pub struct XcpPort {
    params: Params,
    law: Law,
}

impl XcpPort {
    /// Returns a port with these parameters, which are [valid](crate::rate::PortParameters::check).
    pub fn new(params: Params) -> Self {
        XcpPort { law: Law::new(params.clone(), Rate::ZERO, Time::ZERO), params }
    }
}

impl HeaderController for XcpPort {
    fn name(&self) -> &'static str {
        "xcp"
    }

    fn on_start(&mut self, now: Time, port: &PortCounters) {
        self.law = Law::new(self.params.clone(), port.capacity.unwrap_or_default(), now);
    }

    /// Counts the packet's bytes, X and RTT (XCP-1). For a packet without an XCP header, counts only the bytes.
    fn on_arrival(&mut self, _now: Time, size: Bytes, header: &mut Header, _port: &PortCounters) {
        match header {
            Header::Xcp(header) => self.law.on_arrival(size, header),
            _ => self.law.on_arrival(size, &super::Header::default()),
        }
    }

    /// Measures the queue (XCP-3), and lowers the request to the packet's share (XCP-4).
    fn on_departure(&mut self, now: Time, size: Bytes, header: &mut Header, queued: Bytes) {
        match header {
            Header::Xcp(header) => self.law.on_departure(header, size, queued, now),
            _ => self.law.on_departure(&mut super::Header::default(), size, queued, now),
        }
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters) {
        self.law.on_interval(now, port.capacity.unwrap_or_default());
    }

    fn next_timer(&self) -> Time {
        self.law.next()
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(trace);
    }
}
