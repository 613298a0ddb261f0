//! H-TCP: the increase grows with the time since the last congestion, and the decrease depends on
//! the depth of the queue.
//!
//! Source: Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks" (PFLDnet 2004),
//! draft-leith-tcp-htcp; Linux `tcp_htcp.c`. The growth factor, alpha and beta are integers, as in Linux.
//!
//! Deviations from Linux:
//! * Times are in nanoseconds, not jiffies.
//! * A sample uses the recovery state after the ACK, not the state before the ACK.

use super::slow_start::{in_slow_start, slow_start};
use crate::congestion::{Ack, Congestion, Connection, Controller, State, Window};
use crate::parameter::{flag, number, time_from};
use crate::units::{NANOS_PER_SEC, Span, Time};

crate::parameters! {
    /// Parameters of [`Htcp`].
    pub struct Params {
        /// Whether the increase is scaled by the minimum RTT divided by `reference_rtt`.
        pub rtt_scaling: bool = true, flag().from("use_rtt_scaling").module("use_rtt_scaling", 1.0);
        /// RTT at which `rtt_scaling` does not change the increase.
        pub reference_rtt: Span = Span::from_millis(100), time_from(Span::from_millis(1), Span::from_secs(10)).from("tcp_htcp.c");
        /// Whether congestion halves the window if the throughput has changed by more than a fifth since the last
        /// congestion.
        pub bandwidth_switch: bool = true, flag().from("use_bandwidth_switch").module("use_bandwidth_switch", 1.0);
        /// In this time after the last congestion, the window grows as in Reno.
        pub reno_for: Span = Span::from_secs(1), time_from(Span::ZERO, Span::from_secs(100)).from("Delta_L of the draft");
        /// Minimum share of the window kept on congestion.
        pub beta_min: u32 = 64, number(0.1, 0.95).per(128).from("BETA_MIN");
        /// Maximum share of the window kept on congestion.
        pub beta_max: u32 = 102, number(0.1, 0.95).per(128).from("BETA_MAX; 0.8");
        /// If the minimum RTT is at most this time, congestion halves the window.
        pub adaptive_above: Span = Span::from_millis(10), time_from(Span::ZERO, Span::from_secs(10)).from("tcp_htcp.c");
        /// A sample is ignored if it exceeds the largest RTT by more than this time.
        pub max_rtt_step: Span = Span::from_millis(20), time_from(Span::ZERO, Span::from_secs(10)).from("tcp_htcp.c");
    }
}

/// log2 of the scale of alpha and beta.
const SHIFT: u32 = 7;

/// The H-TCP controller.
#[derive(Clone, Debug)]
pub struct Htcp {
    params: Params,
    /// Growth in segments per RTT, in units of 1/128.
    alpha: u32,
    /// Share of the window that congestion keeps, in units of 1/128.
    beta: u32,
    /// Whether the last two congestion events had a similar throughput (`modeswitch`).
    adaptive: bool,
    /// Time at which the last congestion ended, or at which the present congestion began.
    congestion: Time,
    /// The value of `congestion` before the present congestion, for an undo. Linux also saves the largest RTT and the
    /// throughput, but only after the congestion has changed them. So an undo does not restore their old values.
    before: Option<Time>,
    min_rtt: Option<Span>,
    /// Largest recent RTT. The value decays at each congestion.
    max_rtt: Span,
    /// Number of segments of the last ACK in state Open (`pkts_acked`).
    acked: u32,
    /// Sum of `acked` since the window last grew.
    credit: u32,
    /// The last known window, for the throughput measurement.
    cwnd: u32,
    /// Segments ACKed since `counted_since`.
    counted: u32,
    counted_since: Time,
    /// Recent throughput, segments/s (`Bi`).
    rate: u64,
    /// Maximum throughput since the last congestion, segments/s (`maxB`).
    max_rate: u64,
    /// Maximum throughput before the last congestion, segments/s (`old_maxB`).
    old_max_rate: u64,
}

impl Default for Htcp {
    fn default() -> Self {
        Htcp::new(Params::default())
    }
}

