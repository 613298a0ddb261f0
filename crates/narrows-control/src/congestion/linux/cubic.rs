//! CUBIC: the window is a cubic function of the time since the last congestion, independent of the
//! RTT.
//!
//! Source: RFC 9438. The integer arithmetic and HyStart are those of Linux `tcp_cubic.c`.
//!
//! Deviations from Linux:
//! * Time is in nanoseconds, not jiffies, so results do not depend on HZ.
//! * The cube root is exact. Linux uses a table and one Newton step, with an error of about 0.2 %.
//! * The growth rate is computed on each ACK. To save a division, Linux computes it at most once per jiffy.

use super::hystart::{self, Hystart};
use super::hystartpp::{self, HystartPlusPlus};
use super::slow_start::{AdditiveIncrease, in_slow_start, left_for_avoidance, part};
use crate::congestion::{Ack, Congestion, Connection, Controller, Signal, Window};
use crate::parameter::{Parameters, Values, flag, number, whole, word};
use crate::units::{NANOS_PER_SEC, Span, Time};

crate::parameters! {
    /// Parameters of [`Cubic`]; the defaults are Linux's module parameters.
    pub struct Params {
        /// Share of the window kept on congestion.
        pub beta: u32 = 717, number(0.1, 0.95).per(1024).from("RFC 9438, section 4.6: 0.7").module("beta", 1024.0);
        /// The constant C of the cubic.
        pub c: u64 = 410, number(0.01, 10.0).per(1024).unit("segments/s^3").from("RFC 9438, section 5.1: 0.4");
        /// Whether the flow yields to new flows if its window has not reached the last maximum.
        pub fast_convergence: bool = true, flag().from("RFC 9438, section 4.7").module("fast_convergence", 1.0);
        /// Whether the window grows at least as fast as Reno's window.
        pub reno_friendly: bool = true, flag().from("RFC 9438, section 4.3").module("tcp_friendliness", 1.0);
        /// Minimum number of ACKed segments per segment of growth. The default limits the growth to a half of the
        /// window per RTT.
        pub min_acks_per_segment: u32 = 2, whole(1, 1000).unit("segments").from("tcp_cubic.c");
        /// Until the last maximum is known, the window grows by at least one segment per this number of ACKed segments.
        pub max_acks_per_segment_before_loss: u32 = 20, whole(1, 10_000).unit("segments").from("tcp_cubic.c");
    }
    and {
        /// If the window has not changed, its growth is computed again after this time (Linux HZ/32).
        pub refresh: Span = Span::from_nanos(NANOS_PER_SEC / 32);
        /// RTT samples within this time after the start of an epoch do not update the minimum delay (Linux: 1 s).
        pub settle: Span = Span::from_secs(1);
        /// HyStart, or `None` for plain slow start. [`Cubic::new`] moves HyStart out of the parameters, so that the
        /// state of a flow stays small.
        pub hystart: Option<Box<hystart::Params>> = Some(Box::default());
    }
}

crate::words! {
    /// The slow start before the first congestion.
    pub enum SlowStart {
        /// HyStart, as in Linux.
        Hystart = "hystart",
        /// HyStart++ (RFC 9406).
        HystartPlusPlus = "hystart++",
        /// Doubles the window per round trip until the first congestion.
        Plain = "plain",
    }
}

crate::parameters! {
    /// The choice of slow start.
    pub struct Start {
        /// Slow start: HyStart, HyStart++, or plain doubling until the first congestion.
        pub slow_start: SlowStart = SlowStart::Hystart, word(SlowStart::WORDS)
            .from("tcp_cubic.c; hystart++: RFC 9406")
            .module_words("hystart", &[("hystart", 1), ("plain", 0)]);
    }
}

/// The scale of `beta` and `c`.
const UNIT: u32 = 1024;
/// log2 of the number of clock ticks per second. A tick is 1/1024 s (`BICTCP_HZ`).
const TICK_SHIFT: u32 = 10;

/// The cubic curve after a congestion event.
#[derive(Clone, Debug)]
struct Epoch {
    start: Time,
    /// Number of ticks from the start to the plateau (K of RFC 9438).
    k: u64,
    /// Window at the plateau, segments (W_max).
    origin: u32,
    /// The window that Reno would have (`tcp_cwnd`).
    reno: u32,
    /// ACKed segments not yet counted in `reno`.
    acked: u32,
}

