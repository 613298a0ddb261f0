//! DCTCP: reduces the window in proportion to the share of marked packets.
//!
//! Source: RFC 8257. The integer arithmetic and its order follow Linux `tcp_dctcp.c`. The window grows as in Reno.
//! Without marks, DCTCP therefore behaves as Reno does.
//!
//! Deviations from Linux:
//! * The share is updated after the transport has handled the ACK, not before.
//! * A loss during a reduction for marks does not cause a second reduction.

use super::reno::Reno;
use crate::congestion::{Ack, Congestion, Controller, Signal, Window};
use crate::parameter::{number, whole};

crate::parameters! {
    /// Parameters of [`Dctcp`]; the defaults are Linux's module parameters.
    pub struct Params {
        /// A new share of marks has the weight g = 1/2^n in the average.
        pub shift_g: u32 = 4, whole(0, 10).from("RFC 8257, section 4.2: g = 1/16").module("dctcp_shift_g", 1.0);
        /// Initial share of marked segments.
        pub initial_alpha: u32 = UNIT, number(0.0, 1.0).per(1024).from("RFC 8257, section 3.3").module("dctcp_alpha_on_init", 1024.0);
        /// Minimum `ssthresh`.
        pub min_ssthresh: u32 = 2, whole(1, 1000).unit("segments").from("tcp_dctcp.c");
    }
}

/// The scale of the share (`DCTCP_MAX_ALPHA`).
const UNIT: u32 = 1024;

/// The DCTCP controller.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: Params,
    reno: Reno,
    /// Moving average of the share of marked segments, in 1/1024.
    alpha: u32,
    /// Number of segments delivered in the present observation window.
    delivered: u64,
    /// Number of segments in the present observation window whose ACK echoed a mark.
    marked: u64,
    /// The observation window ends when `snd_una` reaches this number.
    end: u64,
}

impl Default for Dctcp {
    fn default() -> Self {
        Dctcp::new(Params::default())
    }
}

impl Dctcp {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        let alpha = params.initial_alpha.min(UNIT);
        Dctcp { params, reno: Reno::default(), alpha, delivered: 0, marked: 0, end: 0 }
    }

    /// Updates alpha once per window: alpha = (1 - g) alpha + g M (RFC 8257 section 3.3, step 6).
    fn update_alpha(&mut self) {
        let g = self.params.shift_g.min(10);
        // A small alpha still decays to zero (Linux min_not_zero).
        let decay = self.alpha >> g;
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        let gain = (u128::from(self.marked) << (10 - g)) / u128::from(self.delivered.max(1));
        self.alpha = self.alpha.saturating_add(u32::try_from(gain).unwrap_or(UNIT)).min(UNIT);
    }
}

impl Controller for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn needs_exact_ce_echo(&self) -> bool {
        true
    }

    fn on_sample(&mut self, ack: &Ack) {
        self.delivered = self.delivered.saturating_add(u64::from(ack.acked));
        if ack.ece {
            self.marked = self.marked.saturating_add(u64::from(ack.acked));
        }
        // An observation window is one window of data (RFC 8257 section 3.3, step 4).
        if ack.snd_una >= self.end {
            self.update_alpha();
            (self.delivered, self.marked, self.end) = (0, 0, ack.snd_nxt);
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.reno.on_ack(ack, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        let cwnd = window.cwnd;
        self.reno.on_congestion(event, window);
        // A loss halves the window, as in other TCP (RFC 8257, section 3.5).
        if matches!(event.signal, Signal::Ecn | Signal::Probe) {
            // RFC 8257 section 3.3, step 9: cwnd (1 - alpha / 2).
            let cut = (u64::from(cwnd) * u64::from(self.alpha)) >> 11;
            window.ssthresh = cwnd.saturating_sub(u32::try_from(cut).unwrap_or(u32::MAX));
        }
        window.ssthresh = window.ssthresh.max(self.params.min_ssthresh);
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("alpha", f64::from(self.alpha) / f64::from(UNIT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::INFINITE_SSTHRESH;
    use crate::congestion::harness::{ack_at, congestion};
    use crate::units::Time;

    /// Passes the ACKs of a window of 100 segments, of which `marked` are marked.
    fn window_of_acks(dctcp: &mut Dctcp, marked: u64) {
        let start = dctcp.end;
        for n in 1..=100 {
            let una = start.saturating_sub(100) + n;
            dctcp.on_sample(&Ack {
                ece: n <= marked,
                snd_una: una,
                snd_nxt: una + 100,
                ..ack_at(Time::ZERO)
            });
        }
    }

    /// Test vector TV-S9, with a tolerance of 0.002 for the rounding of Linux's integers.
    #[test]
    fn tv_s9_the_share_of_marks_is_averaged_and_cuts_the_window_in_proportion() {
        let mut dctcp = Dctcp { end: 100, ..Dctcp::default() };
        for (marked, alpha) in [(0, 0.9375), (0, 0.8789), (50, 0.8552), (100, 0.8643)] {
            window_of_acks(&mut dctcp, marked);
            let got = f64::from(dctcp.alpha) / 1024.0;
            assert!((got - alpha).abs() < 0.002, "{marked} of 100 marked: {got}, not {alpha}");
        }
        let mut w = Window { cwnd: 100, ssthresh: INFINITE_SSTHRESH, pacing_rate: None };
        dctcp.alpha = 960;
        dctcp.on_congestion(&congestion(Signal::Ecn), &mut w);
        assert_eq!(w.ssthresh, 54, "the exact value is 53.1, but Linux rounds the cut down");
    }

    #[test]
    fn a_loss_halves_the_window_for_any_share_of_marks() {
        for signal in [Signal::Loss, Signal::Timeout] {
            let mut dctcp = Dctcp { alpha: 10, ..Dctcp::default() };
            let mut w = Window { cwnd: 100, ssthresh: INFINITE_SSTHRESH, pacing_rate: None };
            dctcp.on_congestion(&congestion(signal), &mut w);
            assert_eq!(w.ssthresh, 50);
        }
    }

    /// When a tail loss probe repairs the loss, Linux enters state CWR. `dctcp_react_to_loss` handles only Recovery and
    /// timeouts.
    #[test]
    fn a_loss_repaired_by_a_probe_is_answered_like_a_mark() {
        let mut dctcp = Dctcp { alpha: 0, ..Dctcp::default() };
        let mut w = Window { cwnd: 100, ssthresh: INFINITE_SSTHRESH, pacing_rate: None };
        dctcp.on_congestion(&congestion(Signal::Probe), &mut w);
        assert_eq!(w.ssthresh, 100);
    }

    #[test]
    fn without_marks_the_share_decays_to_zero() {
        let mut dctcp = Dctcp { end: 100, ..Dctcp::default() };
        for _ in 0..200 {
            window_of_acks(&mut dctcp, 0);
        }
        assert_eq!(dctcp.alpha, 0);
    }
}
