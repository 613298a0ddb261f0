//! RCP fed by what a port counts: y from its own counters, d from the RTTs that the table measures.
//!
//! Where the header form weights RTTs by the packets that tell them (RCP-2), this one weights each flow's by its bytes:
//! the same, as every packet of a flow tells its RTT. What the port measures is a path's RTT without most of the queue
//! (a smaller sample replaces the estimate), where senders tell their smoothed one.

use super::{Law, Passed, Port};
use crate::rate::rcp;
use crate::units::{Bytes, Rate, Span, Time};

/// RCP of one port.
#[derive(Clone, Debug)]
pub struct Rcp {
    law: rcp::Law,
}

impl Rcp {
    /// With these parameters (see [`rcp::Params::check`]).
    pub fn new(params: rcp::Params) -> Self {
        Rcp { law: rcp::Law::new(params, Rate::ZERO) }
    }
}

impl Law for Rcp {
    const NAME: &'static str = "rcp";

    fn start(&mut self, _now: Time, _port: &Port) {}

    fn on_data(&mut self, bytes: Bytes, rtt: Option<Span>) {
        if let Some(rtt) = rtt {
            self.law.on_rtt(rtt, bytes);
        }
    }

    fn on_timer(&mut self, now: Time, port: &Port, passed: Passed) {
        self.law.on_bytes(passed.arrived);
        self.law.on_interval(now, port.queued, port.capacity);
    }

    fn next(&self) -> Time {
        self.law.next()
    }

    fn rate(&self, _now: Time) -> Rate {
        self.law.rate()
    }

    /// A newcomer begins with what all have; the law sees its bytes when they come.
    fn grant(&self, _now: Time, _newcomers: u64) -> Rate {
        self.law.rate()
    }

    fn trace(&self, _now: Time, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(trace);
    }
}
