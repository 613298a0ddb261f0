//! HighSpeed TCP: like Reno, but a larger window has a larger increase and a smaller decrease.
//!
//! Source: RFC 3649; Linux `tcp_highspeed.c`. The table is that of RFC 3649 appendix B, computed as the RFC's program
//! computes it.
//!
//! Linux and the RFC use the table differently, and this file follows Linux. In Linux, a row applies to windows up to
//! the window in the row. In the RFC, a row applies to windows of at least the window in the row. So Linux adds two
//! segments per RTT at windows of 39 and more. The RFC does so at windows of 118 and more.
//!
//! Deviation from Linux: the window is at most 2^32 / 128 segments.

use crate::parameter::whole;
use std::sync::LazyLock;

use super::slow_start::{in_slow_start, slow_start};
use crate::congestion::{Ack, Congestion, Controller, Window};

crate::parameters! {
    /// Parameters of [`HighSpeed`].
    pub struct Params {
        /// Minimum `ssthresh`.
        pub min_ssthresh: u32 = 2, whole(1, 1000).unit("segments").from("RFC 5681, equation 4");
    }
}

/// Largest window, in segments, at which HighSpeed behaves as Reno does (RFC 3649 section 5, Low_Window).
const LOW_WINDOW: f64 = 38.0;
/// The window, in segments, of which congestion removes the share [`HIGH_DECREASE`] (High_Window).
const HIGH_WINDOW: f64 = 83_000.0;
/// Share of the window removed on congestion at [`HIGH_WINDOW`] (High_Decrease).
const HIGH_DECREASE: f64 = 0.1;
/// Share of the window removed on congestion at [`LOW_WINDOW`], as in Reno.
const LOW_DECREASE: f64 = 0.5;
/// The constant 12.8 in p(w) = 1 / (12.8 w^1.2). The RFC's program has this rounded constant. RFC 3649 section 5,
/// equation 2, is p(w) = 0.078 / w^1.2.
const LOSS_RATE: f64 = 12.8;
/// Number of rows in Linux's table (`HSTCP_AIMD_MAX`). The RFC's table has one more row.
const ROWS: usize = 72;
/// The scale of a row's decrease.
const DECREASE_SHIFT: u32 = 8;

/// A row of the table. Row n, counted from 1, increases the window by n segments per RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    /// The largest window of the row, segments.
    window: u32,
    /// Share of the window removed on congestion, in 1/256.
    decrease: u32,
}

/// Returns b(w) of RFC 3649 section 5: the share of the window that congestion removes.
fn decrease(w: f64) -> f64 {
    let way = (libm::log(w) - libm::log(LOW_WINDOW)) / (libm::log(HIGH_WINDOW) - libm::log(LOW_WINDOW));
    (HIGH_DECREASE - LOW_DECREASE) * way + LOW_DECREASE
}

/// Returns a(w) of RFC 3649 section 5: w^2 p(w) 2 b(w) / (2 - b(w)), segments per RTT.
fn increase(w: f64) -> f64 {
    let b = decrease(w);
    w * w * 2.0 * b / ((2.0 - b) * libm::pow(w, 1.2) * LOSS_RATE)
}

/// The table of RFC 3649 appendix B. A new row begins where the increase has grown by one segment.
static TABLE: LazyLock<[Row; ROWS]> = LazyLock::new(|| {
    let low = LOW_WINDOW as u32;
    let mut last = 1.0;
    let mut wider = low + 1..;
    core::array::from_fn(|row| {
        let mut w = low;
        if row > 0 {
            w = wider.find(|&w| increase(f64::from(w)) > last + 1.0).unwrap_or(u32::MAX);
            last = increase(f64::from(w));
        }
        Row { window: w, decrease: (decrease(f64::from(w)) * f64::from(1 << DECREASE_SHIFT)) as u32 }
    })
});

/// The HighSpeed controller.
#[derive(Clone, Debug, Default)]
pub struct HighSpeed {
    params: Params,
    /// Index of the current row, counted from 0 (`ai`). As in Linux, the row follows the window only in congestion
    /// avoidance.
    row: usize,
    /// Accumulated increase that is less than a segment.
    credit: u32,
}

impl HighSpeed {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        HighSpeed { params, ..HighSpeed::default() }
    }

    fn find_row(&mut self, cwnd: u32) {
        let table = &*TABLE;
        while self.row + 1 < ROWS && cwnd > table[self.row].window {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= table[self.row - 1].window {
            self.row -= 1;
        }
    }
}

