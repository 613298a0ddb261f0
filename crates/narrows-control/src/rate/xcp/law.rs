//! The law of an XCP router's port. Once per average RTT it computes the change of the aggregate rate (efficiency). The
//! law then distributes the change over packets, so that the rates of flows become equal (fairness).
//!
//! Headers are untrusted, so their values are bounded. An RTT above `rtt_max` is replaced by `rtt_max`, and a packet
//! without an RTT counts only as traffic. In each interval, the port distributes at most the increase and the decrease
//! that it has computed. A value that is too large for an integer becomes the largest integer. In two respects the law
//! trusts headers. A large negative Delta uses up the decrease left to distribute, res_neg (XCP-4). A large X uses up
//! the increase left to distribute, res_pos.

use super::header::Header;
use super::params::Params;
use super::queue::Queue;
use crate::units::{Bytes, Rate, Span, Time};

/// Sums over the packets of one control interval.
#[derive(Copy, Clone, Debug, Default)]
struct Sums {
    /// L3 bytes.
    bytes: Bytes,
    /// Sum of X, seconds. This is the number of flows times the length of the interval.
    x: f64,
    /// Sum of X * RTT, seconds^2. The RTTs of all flows have equal weight, independent of their rates.
    x_rtt: f64,
}

/// The amount left to distribute in one direction (increase or decrease), and the factor of each packet.
#[derive(Copy, Clone, Debug, Default)]
struct Residue {
    /// The amount left, bytes/s.
    left: f64,
    /// The factor of each packet: its share of an increase per second of its X, or of a decrease per byte of its size.
    per: f64,
}

impl Residue {
    /// Distributes `total` over packets whose contributions sum to `base`. The factor is zero if `base` is zero.
    fn new(total: f64, base: f64) -> Self {
        Residue { left: total, per: if base > 0.0 { total / base } else { 0.0 } }
    }

    /// Returns the share of a packet that contributes `of` to the base.
    fn part(&self, of: f64) -> f64 {
        self.left.min(self.per * of)
    }

    fn take(&mut self, part: f64) {
        self.left -= part;
        if self.left <= 0.0 {
            *self = Residue::default();
        }
    }
}

/// The state of one port.
#[derive(Clone, Debug)]
pub struct Law {
    params: Params,
    capacity: Rate,
    queue: Queue,
    /// The control interval: its start, its length Te, and the sums over its arrivals.
    started: Time,
    interval: Span,
    sums: Sums,
    /// Average RTT, seconds.
    rtt: f64,
    /// The draft's res_pos and Cp are in `positive`, and its res_neg and Cn are in `negative`.
    positive: Residue,
    negative: Residue,
    /// Values of XCP-2 for the last interval, bytes/s, for traces: the input, the change F of the aggregate rate, and
    /// the redistributed traffic S.
    input: f64,
    feedback: f64,
    shuffled: f64,
}

impl Law {
    /// Returns a new port. The port grants nothing before the end of its first interval.
    pub fn new(params: Params, capacity: Rate, now: Time) -> Self {
        let interval = params.te_first.max(params.te_min);
        Law {
            capacity,
            queue: Queue::new(now, interval),
            started: now,
            interval,
            sums: Sums::default(),
            rtt: interval.as_secs_f64(),
            positive: Residue::default(),
            negative: Residue::default(),
            input: 0.0,
            feedback: 0.0,
            shuffled: 0.0,
            params,
        }
    }

    /// Counts a packet of `size` L3 bytes that arrived for the port (XCP-1). If a packet has no header, pass the
    /// default header.
    pub fn on_arrival(&mut self, size: Bytes, header: &Header) {
        self.sums.bytes += size;
        // A packet without an RTT gets no share (XCP-4). Adding its X would lower the average RTT and the shares of
        // other packets.
        let Some(rtt) = header.rtt() else { return };
        let x = header.x_secs();
        self.sums.x += x;
        self.sums.x_rtt += x * rtt.min(self.params.rtt_max).as_secs_f64();
    }

    /// Called when a packet departs and leaves `queued` bytes behind. Updates the queue measurement (XCP-3) and
    /// lowers the request in the header to the packet's share (XCP-4).
    pub fn on_departure(&mut self, header: &mut Header, size: Bytes, queued: Bytes, now: Time) {
        self.queue.on_departure(queued);
        self.queue.on_timer(now, self.rtt(), self.capacity);
        if header.rtt().is_none() {
            header.delta = 0;
            return;
        }
        let mut positive = self.positive.part(header.x_secs());
        let mut negative = self.negative.part(size.as_f64());
        let feedback = positive - negative;
        let asked = header.delta as f64;
        if asked >= feedback {
            // The conversion truncates towards zero, so the sum of the shares never exceeds the amount to distribute.
            header.delta = feedback as i64;
        } else {
            // Another router grants less than this router. The difference is subtracted from the decrease that this
            // router must distribute, so other packets lose less.
            negative = self.negative.left.min(negative + feedback - asked);
            positive = (asked + negative).max(0.0);
        }
        self.positive.take(positive);
        self.negative.take(negative);
    }

    /// Ends the queue measurement (XCP-3) and the control interval (XCP-2) if they are due. Sets
    /// the link's capacity.
    pub fn on_interval(&mut self, now: Time, capacity: Rate) {
        self.capacity = capacity;
        self.queue.on_timer(now, self.rtt(), capacity);
        if now >= self.started + self.interval {
            self.control(now);
        }
    }

    /// Returns the time at which [`on_interval`](Law::on_interval) is due.
    pub fn next(&self) -> Time {
        (self.started + self.interval).min(self.queue.due())
    }

    /// Returns the flows' average RTT (XCP-2).
    pub fn rtt(&self) -> Span {
        Span::from_secs_f64(self.rtt)
    }

    /// Returns res_pos and res_neg: the amounts left to distribute in this interval, bytes/s.
    pub fn residues(&self) -> (f64, f64) {
        (self.positive.left, self.negative.left)
    }

    /// Passes the names and values of the state to `trace`. The values are in bytes/s, seconds and bytes, but Cp is in
    /// bytes/s^2 and Cn is in 1/s.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("input", self.input);
        trace("rtt", self.rtt);
        trace("queue_min", self.queue.lasting().as_f64());
        trace("feedback", self.feedback);
        trace("shuffle", self.shuffled);
        trace("res_pos", self.positive.left);
        trace("res_neg", self.negative.left);
        trace("c_pos", self.positive.per);
        trace("c_neg", self.negative.per);
    }

    /// Computes the values of XCP-2, with the actual length of the interval.
    fn control(&mut self, now: Time) {
        let elapsed = now.since(self.started).as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        self.started = now;
        let sums = core::mem::take(&mut self.sums);
        if sums.x > 0.0 {
            // The average is at least a microsecond, the unit of RTTs in headers.
            self.rtt = (sums.x_rtt / sums.x).min(self.params.rtt_max.as_secs_f64());
        }
        self.interval = self.rtt().max(self.params.te_min);
        let p = &self.params;
        self.input = sums.bytes.as_f64() / elapsed;
        self.feedback = p.alpha * (self.capacity.as_f64() - self.input)
            - p.beta * self.queue.lasting().as_f64() / self.rtt.max(1e-6);
        self.shuffled = (p.shuffle * self.input - self.feedback.abs()).max(0.0);
        // Amounts that were not distributed in the last interval are discarded.
        self.positive = Residue::new(self.feedback.max(0.0) + self.shuffled, sums.x);
        self.negative = Residue::new((-self.feedback).max(0.0) + self.shuffled, sums.bytes.as_f64());
    }
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
