//! BDR based on the port's own counts: the port produces the reports of designated packets itself.
//!
//! The estimators are the same as in the header form, although a port with a flow table could
//! simply count its flows.

use super::{Params, Report, law};
use crate::rate::uniform::{Law, Passed, Port};
use crate::units::{Bytes, Rate, Span, Time};

/// BDR of one port.
#[derive(Clone, Debug)]
pub struct Stamped {
    params: Params,
    law: law::Law,
    mtu: Bytes,
}

impl Stamped {
    /// Returns a port of BDR with [valid](crate::rate::PortParameters::check) parameters for full packets of `mtu`
    /// bytes.
    pub fn new(params: Params, mtu: Bytes) -> Self {
        let law = law::Law::new(params.clone(), Rate::ZERO, Time::ZERO);
        Stamped { params, law, mtu }
    }
}

impl Law for Stamped {
    const NAME: &'static str = "bdr";

    fn start(&mut self, now: Time, port: &Port) {
        self.law = law::Law::new(self.params.clone(), port.capacity, now);
    }

    fn on_begin(&mut self, now: Time, port: &Port) {
        self.law.on_report(now, &Report { syn: true, ..Report::default() }, port.queued, port.limit);
    }

    fn on_report(&mut self, now: Time, lived: Span, first: bool, last: bool, port: &Port) {
        let report = Report { first_data: first, fin: last, t_rep: lived, ..Report::default() };
        self.law.on_report(now, &report, port.queued, port.limit);
    }

    fn on_timer(&mut self, now: Time, port: &Port, passed: Passed) {
        self.law.on_bytes(passed.own, passed.other);
        self.law.on_timer(now, port.capacity, port.queued, port.limit);
    }

    fn next(&self) -> Time {
        self.law.next()
    }

    fn rate(&self, now: Time) -> Rate {
        self.law.rate(now)
    }

    fn grant(&self, now: Time, newcomers: u64) -> Rate {
        self.law.rate_with(now, newcomers)
    }

    /// Returns the rate of one packet per RTT, which is BDR-25's minimum window. A flow must send something, because
    /// a flow that sends nothing receives no feedback.
    fn least(&self, rtt: Span) -> Rate {
        Rate::of(self.mtu, rtt).min(self.law.capacity()).max(Rate::from_bytes_per_sec(1))
    }

    fn trace(&self, now: Time, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(now, trace);
    }
}
