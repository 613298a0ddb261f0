//! RCP based on the port's own counts. The port takes the input rate y from its counters, and the average RTT d from
//! the RTTs that its flow table measures.
//!
//! With headers, RTTs are weighted by the packets that carry them (RCP-2). Without headers, the RTT of each flow is
//! weighted by the flow's bytes, which is equivalent. But the RTTs themselves differ. Headers carry the sender's
//! smoothed RTT. The port's own estimate contains little queueing delay, because a sample below the estimate replaces
//! it.

use super::Params;
use super::law;
use crate::rate::uniform::{Law, Passed, Port};
use crate::units::{Bytes, Rate, Span, Time};

/// RCP of one port.
#[derive(Clone, Debug)]
pub struct Stamped {
    law: law::Law,
}

impl Stamped {
    /// Returns a port of RCP with [valid](crate::rate::PortParameters::check) parameters.
    pub fn new(params: Params) -> Self {
        Stamped { law: law::Law::new(params, Rate::ZERO) }
    }
}

impl Law for Stamped {
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

    /// Returns the common rate, which newcomers get too.
    fn grant(&self, _now: Time, _newcomers: u64) -> Rate {
        self.law.rate()
    }

    fn trace(&self, _now: Time, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(trace);
    }
}
