//! The law of an RCP router's port: one rate for all flows, driven by spare capacity and queue.
//!
//! Packet fields are untrusted, so their values are bounded. An RTT below `RTT_MIN` or above `RTT_MAX` is replaced by
//! this bound. An RTT of zero means that the packet carries no measurement. The rate stays within [`Law::bounds`]. A
//! late update changes the rate as if only one RTT had passed.

use super::params::Params;
use crate::rate::kit::rtt::{RTT_MAX, RTT_MIN};
use crate::units::{Bytes, Rate, Span, Time};

/// The minimum rate is this many bytes per RTT (RCP-3: 0.01 packets of 1000 bytes).
const FLOOR: f64 = 10.0;

/// The state of one port.
#[derive(Clone, Debug)]
pub struct Law {
    params: Params,
    capacity: Rate,
    /// R, bytes/s. R is not an integer, because on a slow link a step may be below one byte/s.
    rate: f64,
    /// d, the average RTT, seconds.
    rtt: f64,
    /// Time of the last update; `None` before the first call.
    updated: Option<Time>,
    /// Bytes that arrived since the last update.
    arrived: Bytes,
    /// Sums over the packets with an RTT that arrived since the last update. `told` sums the RTT (seconds) times the
    /// bytes of the packet, and `told_by` sums the bytes.
    told: f64,
    told_by: f64,
    /// The input rate y and the queue q of the last update, for traces.
    input: f64,
    queued: Bytes,
}

impl Law {
    /// Returns a new port. The first call of [`on_interval`](Law::on_interval) starts the clock of the law.
    pub fn new(params: Params, capacity: Rate) -> Self {
        let rtt = bounded(params.rtt);
        let mut law = Law {
            params,
            capacity: Rate::ZERO,
            rate: 0.0,
            rtt,
            updated: None,
            arrived: Bytes::ZERO,
            told: 0.0,
            told_by: 0.0,
            input: 0.0,
            queued: Bytes::ZERO,
        };
        law.set_capacity(capacity);
        law
    }

    /// Counts a packet of `size` L3 bytes that arrived for the port, and the RTT that its header carries.
    pub fn on_packet(&mut self, size: Bytes, rtt: Option<Span>) {
        self.on_bytes(size);
        if let Some(rtt) = rtt {
            self.on_rtt(rtt, size);
        }
    }

    /// Counts L3 bytes that arrived since the last call.
    pub fn on_bytes(&mut self, bytes: Bytes) {
        self.arrived += bytes;
    }

    /// Takes an RTT sample (RCP-2). `weight` is the total size of the packets that reported this RTT.
    pub fn on_rtt(&mut self, sample: Span, weight: Bytes) {
        if sample > Span::ZERO {
            self.told += bounded(sample) * weight.as_f64();
            self.told_by += weight.as_f64();
        }
    }

    /// Updates the rate (RCP-1 to RCP-3). T is the actual time since the last update, so a call may be early or late.
    /// If no time has passed, the call only sets the capacity.
    pub fn on_interval(&mut self, now: Time, queued: Bytes, capacity: Rate) {
        self.set_capacity(capacity);
        let elapsed = self.updated.map(|at| now.since(at));
        if elapsed == Some(Span::ZERO) {
            return;
        }
        self.updated = Some(now);
        // Bytes that arrived before the clock started are discarded, because their time is unknown.
        let arrived = core::mem::take(&mut self.arrived);
        let Some(elapsed) = elapsed else { return };
        let elapsed = elapsed.as_secs_f64();
        self.learn_rtt(elapsed);
        (self.input, self.queued) = (arrived.as_f64() / elapsed, queued);
        let target = self.target();
        if target >= 1.0 {
            let p = &self.params;
            let spare = p.alpha * (target - self.input) - p.beta * queued.as_f64() / self.rtt;
            // An update is one step of a differential equation, and a step must be at most one RTT long. A negative
            // result is raised to the minimum by `clip`.
            self.rate *= 1.0 + (elapsed / self.rtt).min(1.0) * spare / target;
        }
        self.clip();
    }

    /// Returns R, the rate of every flow, rounded to the nearest byte/s.
    pub fn rate(&self) -> Rate {
        Rate::from_f64(self.rate + 0.5)
    }

    /// Returns the new rate field of a packet that arrived with `field` (RCP-4). A router never raises the field. A
    /// sender that requests no particular rate sends [`Rate::MAX`]. In ns-2, it sends a negative number.
    pub fn stamp(&self, field: Rate) -> Rate {
        field.min(self.rate())
    }

    /// Returns d, the moving average of the flows' RTTs (RCP-2).
    pub fn rtt(&self) -> Span {
        Span::from_secs_f64(self.rtt)
    }

    /// Returns the time at which [`on_interval`](Law::on_interval) is due: min(d, T_max) after the last update
    /// (RCP-1).
    pub fn next(&self) -> Time {
        self.updated.map_or(Time::ZERO, |at| at + self.rtt().min(self.params.interval_max))
    }

    /// Returns the minimum and maximum rate, bytes/s (RCP-3). If the capacity is below the minimum rate, the rate is
    /// the capacity.
    pub fn bounds(&self) -> (f64, f64) {
        let most = self.target();
        ((FLOOR / self.rtt).min(most), most)
    }

    /// Passes the names and values of the state to `trace`. The values are in bytes/s, seconds and bytes.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("rate", self.rate);
        trace("rtt", self.rtt);
        trace("input", self.input);
        trace("queued", self.queued.as_f64());
    }

    /// Returns eta * C in whole bytes/s.
    fn target(&self) -> f64 {
        self.capacity.mul_f64(self.params.eta).as_f64()
    }

    /// Sets the capacity. The rate of a port without capacity is zero. When the port gets a capacity, it starts with
    /// the first rate (RCP-3).
    fn set_capacity(&mut self, capacity: Rate) {
        let had_none = self.target() < 1.0;
        self.capacity = capacity;
        if had_none {
            self.rate = self.params.first_share * capacity.as_f64();
        }
        self.clip();
    }

    /// Limits the rate to its bounds. Because `max` is called first, NaN becomes the minimum.
    fn clip(&mut self) {
        let (least, most) = self.bounds();
        self.rate = self.rate.max(least).min(most);
    }

    /// Updates d (RCP-2). If the packets' average RTT is above d, d follows with a time constant of one RTT. An average
    /// below d may come from only a few flows. So d follows such an average more slowly, at a speed proportional to the
    /// port's rate.
    fn learn_rtt(&mut self, elapsed: f64) {
        let (told, by) = (core::mem::take(&mut self.told), core::mem::take(&mut self.told_by));
        if by <= 0.0 {
            return;
        }
        let average = told / by;
        let step = elapsed / self.rtt;
        let gain = if average >= self.rtt {
            step
        } else {
            self.rate / self.capacity.as_f64().max(1.0) * (average / self.rtt) * step
        };
        self.rtt = within(self.rtt + gain.min(1.0) * (average - self.rtt));
    }
}

/// Returns an RTT within the bounds, in seconds.
fn bounded(rtt: Span) -> f64 {
    within(rtt.as_secs_f64())
}

fn within(rtt: f64) -> f64 {
    rtt.clamp(RTT_MIN.as_secs_f64(), RTT_MAX.as_secs_f64())
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
