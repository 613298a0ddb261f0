//! UDP's part of the link (BRF-21, BRF-23). UDP has a guaranteed share, and may in addition be permitted to borrow idle
//! capacity.
//!
//! If UDP may borrow, its class reserves only the part of the share that UDP needs. So a few DNS queries do not take
//! the whole share, 5 % of the link, from TCP. If UDP's load exceeds the reserve, UDP borrows until the next sample of
//! the load raises the reserve.
//!
//! While UDP borrows, the queue serves it after TCP, so a UDP packet delays TCP by at most its own transmission time.
//! The ceiling falls as TCP's measured rate rises. Otherwise, on a busy link, UDP would fill the headroom that `eta`
//! leaves. The ceiling never falls below UDP's share.

use super::params::Params;
use crate::rate::kit::policer::Policer;
use crate::units::{Bytes, Rate, Span, Time};

/// The ceiling changes in steps of this share of the link, because each change is a request to the kernel.
const STEP: f64 = 0.01;

/// The reserve is the share, halved at most this many times. The reserve has few possible values, because each change
/// of the reserve changes all rates.
const HALVINGS_MAX: u8 = 4;

/// The reserve is at least this multiple of UDP's load, so that UDP can grow.
const ROOM: f64 = 2.0;

/// UDP's load is its highest arrival rate in a window of at least this time and at most twice this time.
const HELD: Span = Span::from_secs(1);

/// Measures the rates of TCP and UDP, and polices UDP if it may not borrow.
#[derive(Debug)]
pub(super) struct Udp {
    share: f64,
    ceiling: f64,
    policer: Policer,
    seen: Option<Time>,
    /// Time of the last sample, and the L3 bytes of TCP and of UDP that had arrived by then.
    sampled: Option<(Time, Bytes, Bytes)>,
    /// Arrival rate of TCP.
    tcp: Rate,
    /// Bytes of UDP that have arrived since the last sample.
    arrived: Bytes,
    /// The maximum of UDP's arrival rate since `turned`, and the maximum in the time [`HELD`] before `turned`.
    peaks: [Rate; 2],
    turned: Time,
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
            arrived: Bytes::ZERO,
            peaks: [Rate::ZERO; 2],
            turned: Time::ZERO,
        }
    }

    /// Returns whether UDP may borrow at a port with a configured capacity.
    pub(super) fn borrows(&self) -> bool {
        self.ceiling > self.share
    }

    /// Records the arrival of a UDP packet.
    pub(super) fn record(&mut self, now: Time, size: Bytes) {
        self.seen = Some(now);
        self.arrived += size;
    }

    /// Returns whether a UDP packet arrived within the last `within`.
    pub(super) fn is_active(&self, now: Time, within: Span) -> bool {
        self.seen.is_some_and(|at| now.since(at) < within)
    }

    /// Returns whether a packet of `size` bytes conforms to `rate`. If it does, consumes `size` tokens.
    pub(super) fn police(&mut self, now: Time, size: Bytes, rate: Rate, burst: Bytes) -> bool {
        self.policer.admit(now, size, rate, burst)
    }

    /// Takes one sample per `period`. `tcp` and `udp` are the totals of bytes that have arrived.
    pub(super) fn observe(&mut self, now: Time, tcp: Bytes, udp: Bytes, period: Span) {
        let Some((at, tcp_before, udp_before)) = self.sampled else {
            self.sampled = Some((now, tcp, udp));
            return;
        };
        let elapsed = now.since(at);
        if elapsed >= period && elapsed > Span::ZERO {
            self.tcp = Rate::of(tcp - tcp_before, elapsed);
            let load = Rate::of(udp - udp_before, elapsed);
            let [peak, before] = self.peaks;
            if now.since(self.turned) < HELD {
                self.peaks = [peak.max(load), before];
            } else {
                (self.peaks, self.turned) = ([load, peak], now);
            }
            self.arrived = Bytes::ZERO;
            self.sampled = Some((now, tcp, udp));
        }
    }

    /// Returns how many times the share can be halved without falling below UDP's need.
    pub(super) fn halvings(&self, link: Rate, period: Span) -> u8 {
        // The load includes packets that arrived since the last sample.
        let recent = Rate::of(self.arrived, period.max(Span::from_nanos(1)));
        let load = self.peaks.into_iter().fold(recent, Rate::max);
        let need = ROOM * load.as_f64() / link.as_f64().max(1.0);
        let enough = |halvings: &u8| self.share / f64::from(1u32 << halvings) >= need;
        (1..=HALVINGS_MAX).take_while(enough).last().unwrap_or(0)
    }

    /// Returns the rate that UDP may reach by borrowing.
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
                udp.observe(now, arrived, Bytes::ZERO, period);
            }
            udp.ceil(link).as_bytes_per_sec()
        };
        let found = [0, 300, 301, 930, 2_000, 0].map(&mut after);
        assert_eq!(found, [950_000, 650_000, 650_000, 50_000, 50_000, 950_000]);
    }

    #[test]
    fn udp_reserves_as_much_of_its_share_as_it_needs() {
        let mut udp = Udp::new(&Params { udp_ceiling: 0.95, ..Params::resolved() });
        let (link, period) = (Rate::from_bytes_per_sec(10_000_000), Span::from_millis(20));
        let (mut now, mut arrived) = (Time::ZERO, Bytes::ZERO);
        let mut after = |millis: u64, bytes_per_ms: u64| {
            for _ in 0..millis {
                now += Span::from_millis(1);
                let size = Bytes::new(bytes_per_ms);
                arrived += size;
                udp.record(now, size);
                udp.observe(now, Bytes::ZERO, arrived, period);
            }
            udp.halvings(link, period)
        };
        // UDP's share of this link is 500 bytes per ms.
        assert_eq!([after(100, 1), after(100, 60), after(1, 10_000)], [4, 2, 0]);
        assert_eq!([after(900, 1), after(1_200, 1)], [0, 4], "the load of the last second counts");
    }
}