impl Epoch {
    /// Returns the curve from `cwnd` to a plateau at the window of the last congestion. K = cbrt((W_max - cwnd) / C)
    /// (RFC 9438 section 4.2, equation 2).
    fn new(start: Time, cwnd: u32, w_max: Option<u32>, c: u64) -> Self {
        let w_max = w_max.unwrap_or(0);
        let k = match w_max.checked_sub(cwnd) {
            Some(below) => cube_root((1 << (10 + 3 * TICK_SHIFT)) / c.max(1) * u64::from(below)),
            None => 0,
        };
        Epoch { start, k, origin: w_max.max(cwnd), reno: cwnd, acked: 0 }
    }

    /// Returns the window of the curve, in segments, after the time `since` (RFC 9438 equation 1).
    fn window_at(&self, since: Span, c: u64) -> u32 {
        let ticks = u128::from(since.as_nanos()) << TICK_SHIFT;
        let ticks = u64::try_from(ticks / u128::from(NANOS_PER_SEC)).unwrap_or(u64::MAX);
        // 2^38 ticks are 8 years. A longer time would overflow 128 bits.
        let offset = u128::from(ticks.abs_diff(self.k).min(1 << 38));
        let delta = (u128::from(c) * offset * offset * offset) >> (10 + 3 * TICK_SHIFT);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        if ticks < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) }
    }
}

/// The CUBIC controller.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: Params,
    hystart: Option<Hystart>,
    /// HyStart++, in a box because few flows use it.
    hystartpp: Option<Box<HystartPlusPlus>>,
    increase: AdditiveIncrease,
    packet_bytes: u32,
    /// Window at the last congestion, lowered by fast convergence. `None` before the first congestion and after a
    /// timeout.
    w_max: Option<u32>,
    epoch: Option<Epoch>,
    /// The minimum RTT; `None` before the first sample.
    delay_min: Option<Span>,
    /// After this number of ACKed segments, the window grows by one segment (`cnt`).
    acks_per_segment: u32,
    /// The window for which `acks_per_segment` was computed.
    last_cwnd: u32,
    /// The time at which `acks_per_segment` was computed.
    last_update: Time,
}

impl Default for Cubic {
    fn default() -> Self {
        Cubic::new(Params::default())
    }
}

impl Cubic {
    /// Returns a controller with these parameters.
    pub fn new(mut params: Params) -> Self {
        Cubic {
            hystart: params.hystart.take().map(|p| Hystart::new(*p, Time::ZERO)),
            hystartpp: None,
            params,
            increase: AdditiveIncrease::default(),
            packet_bytes: 1500,
            w_max: None,
            epoch: None,
            delay_min: None,
            acks_per_segment: 1,
            last_cwnd: 0,
            last_update: Time::ZERO,
        }
    }

    /// Returns CUBIC with the given parameters of the catalogue.
    pub fn from_values(values: &Values) -> Self {
        let start = Start::default().with("", values).slow_start;
        let hystart = || Box::new(hystart::Params::default().with("hystart_", values));
        let params = Params {
            hystart: (start == SlowStart::Hystart).then(hystart),
            ..Params::default().with("", values)
        };
        let hystartpp = (start == SlowStart::HystartPlusPlus).then(|| {
            let params = hystartpp::Params::default().with("hystartpp_", values);
            Box::new(HystartPlusPlus::new(params))
        });
        Cubic { hystartpp, ..Cubic::new(params) }
    }

    /// Processes an RTT sample (Linux `cubictcp_acked`). Ends slow start if HyStart detects a queue.
    fn on_rtt(&mut self, ack: &Ack, window: &mut Window, rtt: Span) {
        let settling = |epoch: &Epoch| ack.now.since(epoch.start) < self.params.settle;
        if self.epoch.as_ref().is_some_and(settling) {
            return;
        }
        let delay_min = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(delay_min);
        if in_slow_start(window)
            && let Some(hystart) = &mut self.hystart
            && hystart.on_ack(ack, window.cwnd, rtt, delay_min, self.packet_bytes)
        {
            window.ssthresh = window.cwnd;
        }
    }

