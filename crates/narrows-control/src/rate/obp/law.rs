//! The law of an OBP router's port: the bandwidth left on the link, and the rate that the port writes into a packet's
//! header.
//!
//! All N flows on a link of capacity C add the same remaining bandwidth to their rates at the same time. Let a' be
//! [`Params::a_later`]. From one RTT to the next, the sum S of their rates becomes a' (N C - (N - 1) S). If (N - 1) a'
//! is below 1, the shares become equal, and S settles at N C a' / (1 + (N - 1) a'). With more flows, S oscillates.
//! While the link is overloaded, S shrinks by only the share 1 - a' per RTT, so the queue fills any buffer. OBP-1 has
//! no remedy for this overload, and this implementation adds none.

use super::params::Params;
use crate::feedback::header::Obp;
use crate::units::{Bytes, Rate, Span, Time};

/// The state of one port.
#[derive(Clone, Debug)]
pub struct Law {
    params: Params,
    capacity: Rate,
    /// AB, the bandwidth left. Before the first measurement, AB is the whole capacity.
    available: Rate,
    /// The time of the last measurement, and the bytes that had left the port by that time.
    measured: Option<(Time, Bytes)>,
}

impl Law {
    /// Returns a new port. The first call of [`on_interval`](Law::on_interval) starts the clock of the law.
    pub fn new(params: Params) -> Self {
        Law { params, capacity: Rate::ZERO, available: Rate::ZERO, measured: None }
    }

    /// Called when the deadline of [`next`](Law::next) has passed or the capacity has changed. A new capacity takes
    /// effect at once. `departed` L3 bytes have left the port so far, and `queued` L3 bytes wait.
    ///
    /// AB is the capacity that the link did not use in the elapsed time, minus the queue. Subtracting the queue is our
    /// addition. As a result, a busy link with a queue has no bandwidth left, even if the measurement ends while a
    /// packet is being sent.
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

    /// Returns AB, the bandwidth left.
    pub fn available(&self) -> Rate {
        self.available
    }

    /// Applies OBP-1. The header holds the minima of AB, of the capacity CB and of the rate over the earlier routers of
    /// the path. The rate never exceeds CB. A sender whose header contains no rate of its own is a newcomer.
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

    /// Returns the time at which [`on_interval`](Law::on_interval) is due.
    pub fn next(&self) -> Time {
        self.measured.map_or(Time::ZERO, |(at, _)| at + self.params.interval.max(Span::from_nanos(1)))
    }

    /// Passes the names and values of the state to `trace`. The values are in bytes/s.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("available", self.available.as_f64());
        trace("capacity", self.capacity.as_f64());
    }
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
