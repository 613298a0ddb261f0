//! Slow start and the additive-increase counter, shared by the window-based controllers.

use crate::congestion::{Ack, Window};

/// Returns whether the window is below the threshold (Linux `tcp_in_slow_start`).
pub fn in_slow_start(window: &Window) -> bool {
    window.cwnd < window.ssthresh
}

/// Grows the window in slow start by one segment per ACKed segment, up to `ssthresh`. Returns the number of ACKed
/// segments left over for congestion avoidance.
pub fn slow_start(window: &mut Window, acked: u32) -> u32 {
    let room = window.ssthresh.saturating_sub(window.cwnd);
    let used = acked.min(room);
    window.cwnd = window.cwnd.saturating_add(used);
    acked - used
}

/// Grows the window in slow start, and returns the ACKed segments left over for congestion avoidance. If the window
/// does not limit the sender, the window does not grow (RFC 7661; Linux `tcp_is_cwnd_limited`). Changes nothing if the
/// window is at or above the threshold.
pub fn left_for_avoidance(ack: &Ack, window: &mut Window) -> u32 {
    match ack.cwnd_limited {
        false => 0,
        true if in_slow_start(window) => slow_start(window, ack.acked),
        true => ack.acked,
    }
}

/// Returns `window * share / of` in segments, rounded down.
pub fn part(window: u32, share: u32, of: u32) -> u32 {
    u32::try_from(u64::from(window) * u64::from(share) / u64::from(of.max(1))).unwrap_or(u32::MAX)
}

/// Counts ACKed segments towards the next segment of growth (Linux `tcp_cong_avoid_ai`).
#[derive(Clone, Debug, Default)]
pub struct AdditiveIncrease {
    /// Number of ACKed segments that have not been converted into growth yet.
    acked: u32,
}

impl AdditiveIncrease {
    /// Grows the window by one segment per `per` ACKed segments.
    pub fn on_ack(&mut self, window: &mut Window, per: u32, acked: u32) {
        let per = per.max(1);
        // If `per` has become smaller than the saved credit, the credit is still worth only one segment.
        if self.acked >= per {
            self.acked = 0;
            window.cwnd = window.cwnd.saturating_add(1);
        }
        self.acked = self.acked.saturating_add(acked);
        let segments = self.acked / per;
        self.acked -= segments * per;
        window.cwnd = window.cwnd.saturating_add(segments);
    }

    /// Counts towards `per` without changing the window. Returns true if the count had reached `per` before this ACK.
    /// In this case, the count restarts at 0 and does not include this ACK.
    pub fn count(&mut self, per: u32, acked: u32) -> bool {
        let full = self.acked >= per;
        self.acked = if full { 0 } else { self.acked.saturating_add(acked) };
        full
    }

    /// Grows the window by `share / 2^shift` segments per window of ACKed segments. When whole segments are added, the
    /// remaining fraction is discarded (Linux `tcp_illinois.c`).
    pub fn by_share(&mut self, window: &mut Window, share: u32, shift: u32, acked: u32) {
        self.acked = self.acked.saturating_add(acked);
        let earned = (u64::from(self.acked) * u64::from(share)) >> shift;
        let segments = earned / u64::from(window.cwnd.max(1));
        if segments > 0 {
            window.cwnd = window.cwnd.saturating_add(u32::try_from(segments).unwrap_or(u32::MAX));
            self.acked = 0;
        }
    }

    /// Discards the credit, as Linux does on entering CWR, Recovery or Loss.
    pub fn reset(&mut self) {
        self.acked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::ack_at;
    use crate::units::Time;

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window { cwnd, ssthresh, pacing_rate: None }
    }

    #[test]
    fn slow_start_stops_at_ssthresh_and_returns_the_rest() {
        let mut w = window(8, 10);
        assert_eq!(slow_start(&mut w, 5), 3);
        assert_eq!(w.cwnd, 10);
        assert!(!in_slow_start(&w));
        assert_eq!(slow_start(&mut w, 5), 5);
        assert_eq!(w.cwnd, 10);
    }

    #[test]
    fn the_rest_of_slow_start_goes_to_avoidance_if_the_window_is_the_limit() {
        let ack = |acked, cwnd_limited| Ack { acked, cwnd_limited, ..ack_at(Time::ZERO) };
        for (cwnd, limited, left, after) in
            [(8, true, 3, 10), (10, true, 5, 10), (8, false, 0, 8), (10, false, 0, 10)]
        {
            let mut w = window(cwnd, 10);
            assert_eq!((left_for_avoidance(&ack(5, limited), &mut w), w.cwnd), (left, after));
        }
    }

    #[test]
    fn a_count_is_full_one_ack_after_the_last_that_filled_it() {
        let mut ai = AdditiveIncrease::default();
        let full: Vec<bool> = (0..6).map(|_| ai.count(4, 2)).collect();
        assert_eq!(full, [false, false, true, false, false, true]);
    }

    #[test]
    fn a_part_of_the_widest_window_does_not_overflow() {
        assert_eq!((part(10, 2, 3), part(u32::MAX, u32::MAX, 1), part(7, 1, 0)), (6, u32::MAX, 7));
    }

    #[test]
    fn a_full_window_of_acks_adds_one_segment_however_they_are_batched() {
        for batch in [1, 2, 5, 10] {
            let mut w = window(10, 5);
            let mut ai = AdditiveIncrease::default();
            for _ in 0..10 / batch {
                ai.on_ack(&mut w, 10, batch);
            }
            assert_eq!(w.cwnd, 11, "batches of {batch}");
        }
    }

    #[test]
    fn credit_saved_under_a_larger_divisor_is_worth_one_segment() {
        let mut w = window(100, 5);
        let mut ai = AdditiveIncrease::default();
        ai.on_ack(&mut w, 100, 90);
        ai.on_ack(&mut w, 10, 1);
        assert_eq!(w.cwnd, 101);
    }
}
