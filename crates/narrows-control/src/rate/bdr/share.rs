//! A flow's share: the fair share of resolved mode, the paper's gain, and redistribution.

use crate::units::Time;

/// The inputs of BDR-23 at a port, in bytes, bytes/s and seconds.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) capacity: f64,
    pub(super) eta: f64,
    /// y_bg, the rate of flows without BDR.
    pub(super) background: f64,
    pub(super) queued: f64,
    /// T_q, the time to drain the queue.
    pub(super) drain: f64,
}

impl Port {
    /// Returns the bandwidth to divide among flows (BDR-23): max(0, eta C - y_bg - q / T_q).
    pub(super) fn to_share(&self) -> f64 {
        (self.eta * self.capacity - self.background - self.queued / self.drain).max(0.0)
    }

    /// Returns the share of one of `flows` flows, scaled by `growth`, but at most the bandwidth to divide. If `flows`
    /// is below 1, the link is divided as for one flow.
    pub(super) fn share(&self, flows: f64, growth: f64) -> f64 {
        let all = self.to_share();
        (all / flows.max(1.0) * growth).min(all)
    }
}

/// Returns the number of packets that each flow may add to its window. This is the result of the paper's equations (2)
/// and (3), computed from bytes. `available` is in bytes/s and may be negative. The result is zero where the paper
/// divides by zero: before the first report, and for a packet without a window (BDR-D6).
pub(super) fn gain(available: f64, flows: f64, size_cwin: f64, time_per_cwin: f64, packet: f64) -> f64 {
    if flows <= 0.0 || time_per_cwin <= 0.0 || size_cwin <= 0.0 || packet <= 0.0 {
        return 0.0;
    }
    let bw_per_flow = packet * size_cwin / time_per_cwin;
    (available / flows) / (bw_per_flow / size_cwin)
}

/// The link's state for redistribution.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Measured utilisation u.
    pub(super) used: f64,
    /// Share of the link to use.
    pub(super) eta: f64,
    /// The link is not full if `used` is below this share of `eta`.
    pub(super) threshold: f64,
    /// The queue is above its threshold.
    pub(super) queue: bool,
    /// The port has no flows. Shares do not grow on an idle port (ours). Otherwise the factor g of every share
    /// ([`Redistribution`]) would grow without traffic. New flows would then together get a multiple of the link's
    /// capacity.
    pub(super) idle: bool,
}

/// BDR-24: the factor g, which multiplies every share. g grows while flows that are limited elsewhere leave parts of
/// their shares unused.
///
/// g is at most eta / u. As g grows, u rises, because the flows that are not limited elsewhere use their larger shares.
/// While u is between the threshold and eta, g keeps its value. g becomes 1 again if u exceeds eta, or if the port has
/// a queue or no flows.
#[derive(Clone, Debug)]
pub(super) struct Redistribution {
    factor: f64,
    low_since: Option<Time>,
}

impl Default for Redistribution {
    fn default() -> Self {
        Redistribution { factor: 1.0, low_since: None }
    }
}

impl Redistribution {
    /// Returns g, at least 1.
    pub(super) fn factor(&self) -> f64 {
        self.factor
    }

    /// Resets g to 1.
    pub(super) fn end(&mut self) {
        *self = Redistribution::default();
    }

