//! A plain FIFO. The departure time of a packet is known when the packet arrives.
//!
//! For each waiting packet, the FIFO stores the start of transmission and the size. From these values, it computes how
//! many packets and bytes are waiting.

use narrows_control::units::{Span, Time};

use super::{fits, mark};
use crate::engine::{Random, Ring, Stream};
use crate::net::Service;
use crate::packet::Packet;
use crate::plan::{LimitPlan, MarkPlan};

/// State of a FIFO.
#[derive(Clone, Debug)]
pub(crate) struct Fifo {
    limit: LimitPlan,
    early: Early,
    /// The packets whose transmission has not started: (start of transmission, size).
    waiting: Ring<(Time, u32)>,
    bytes: u64,
}

/// The rule by which packets are marked or dropped before the queue is full.
#[derive(Clone, Debug)]
enum Early {
    Never,
    Threshold(u32),
    Red(Box<Red>),
}

/// RED (Floyd and Jacobson 1993), in the gentle variant.
#[derive(Clone, Debug)]
struct Red {
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    ecn: bool,
    average: f64,
    /// Number of packets since RED last marked or dropped a packet.
    count: i64,
    idle_since: Option<Time>,
    random: Random,
}

/// The decision about an arriving packet.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Accept,
    AcceptMarked,
    Drop,
}

impl Fifo {
    pub(crate) fn new(limit: LimitPlan, plan: &MarkPlan, seed: u64, link: u64) -> Self {
        let early = match *plan {
            MarkPlan::None => Early::Never,
            MarkPlan::Threshold { packets } => Early::Threshold(packets),
            MarkPlan::Red { min, max, max_p, weight, ecn } => Early::Red(Box::new(Red {
                min,
                max,
                max_p,
                weight,
                ecn,
                average: 0.0,
                count: -1,
                idle_since: Some(Time::ZERO),
                random: Random::new(seed, Stream::Red.of(link)),
            })),
        };
        Fifo { limit, early, waiting: Ring::new(), bytes: 0 }
    }

    /// Decides whether to accept, mark or drop an arriving packet. After an idle time, RED uses the transmission time of
    /// the previous packet to lower its average queue length.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, packet: &mut Packet, service: &Service) -> Verdict {
        self.expire(now);
        let waiting = self.waiting.len() as u32;
        if !fits(self.limit, waiting, self.bytes, packet.size as u32) {
            return Verdict::Drop;
        }
        match &mut self.early {
            Early::Never => Verdict::Accept,
            Early::Threshold(k) => {
                if waiting > *k && mark(packet) {
                    Verdict::AcceptMarked
                } else {
                    Verdict::Accept
                }
            }
            Early::Red(red) => {
                // For a link whose rate changes, a fixed time is used.
                let slot = match service {
                    Service::Constant { last, .. } => last.1,
                    _ => Span::from_millis(1),
                };
                red.arrive(now, waiting, packet, slot)
            }
        }
    }

    /// Adds an accepted packet, whose transmission starts at `start`.
    #[inline]
    pub(crate) fn record(&mut self, now: Time, start: Time, size: u32) {
        if start > now {
            self.waiting.push_back((start, size));
            self.bytes += size as u64;
        }
    }

    /// Removes the packets whose transmission has started.
    #[inline]
    fn expire(&mut self, now: Time) {
        while let Some(&(start, size)) = self.waiting.front() {
            if start > now {
                break;
            }
            self.bytes -= size as u64;
            self.waiting.pop_front();
        }
    }

    /// Returns the numbers of packets and bytes that are waiting at `now`.
    pub(crate) fn backlog(&mut self, now: Time) -> (u32, u64) {
        self.expire(now);
        (self.waiting.len() as u32, self.bytes)
    }
}

impl Red {
    #[inline(never)]
    fn arrive(&mut self, now: Time, waiting: u32, packet: &mut Packet, slot: Span) -> Verdict {
        if waiting > 0 {
            self.average += self.weight * (waiting as f64 - self.average);
            self.idle_since = None;
        } else {
            // Section 4: while the queue is idle, the average decays as if a packet arrived at an empty queue in each
            // `slot`.
            let since = self.idle_since.replace(now).unwrap_or(now);
            let slots = now.since(since).as_nanos() as f64 / slot.as_nanos().max(1) as f64;
            self.average *= libm::pow(1.0 - self.weight, slots.max(1.0));
        }
        let p = if self.average < self.min {
            self.count = -1;
            return Verdict::Accept;
        } else if self.average < self.max {
            self.max_p * (self.average - self.min) / (self.max - self.min)
        } else {
            (self.max_p + (1.0 - self.max_p) * (self.average - self.max) / self.max).min(1.0)
        };
        self.count += 1;
        // This step spreads the marks evenly. The gaps between marks then have a uniform distribution. Without this
        // step, they would have a geometric distribution (section 7).
        let spread = 1.0 - self.count as f64 * p;
        let chance = if spread <= 0.0 { 1.0 } else { (p / spread).min(1.0) };
        if !self.random.chance(chance) {
            return Verdict::Accept;
        }
        self.count = 0;
        if self.ecn && mark(packet) { Verdict::AcceptMarked } else { Verdict::Drop }
    }
}