    /// Computes the ACKed segments per segment of growth (Linux `bictcp_update`).
    fn update(&mut self, now: Time, cwnd: u32, acked: u32) {
        let (c, w_max) = (self.params.c, self.w_max);
        let fresh = self.epoch.is_none();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, w_max, c));
        epoch.acked = epoch.acked.saturating_add(acked);
        if !fresh && self.last_cwnd == cwnd && now.since(self.last_update) <= self.params.refresh {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_update = now;

        // The target is the window of the curve one RTT from now (RFC 9438 section 4.2).
        let ahead = now.since(epoch.start) + self.delay_min.unwrap_or(Span::ZERO);
        let target = epoch.window_at(ahead, c);
        let mut per = match target.checked_sub(cwnd) {
            Some(growth @ 1..) => cwnd / growth,
            // On the plateau, the window grows by one segment per hundred windows of ACKs.
            _ => cwnd.saturating_mul(100),
        };
        if w_max.is_none() {
            per = per.min(self.params.max_acks_per_segment_before_loss);
        }
        if self.params.reno_friendly {
            // A Reno flow with CUBIC's decrease grows by alpha = 3(1-beta)/(1+beta) segments per window of ACKs. In RFC
            // 9438 section 4.3, alpha is 0.529. With Linux's integer divisions, it is 8/15.
            let beta_scale = 8 * (UNIT + self.params.beta) / 3 / (UNIT - self.params.beta.min(UNIT - 1));
            let cost =
                u32::try_from((u64::from(cwnd) * u64::from(beta_scale)) >> 3).unwrap_or(u32::MAX).max(1);
            // Linux subtracts `cost` only while `acked` exceeds it, so `acked` may stay equal to `cost`.
            let earned = epoch.acked.saturating_sub(1) / cost;
            epoch.acked -= earned * cost;
            epoch.reno = epoch.reno.saturating_add(earned);
            if let Some(behind @ 1..) = epoch.reno.checked_sub(cwnd) {
                per = per.min(cwnd / behind);
            }
        }
        self.acks_per_segment = per.max(self.params.min_acks_per_segment);
    }
}

impl Controller for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn on_established(&mut self, connection: &Connection, _window: &mut Window) {
        self.packet_bytes = connection.packet_bytes;
        if let Some(hystart) = &mut self.hystart {
            hystart.reset(connection.now);
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            self.on_rtt(ack, window, rtt);
        }
        let acked = match &mut self.hystartpp {
            Some(hystart) => hystart.left_for_avoidance(ack, window),
            None => left_for_avoidance(ack, window),
        };
        if acked > 0 {
            self.update(ack.now, window.cwnd, acked);
            self.increase.on_ack(window, self.acks_per_segment, acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.epoch = None;
        self.increase.reset();
        // If the window has not reached the last maximum, another flow has probably joined. Lower the plateau (RFC 9438
        // section 4.7).
        let short = self.w_max.is_some_and(|w_max| window.cwnd < w_max);
        self.w_max = Some(if short && self.params.fast_convergence {
            part(window.cwnd, UNIT + self.params.beta, 2 * UNIT)
        } else {
            window.cwnd
        });
        window.ssthresh = part(window.cwnd, self.params.beta, UNIT).max(2);
        if event.signal == Signal::Timeout {
            // The path may have changed. Linux discards the maximum of the window and the minimum delay, and restarts
            // HyStart.
            self.w_max = None;
            self.delay_min = None;
            self.last_cwnd = 0;
            if let Some(hystart) = &mut self.hystart {
                hystart.reset(event.now);
            }
        }
    }

    fn on_restart(&mut self, now: Time, idle: Span, _app_limited: bool, _window: &mut Window) {
        // The curve must not grow during idle time (RFC 9438 section 5.8). So the start of the curve moves forward by
        // the idle time, but not into the future.
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(now);
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("w_max", f64::from(self.w_max.unwrap_or(0)));
        let ticks_per_sec = f64::from(1 << TICK_SHIFT);
        trace("k", self.epoch.as_ref().map_or(0.0, |epoch| epoch.k as f64 / ticks_per_sec));
    }
}

/// Returns the integer cube root, rounded down.
fn cube_root(x: u64) -> u64 {
    // The root has at most 22 bits. Set them from the top.
    (0..22).rev().fold(0, |root, bit| {
        let larger = root | 1 << bit;
        if u128::from(larger) * u128::from(larger) * u128::from(larger) <= u128::from(x) {
            larger
        } else {
            root
        }
    })
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