    /// Updates g. The timer last expired `elapsed` seconds ago. The mean time between reports is `mean` seconds, and g
    /// grows by `step` in this time.
    pub(super) fn on_timer(&mut self, now: Time, elapsed: f64, mean: f64, step: f64, usage: &Usage) {
        if usage.used > usage.eta || usage.queue || usage.idle {
            return self.end();
        }
        if usage.used >= usage.threshold * usage.eta {
            self.low_since = None;
            return;
        }
        let since = *self.low_since.get_or_insert(now);
        // u may be zero, so the divisor is at least 0.001.
        let most = usage.eta / usage.used.max(1e-3);
        if now.since(since).as_secs_f64() >= 2.0 * mean && self.factor < most {
            // A late timer must not cause a larger step.
            self.factor = (self.factor + step * (elapsed / mean).min(1.0)).min(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::network::bdr::designator::{apply_gain, window};
    use crate::units::{Bytes, Rate, Span};

    const MBIT: f64 = 1e6 / 8.0;
    const RTT: Span = Span::from_millis(100);

    fn port(mbit: f64, eta: f64) -> Port {
        Port { capacity: mbit * MBIT, eta, background: 0.0, queued: 0.0, drain: 0.2 }
    }

    fn packets(share: f64) -> u32 {
        window(Rate::from_f64(share), RTT, Bytes::new(1000))
    }

    #[test]
    fn tv_d1_rate_and_gain_of_a_flow() {
        // 20 packets of 1000 B in 0.1 s are 1.6 Mbit/s, so one packet is 80 kbit/s.
        let up = gain(200.0 * MBIT, 400.0, 20.0, 0.1, 1000.0);
        let down = gain(-40.0 * MBIT, 400.0, 20.0, 0.1, 1000.0);
        assert!((up - 6.25).abs() < 1e-12 && (down + 1.25).abs() < 1e-12, "{up} {down}");
        assert_eq!(apply_gain(20, up as i32), 26);
        assert_eq!(apply_gain(20, down as i32), 19);
    }

    #[test]
    fn tv_d3_share_and_window() {
        for (mbit, flows, eta, exact, whole) in [
            (1000.0, 400.0, 1.0, 31.25, 31),
            (1000.0, 400.0, 0.98, 30.625, 30),
            (100.0, 80.0, 0.98, 15.3125, 15),
            (1000.0, 600.0, 1.0, 20.8333, 20),
            (100.0, 80.0, 1.0, 15.625, 15),
        ] {
            let share = port(mbit, eta).share(flows, 1.0);
            assert!((share * 0.1 / 1000.0 - exact).abs() < 1e-4, "{share}");
            assert_eq!(packets(share), whole);
        }
    }

    /// TV-D5: a flow takes one round trip for the handshake and one for each window of TV-D3.
    #[test]
    fn tv_d5_round_trips_by_size() {
        let window = packets(port(1000.0, 1.0).share(400.0, 1.0));
        for (size, rtts) in [(5, 2), (12, 2), (30, 2), (31, 2), (60, 3), (300, 11)] {
            assert_eq!(1 + u32::div_ceil(size, window), rtts, "{size} packets");
        }
    }

    /// TV-D7, BDR-D2: the paper changes all windows by the same number of packets, so large windows stay larger.
    #[test]
    fn tv_d7_equal_increments_are_not_fair_and_rates_are() {
        let over = -12.5 * 1000.0 / 0.1;
        let (large, small) = (gain(over, 2.0, 45.0, 0.1, 1000.0), gain(over, 2.0, 5.0, 0.1, 1000.0));
        assert!((large + 6.25).abs() < 1e-9 && (small - large).abs() < 1e-9, "{large} {small}");
        let down = large as i32;
        assert_eq!((apply_gain(45, down), apply_gain(5, down)), (39, 1));
        let link = Port { capacity: 50.0 * 1000.0 / 0.1, ..port(0.0, 1.0) };
        assert_eq!(packets(link.share(2.0, 1.0)), 25);
    }

    #[test]
    fn tv_d10_background_and_queue_come_first() {
        let port = Port { background: 8.0 * MBIT, queued: 150_000.0 / 8.0, drain: 0.2, ..port(100.0, 0.98) };
        let share = port.share(80.0, 1.0);
        assert!((share / MBIT - 1.115_625).abs() < 1e-9, "{share}");
        assert_eq!(packets(share), 13);
        assert_eq!(Port { queued: 1e12, ..port }.share(80.0, 1.0), 0.0);
    }

    #[test]
    fn a_division_by_zero_in_the_paper_gives_zero() {
        for (flows, size, time, packet) in
            [(0.0, 1.0, 1.0, 1.0), (1.0, 0.0, 1.0, 1.0), (1.0, 1.0, 0.0, 1.0), (1.0, 1.0, 1.0, 0.0)]
        {
            assert_eq!(gain(1e9, flows, size, time, packet), 0.0);
        }
    }

    fn run(redistribution: &mut Redistribution, from: u64, to: u64, used: f64) {
        let usage = Usage { used, eta: 0.98, threshold: 0.9, queue: false, idle: false };
        for half in from..to {
            let now = Time::ZERO + Span::from_millis(50 * half);
            redistribution.on_timer(now, 0.05, 0.1, 0.1, &usage);
        }
    }

    #[test]
    fn growth_waits_two_reports_then_adds_a_tenth_per_report() {
        let mut g = Redistribution::default();
        run(&mut g, 0, 4, 0.5);
        assert_eq!(g.factor(), 1.0, "the utilisation was not low for 2 x 0.1 s yet");
        run(&mut g, 4, 8, 0.5);
        assert!((g.factor() - 1.2).abs() < 1e-9, "{}", g.factor());
        run(&mut g, 8, 100, 0.5);
        assert!((g.factor() - 1.96).abs() < 1e-9, "eta / u: {}", g.factor());
        run(&mut g, 100, 110, 0.9);
        assert!((g.factor() - 1.96).abs() < 1e-9, "kept between the threshold and eta");
        run(&mut g, 110, 111, 0.99);
        assert_eq!(g.factor(), 1.0);
    }

    #[test]
    fn a_busy_moment_restarts_the_wait() {
        let mut g = Redistribution::default();
        run(&mut g, 0, 4, 0.5);
        run(&mut g, 4, 5, 0.95);
        run(&mut g, 5, 9, 0.5);
        assert_eq!(g.factor(), 1.0);
        run(&mut g, 9, 10, 0.5);
        assert!(g.factor() > 1.0);
    }
}
