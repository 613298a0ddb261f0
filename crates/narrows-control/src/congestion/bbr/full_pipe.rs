//! The full-pipe detector: the pipe is full when the bandwidth estimate stops growing (BBR-14).

use super::gain::Gain;
use crate::units::Rate;

/// Detects a plateau of the bandwidth in Startup and Up.
#[derive(Clone, Debug, Default)]
pub struct FullPipe {
    /// The reference bandwidth. A round has growth if its bandwidth is at least the growth factor times the reference.
    bw: Rate,
    /// Number of consecutive rounds without growth.
    rounds: u32,
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// Returns whether the pipe has ever been full.
    pub fn has_been_full(&self) -> bool {
        self.reached
    }

    /// Returns whether the current search has found a full pipe.
    pub fn is_full_now(&self) -> bool {
        self.now
    }

    /// Handles the end of a round that was not application-limited. `bw` is the bandwidth that the round measured.
    /// The pipe is full after `rounds` consecutive rounds in which the bandwidth grew by less than the factor `growth`.
    pub fn on_round(&mut self, bw: Rate, growth: Gain, rounds: u32) {
        if self.now {
            return;
        }
        let needed = growth.of(u128::from(self.bw.as_bytes_per_sec()));
        if u128::from(bw.as_bytes_per_sec()) >= needed {
            self.bw = bw;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= rounds;
        self.reached |= self.now;
    }

    /// Marks the pipe as full, although no plateau was detected.
    pub fn reach(&mut self) {
        self.reached = true;
    }

    /// Removes the mark of a full pipe. Called after spurious losses, because the mark may be wrong.
    pub fn unreach(&mut self) {
        self.reached = false;
    }

    /// Restarts the search with `bw` as the reference (BBR3-2).
    pub fn restart(&mut self, bw: Rate) {
        self.bw = bw;
        self.rounds = 0;
        self.now = false;
    }

    /// Handles a timeout by discarding the reference.
    pub fn on_timeout(&mut self) {
        self.bw = Rate::ZERO;
    }

    /// Handles a spurious reduction by discarding the reference and restarting the count of rounds.
    pub fn on_undo(&mut self) {
        self.bw = Rate::ZERO;
        self.rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth() -> Gain {
        Gain::ratio(5, 4)
    }

    /// Checks test vector TV-B1.
    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        let seen: Vec<bool> = [10, 20, 40, 48, 49, 49]
            .iter()
            .map(|&bw| {
                pipe.on_round(Rate::from_bytes_per_sec(bw * 1000), growth(), 3);
                pipe.has_been_full()
            })
            .collect();
        assert_eq!(seen, [false, false, false, false, false, true]);
    }

    #[test]
    fn growth_after_a_pause_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        let rounds = [10, 10, 10, 20, 20, 20, 20].map(|bw| {
            pipe.on_round(Rate::from_bytes_per_sec(bw * 1000), growth(), 3);
            pipe.has_been_full()
        });
        assert_eq!(rounds, [false, false, false, false, false, false, true]);
    }

    #[test]
    fn a_mistaken_slow_down_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        let bw = Rate::from_bytes_per_sec(1000);
        for _ in 0..3 {
            pipe.on_round(bw, growth(), 3);
        }
        pipe.on_undo();
        for _ in 0..3 {
            pipe.on_round(bw, growth(), 3);
        }
        assert!(!pipe.has_been_full());
        pipe.on_round(bw, growth(), 3);
        assert!(pipe.has_been_full());
    }
}
