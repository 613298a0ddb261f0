//! UDP's part of the link (BRF-21, BRF-23): its share is guaranteed, and beyond it UDP borrows idle capacity.
//!
//! Whenever UDP borrows, the queue serves it after TCP, so a UDP packet delays TCP by at most its own transmission time.
//! The ceiling has a different purpose: it follows the measured rate of TCP, so that UDP does not fill the headroom that
//! `eta` leaves on a busy link. On a busy link, UDP gets its share.

use super::params::Params;
use crate::rate::policer::Policer;
use crate::units::{Bytes, Rate, Span, Time};

/// The ceiling changes in steps of this share of the link, because each change is a request to the kernel.
const STEP: f64 = 0.01;

/// Measures the rate of TCP, and polices UDP if it may not borrow.
#[derive(Debug)]
pub(super) struct Udp {
    share: f64,
    ceiling: f64,
    policer: Policer,
    seen: Option<Time>,
    /// Time of the last sample, and the L3 bytes of TCP that had arrived.
    sampled: Option<(Time, Bytes)>,
    /// Arrival rate of TCP.
    tcp: Rate,
}

impl Udp {
    pub(super) fn new(params: &Params) -> Self {
        Udp {
            share: params.udp_share,
            ceiling: params.udp_ceiling,
            policer: Policer::default(),
            seen: None,
            sampled: None,
            tcp: Rate::ZERO,
        }
    }

    /// Whether UDP may borrow at a port with a configured capacity.
    pub(super) fn borrows(&self) -> bool {
        self.ceiling > self.share
    }

    /// Records the arrival of a UDP packet.
    pub(super) fn record(&mut self, now: Time) {
        self.seen = Some(now);
    }

    /// Whether a UDP packet arrived within this time.
    pub(super) fn is_active(&self, now: Time, within: Span) -> bool {
        self.seen.is_some_and(|at| now.since(at) < within)
    }

    /// Whether the packet conforms to `rate`.
    pub(super) fn police(&mut self, now: Time, size: Bytes, rate: Rate, burst: Bytes) -> bool {
        self.policer.admit(now, size, rate, burst)
    }

    /// Takes one sample per `period`. `tcp` is the total of TCP bytes that have arrived.
    pub(super) fn observe(&mut self, now: Time, tcp: Bytes, period: Span) {
        let Some((at, before)) = self.sampled else {
            self.sampled = Some((now, tcp));
            return;
        };
        let elapsed = now.since(at);
        if elapsed >= period && elapsed > Span::ZERO {
            self.tcp = Rate::of(tcp - before, elapsed);
            self.sampled = Some((now, tcp));
        }
    }

    /// The rate that UDP may reach by borrowing.
    pub(super) fn ceil(&self, link: Rate) -> Rate {
        let idle = self.ceiling - self.tcp.as_f64() / link.as_f64().max(1.0);
        link.mul_f64(((idle / STEP).round() * STEP).min(self.ceiling).max(self.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_may_use_what_tcp_does_not_but_at_least_its_share() {
        let mut udp = Udp::new(&Params { udp_ceiling: 0.95, ..Params::resolved() });
        let (link, period) = (Rate::from_bytes_per_sec(1_000_000), Span::from_millis(20));
        let (mut now, mut arrived) = (Time::ZERO, Bytes::ZERO);
        let mut after = |bytes_per_ms: u64| {
            for _ in 0..100 {
                now += Span::from_millis(1);
                arrived += Bytes::new(bytes_per_ms);
                udp.observe(now, arrived, period);
            }
            udp.ceil(link).as_bytes_per_sec()
        };
        let found = [0, 300, 301, 930, 2_000, 0].map(&mut after);
        assert_eq!(found, [950_000, 650_000, 650_000, 50_000, 50_000, 950_000]);
    }
}
