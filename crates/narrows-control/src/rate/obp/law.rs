//! The law of an OBP router's port: what is left of the link, and the rate that follows for the packet at hand.
//!
//! Each of N flows takes all that is left at the same time. From one RTT to the next their sum S becomes a' (N C - (N - 1) S):
//! it comes to rest, at N C a' / (1 + (N - 1) a'), with equal shares, if (N - 1) a' < 1. More flows swing, and as what swings
//! above the capacity drains by 1 - a' of it per RTT only, they queue up whatever there is of a buffer. OBP-1 has nothing
//! against it, and we add nothing.

use super::params::Params;
use crate::feedback::header::Obp;
use crate::units::{Bytes, Rate, Span, Time};

/// The state of one port.
#[derive(Clone, Debug)]
pub struct Law {
    params: Params,
    capacity: Rate,
    /// AB. All of the capacity before the first measurement.
    available: Rate,
    /// The last measurement, and bytes that had left by then.
    measured: Option<(Time, Bytes)>,
}

impl Law {
    /// A port that nothing has passed yet. The first [`on_interval`](Law::on_interval) starts its clock.
    pub fn new(params: Params) -> Self {
        Law { params, capacity: Rate::ZERO, available: Rate::ZERO, measured: None }
    }

    /// The deadline of [`next`](Law::next) has come, or the capacity has changed, which counts at once. `departed` L3 bytes have
    /// left the port so far, and `queued` wait.
    ///
    /// AB is what the link could have sent besides in the time gone by, and what waits would have been sent first (ours): so
    /// there is nothing left as long as there is a queue, however the departures fall into the interval.
    pub fn on_interval(&mut self, now: Time, departed: Bytes, queued: Bytes, capacity: Rate) {
        if self.measured.is_none() {
            self.available = capacity;
        }
        self.capacity = capacity;
        self.available = self.available.min(capacity);
        if now < self.next() {
            return;
        }
        if let Some((at, before)) = self.measured {
            let elapsed = now.since(at);
            let used = departed - before + queued;
            self.available = Rate::of(capacity.bytes_in(elapsed) - used, elapsed).min(capacity);
        }
        self.measured = Some((now, departed));
    }

    /// What is left, AB.
    pub fn available(&self) -> Rate {
        self.available
    }

    /// OBP-1, with what the routers before wrote: AB and CB are the least of the path, and so is the rate, which never exceeds
    /// CB. A sender that tells no rate of its own is a newcomer.
    pub fn stamp(&self, header: &mut Obp) {
        header.available = header.available.min(self.available);
        header.capacity = header.capacity.min(self.capacity);
        let (left, narrowest) = (header.available.as_f64(), header.capacity.as_f64());
        let rate = match header.own {
            None => self.params.a * left + self.params.b * narrowest,
            Some(own) => self.params.a_later * (left + own.as_f64()),
        };
        header.rate = header.rate.min(Rate::from_f64(rate)).min(header.capacity);
    }

    /// When [`on_interval`](Law::on_interval) is due.
    pub fn next(&self) -> Time {
        self.measured.map_or(Time::ZERO, |(at, _)| at + self.params.interval.max(Span::from_nanos(1)))
    }

    /// Names and values of the state, for traces: bytes/s.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("available", self.available.as_f64());
        trace("capacity", self.capacity.as_f64());
    }
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
