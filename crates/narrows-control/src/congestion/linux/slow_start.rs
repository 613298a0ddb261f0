//! What the window-based controllers share: slow start and the additive-increase counter.

use crate::congestion::Window;

/// Below the threshold (Linux `tcp_in_slow_start`).
pub fn in_slow_start(window: &Window) -> bool {
    window.cwnd < window.ssthresh
}

/// Slow start: one segment per segment ACKed, up to `ssthresh` (SUR-2). Returns the ACKed segments that are
/// left over for congestion avoidance.
pub fn slow_start(window: &mut Window, acked: u32) -> u32 {
    let room = window.ssthresh.saturating_sub(window.cwnd);
    let used = acked.min(room);
    window.cwnd = window.cwnd.saturating_add(used);
    acked - used
}

/// Counts ACKed segments towards the next segment of window (Linux `tcp_cong_avoid_ai`, SUR-3).
#[derive(Clone, Debug, Default)]
pub struct AdditiveIncrease {
    /// ACKed segments not yet turned into window.
    acked: u32,
}

impl AdditiveIncrease {
    /// Grows the window by one segment for every `per` segments ACKed.
    pub fn on_ack(&mut self, window: &mut Window, per: u32, acked: u32) {
        let per = per.max(1);
        // `per` may have shrunk below what was saved under a larger one; that credit is worth one segment only.
        if self.acked >= per {
            self.acked = 0;
            window.cwnd = window.cwnd.saturating_add(1);
        }
        self.acked = self.acked.saturating_add(acked);
        let segments = self.acked / per;
        self.acked -= segments * per;
        window.cwnd = window.cwnd.saturating_add(segments);
    }

    /// Forgets the credit, as Linux does when it enters CWR, Recovery or Loss.
    pub fn reset(&mut self) {
        self.acked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window { cwnd, ssthresh, pacing_rate: None }
    }

    #[test]
    fn slow_start_stops_at_ssthresh_and_hands_on_the_rest() {
        let mut w = window(8, 10);
        assert_eq!(slow_start(&mut w, 5), 3);
        assert_eq!(w.cwnd, 10);
        assert!(!in_slow_start(&w));
        assert_eq!(slow_start(&mut w, 5), 5);
        assert_eq!(w.cwnd, 10);
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