impl Htcp {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Htcp {
            alpha: 1 << SHIFT,
            beta: params.beta_min,
            params,
            adaptive: false,
            congestion: Time::ZERO,
            before: None,
            min_rtt: None,
            max_rtt: Span::ZERO,
            acked: 1,
            credit: 0,
            cwnd: 0,
            counted: 0,
            counted_since: Time::ZERO,
            rate: 0,
            max_rate: 0,
            old_max_rate: 0,
        }
    }

    fn take_rtt(&mut self, rtt: Span, open: bool) {
        let min_rtt = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(min_rtt);
        if open {
            self.max_rtt = self.max_rtt.max(min_rtt);
            // Ignores outliers. An outlier would lower beta until the largest RTT has decayed.
            if rtt <= self.max_rtt + self.params.max_rtt_step {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    /// Measures the throughput once per window of ACKs (Linux `measure_achieved_throughput`).
    fn take_throughput(&mut self, now: Time, acked: u32) {
        self.counted = self.counted.saturating_add(acked);
        let Some(min_rtt) = self.min_rtt.filter(|&rtt| rtt > Span::ZERO) else { return };
        // A measurement needs a window of ACKs, minus the growth of the window during that time.
        let enough = self.cwnd.saturating_sub((self.alpha >> SHIFT).max(1));
        let took = now.since(self.counted_since);
        if self.counted < enough || took < min_rtt {
            return;
        }
        let rate = u64::from(self.counted).saturating_mul(NANOS_PER_SEC) / took.as_nanos().max(1);
        // The window is still changing in the first RTTs after congestion.
        if now.since(self.congestion).as_nanos() / min_rtt.as_nanos() <= 3 {
            self.rate = rate;
            self.max_rate = rate;
        } else {
            self.rate = self.rate.saturating_mul(3).saturating_add(rate) / 4;
            self.max_rate = self.max_rate.max(self.rate);
        }
        self.counted = 0;
        self.counted_since = now;
    }

    fn update_beta(&mut self) {
        let (least, most) = (self.params.beta_min, self.params.beta_max.max(self.params.beta_min));
        self.beta = least;
        if self.params.bandwidth_switch {
            let (rate, old) = (self.max_rate, self.old_max_rate);
            self.old_max_rate = rate;
            // A change of the throughput by more than a fifth means that flows have come or gone. In this case, the
            // adaptive back-off would slow the convergence to fair shares, so the window is halved.
            let rate = rate.saturating_mul(5);
            if rate < old.saturating_mul(4) || rate > old.saturating_mul(6) {
                self.adaptive = false;
                return;
            }
        }
        match self.min_rtt {
            Some(rtt) if self.adaptive && rtt > self.params.adaptive_above && self.max_rtt > Span::ZERO => {
                // With beta = RTTmin/RTTmax, the reduction just empties the queue.
                let ratio = rtt.scale(1 << SHIFT, 1).as_nanos() / self.max_rtt.as_nanos();
                self.beta = u32::try_from(ratio).unwrap_or(u32::MAX).min(most).max(least);
            }
            // The first congestion after a change of the throughput still halves the window. Only the next congestion
            // may use the adaptive back-off.
            _ => self.adaptive = true,
        }
    }

    /// Computes the increase f = 1 + 10 (t - 1) + ((t - 1) / 2)^2 in whole segments, where t is the time since
    /// congestion in seconds.
    fn update_alpha(&mut self, now: Time) {
        let second = u128::from(NANOS_PER_SEC);
        let beyond = now.since(self.congestion).as_nanos().saturating_sub(self.params.reno_for.as_nanos());
        let beyond = u128::from(beyond);
        // Until `reno_for` has passed, the window grows as in Reno. As a result, flows with short epochs are fair to
        // Reno flows.
        let mut factor = 1;
        if beyond > 0 {
            factor += (10 * beyond + (beyond / 2) * (beyond / 2) / second) / second;
        }
        if self.params.rtt_scaling
            && let Some(rtt) = self.min_rtt.filter(|&rtt| rtt > Span::ZERO)
        {
            // The scale is in units of 1/8, and is between 0.5 and 10.
            let scale = (self.params.reference_rtt.scale(8, 1).as_nanos() / rtt.as_nanos()).clamp(4, 80);
            factor = ((factor << 3) / u128::from(scale)).max(1);
        }
        // alpha / (1 - beta) is the same for all flows, so flows with different back-offs get equal shares.
        let left = (1u32 << SHIFT).saturating_sub(self.beta);
        let alpha = u32::try_from(factor.saturating_mul(u128::from(2 * left))).unwrap_or(u32::MAX);
        self.alpha = if alpha == 0 { 1 << SHIFT } else { alpha };
    }

    /// Computes alpha, beta and the threshold after congestion (Linux `htcp_recalc_ssthresh`).
    fn back_off(&mut self, now: Time, window: &mut Window) {
        self.update_beta();
        self.update_alpha(now);
        // The largest RTT decays, because routes change.
        if let Some(min_rtt) = self.min_rtt
            && self.max_rtt > min_rtt
        {
            self.max_rtt = min_rtt + (self.max_rtt - min_rtt).scale(95, 100);
        }
        let kept = (u64::from(window.cwnd) * u64::from(self.beta)) >> SHIFT;
        window.ssthresh = u32::try_from(kept).unwrap_or(u32::MAX).max(2);
    }
}

impl Controller for Htcp {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        self.congestion = connection.now;
        self.counted_since = connection.now;
        self.cwnd = window.cwnd;
    }

    fn on_sample(&mut self, ack: &Ack) {
        let open = ack.state == State::Open;
        if open {
            self.acked = ack.acked;
        }
        if let Some(rtt) = ack.rtt {
            self.take_rtt(rtt, open);
        }
        if !self.params.bandwidth_switch {
            return;
        }
        if matches!(ack.state, State::Open | State::Disorder) {
            self.take_throughput(ack.now, ack.acked);
        } else {
            self.counted = 0;
            self.counted_since = ack.now;
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if ack.cwnd_limited {
            if in_slow_start(window) {
                slow_start(window, ack.acked);
            } else {
                // W += alpha / W per ACKed segment, in whole segments. Linux adds the credit of an ACK only if that
                // ACK does not grow the window.
                if (u64::from(self.credit) * u64::from(self.alpha)) >> SHIFT >= u64::from(window.cwnd) {
                    window.cwnd = window.cwnd.saturating_add(1);
                    self.credit = 0;
                    self.update_alpha(ack.now);
                } else {
                    self.credit = self.credit.saturating_add(self.acked);
                }
                self.acked = 1;
            }
        }
        self.cwnd = window.cwnd;
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        if !event.again {
            self.back_off(event.now, window);
        }
        // Linux calls htcp_reset on each change to CWR, Recovery or Loss.
        self.before = Some(self.congestion);
        self.congestion = event.now;
        self.credit = 0;
    }

    fn on_recovered(&mut self, now: Time, window: &mut Window) {
        self.cwnd = window.cwnd;
        if self.before.take().is_some() {
            self.congestion = now;
        }
    }

    fn on_undo(&mut self, _now: Time, window: &mut Window) {
        self.cwnd = window.cwnd;
        if let Some(before) = self.before.take() {
            self.congestion = before;
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let unit = f64::from(1 << SHIFT);
        trace("alpha", f64::from(self.alpha) / unit);
        trace("beta", f64::from(self.beta) / unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Signal;
    use crate::congestion::harness::{self, Path, Sender, ack_at, window};
    use crate::units::Rate;

    fn congestion(now: Time) -> Congestion {
        Congestion { now, ..harness::congestion(Signal::Loss) }
    }

    fn secs(s: f64) -> Time {
        Time::from_secs_f64(s)
    }

    /// Returns a controller with these RTTs. Its throughput is the same as at the last congestion.
    fn with_rtts(min: u64, max: u64) -> Htcp {
        Htcp {
            min_rtt: Some(Span::from_millis(min)),
            max_rtt: Span::from_millis(max),
            max_rate: 1000,
            old_max_rate: 1000,
            adaptive: true,
            ..Htcp::default()
        }
    }

    /// Linux's integer factor is 11. The test vector has 11.25.
    #[test]
    fn tv_s3_alpha_by_the_time_since_congestion() {
        for (since, beta, rtt, alpha) in
            [(0.5, 64, 100, 128), (2.0, 64, 100, 11 * 128), (5.0, 102, 100, 45 * 52), (5.0, 64, 20, 9 * 128)]
        {
            let mut htcp = Htcp { beta, ..with_rtts(rtt, rtt) };
            htcp.update_alpha(secs(since));
            assert_eq!(htcp.alpha, alpha, "{since} s, beta {beta}, {rtt} ms");
        }
        // The scaled factor would be below 1, so the minimum factor of 1 applies.
        let mut near = with_rtts(1, 1);
        near.update_alpha(secs(0.5));
        assert_eq!(near.alpha, 128);
    }

    #[test]
    fn congestion_keeps_the_share_that_empties_the_queue() {
        for (min, max, beta) in [(100, 150, 85), (100, 110, 102), (100, 300, 64), (9, 10, 64)] {
            let mut htcp = with_rtts(min, max);
            let mut w = window(1280);
            htcp.on_congestion(&congestion(secs(1.0)), &mut w);
            assert_eq!((htcp.beta, w.ssthresh), (beta, 10 * beta), "{min} to {max} ms");
        }
    }

    #[test]
    fn a_throughput_that_changed_by_a_fifth_halves_the_window() {
        for (rate, adaptive) in [(799, false), (801, true), (1200, true), (1201, false)] {
            let mut htcp = Htcp { max_rate: rate, ..with_rtts(100, 110) };
            htcp.update_beta();
            assert_eq!(htcp.beta, if adaptive { 102 } else { 64 }, "{rate} after 1000");
        }
        let mut first = Htcp { adaptive: false, ..with_rtts(100, 110) };
        first.update_beta();
        assert_eq!(first.beta, 64);
        first.update_beta();
        assert_eq!(first.beta, 102, "the second congestion adapts beta");
    }

    #[test]
    fn the_largest_rtt_rises_by_steps_and_decays() {
        let mut htcp = with_rtts(100, 100);
        htcp.take_rtt(Span::from_millis(121), true);
        assert_eq!(htcp.max_rtt, Span::from_millis(100), "an outlier is ignored");
        htcp.take_rtt(Span::from_millis(120), true);
        assert_eq!(htcp.max_rtt, Span::from_millis(120));
        let mut w = window(100);
        htcp.on_congestion(&congestion(secs(3.0)), &mut w);
        assert_eq!(htcp.max_rtt, Span::from_millis(119));
        htcp.on_undo(secs(3.1), &mut w);
        assert_eq!(htcp.congestion, Time::ZERO, "undone");
        htcp.on_congestion(&congestion(secs(3.0)), &mut w);
        htcp.on_recovered(secs(3.2), &mut w);
        assert_eq!(htcp.congestion, secs(3.2));
    }

    /// At a timeout within an episode, Linux `tcp_enter_loss` does not ask for a new threshold, but it calls
    /// `htcp_state`.
    #[test]
    fn a_timeout_within_an_episode_backs_off_no_further() {
        let mut htcp = Htcp { old_max_rate: 100, ..with_rtts(100, 200) };
        let mut w = window(100);
        htcp.on_congestion(&congestion(secs(1.0)), &mut w);
        let backed_off = (htcp.adaptive, htcp.beta, htcp.old_max_rate, htcp.max_rtt, w.ssthresh);
        assert_eq!(backed_off, (false, 64, 1000, Span::from_millis(195), 50));
        w.cwnd = 20;
        let timeout = Congestion { again: true, signal: Signal::Timeout, ..congestion(secs(2.0)) };
        htcp.on_congestion(&timeout, &mut w);
        assert_eq!((htcp.adaptive, htcp.beta, htcp.old_max_rate, htcp.max_rtt, w.ssthresh), backed_off);
        assert_eq!(htcp.congestion, secs(2.0));
    }

    #[test]
    fn it_grows_by_alpha_per_window() {
        let mut htcp = Htcp { alpha: 10 * 128, ..with_rtts(100, 100) };
        let mut w = window(1000);
        // 100 ACKs of one segment give one segment of growth. The ACK that triggers the growth is
        // not counted.
        for _ in 0..100 {
            htcp.on_ack(&ack_at(secs(0.5)), &mut w);
        }
        assert_eq!(w.cwnd, 1000);
        htcp.on_ack(&ack_at(secs(0.5)), &mut w);
        assert_eq!((w.cwnd, htcp.alpha), (1001, 128));
    }

    /// On a link whose queue is a quarter of a BDP, beta settles at 0.8. With Reno's beta of 0.5,
    /// the link would be idle at times.
    #[test]
    fn a_shallow_queue_is_emptied_and_the_link_stays_busy() {
        let rate = Rate::from_bits_per_sec(120_000_000);
        let path = Path { queue: 250, ..Path::new(rate, 100) };
        let mut sender = Sender::new(Box::new(Htcp::default()), path);
        sender.run_for(Span::from_secs(60));
        let before = sender.delivered();
        sender.run_for(Span::from_secs(60));
        let share = (sender.delivered() - before) as f64 * 1500.0 / (60.0 * rate.as_f64());
        assert!(share > 0.98, "{share:.3} of the link");
        assert!(sender.figure("beta") > 0.75, "{}", sender.figure("beta"));
    }
}