impl Controller for HighSpeed {
    fn name(&self) -> &'static str {
        "highspeed"
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if !ack.cwnd_limited {
            return;
        }
        if in_slow_start(window) {
            slow_start(window, ack.acked);
            return;
        }
        self.find_row(window.cwnd);
        // Linux counts ACKs, not ACKed segments, so a receiver that delays its ACKs halves the
        // growth.
        self.credit = self.credit.saturating_add(self.row as u32 + 1);
        if self.credit >= window.cwnd {
            self.credit -= window.cwnd;
            window.cwnd = window.cwnd.saturating_add(1);
        }
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        self.credit = 0;
        let off = (u64::from(window.cwnd) * u64::from(TABLE[self.row].decrease)) >> DECREASE_SHIFT;
        let off = u32::try_from(off).unwrap_or(u32::MAX);
        window.ssthresh = window.cwnd.saturating_sub(off).max(self.params.min_ssthresh);
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("increase", (self.row + 1) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Signal;
    use crate::congestion::harness::{RARE, ack_at, congestion, per_rtt_with_rare_losses, window};
    use crate::units::Time;

    /// RFC 3649 appendix B.
    #[test]
    fn the_table_is_the_rfcs() {
        let first = [38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529];
        assert_eq!(TABLE.map(|r| r.window)[..10], first);
        assert_eq!(TABLE.map(|r| r.window)[70..], [84_035, 89_053]);
        assert_eq!(TABLE.map(|r| r.decrease)[..10], [128, 112, 104, 98, 93, 89, 86, 83, 81, 78]);
        assert_eq!(TABLE.map(|r| r.decrease)[70..], [25, 24]);
    }

    #[test]
    fn tv_s2_rows_of_linux() {
        for (cwnd, row, ssthresh) in [(38, 1, 19), (39, 2, 22), (118, 2, 67), (119, 3, 71), (221, 3, 132)] {
            let mut highspeed = HighSpeed::default();
            let mut w = window(cwnd);
            highspeed.on_ack(&ack_at(Time::ZERO), &mut w);
            assert_eq!(highspeed.row + 1, row, "cwnd {cwnd}");
            highspeed.on_congestion(&congestion(Signal::Loss), &mut w);
            assert_eq!(w.ssthresh, ssthresh, "cwnd {cwnd}");
        }
    }

    #[test]
    fn tv_s2_the_formulas() {
        for (w, b, a) in
            [(118.0, 0.441, 2.006), (221.0, 0.408, 3.005), (1058.0, 0.327, 8.011), (10_000.0, 0.210, 29.02)]
        {
            assert!((decrease(w) - b).abs() < 0.0006, "b({w}) = {}", decrease(w));
            // The vector uses 0.078, but the RFC's program uses 1/12.8.
            assert!((increase(w) * 12.8 * 0.078 / a - 1.0).abs() < 0.001, "a({w}) = {}", increase(w));
        }
    }

    #[test]
    fn the_row_follows_the_window_down_too() {
        let mut highspeed = HighSpeed::default();
        for (cwnd, row) in [(100_000, 71), (1000, 7), (30, 0)] {
            highspeed.on_ack(&ack_at(Time::ZERO), &mut window(cwnd));
            assert_eq!(highspeed.row, row, "cwnd {cwnd}");
        }
    }

    #[test]
    fn a_window_of_acks_adds_as_many_segments_as_the_row_says() {
        let mut highspeed = HighSpeed::default();
        let mut w = window(1100);
        for _ in 0..1100 {
            highspeed.on_ack(&ack_at(Time::ZERO), &mut w);
        }
        // Windows from 1059 to 1284 grow by nine segments per RTT. The window grows during the RTT, which delays the
        // last step.
        assert!((1108..=1109).contains(&w.cwnd), "{}", w.cwnd);
    }

    /// RFC 3649 section 5: w = 0.12 / p^0.835 in the RFC's model. In Linux, the table look-up rounds the increase up.
    #[test]
    fn the_mean_window_is_that_of_the_response_function() {
        for (per, law) in [(10_000, 263.0), (100_000, 1795.0)] {
            let mut highspeed = HighSpeed::default();
            let mut w = window(38);
            let (mut rtts, cycles) = (0.0, 60);
            for n in 0..cycles * per {
                if n >= cycles / 2 * per {
                    rtts += 1.0 / f64::from(w.cwnd);
                }
                if n % per == per - 1 {
                    highspeed.on_congestion(&congestion(Signal::Loss), &mut w);
                    w.cwnd = w.ssthresh;
                } else {
                    highspeed.on_ack(&ack_at(Time::ZERO), &mut w);
                }
            }
            let mean = f64::from(cycles / 2 * per) / rtts;
            assert!((0.95..1.3).contains(&(mean / law)), "mean window {mean:.0}, the law says {law:.0}");
        }
    }

    /// Compares the mean window on a link with Reno's mean window, sqrt(3/(2p)).
    #[test]
    fn rare_losses_cost_less_than_they_cost_reno() {
        let per_rtt = per_rtt_with_rare_losses(Box::new(HighSpeed::default()));
        let reno = libm::sqrt(3.0 * RARE / 2.0);
        assert!(per_rtt > 2.0 * reno, "{per_rtt:.0} segments per RTT, Reno {reno:.0}");
    }
}
