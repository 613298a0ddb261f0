//! Is the pipe full? When the bandwidth estimate has stopped growing (BBR-14).

use super::gain::Gain;
use crate::units::Rate;

/// The plateau detector of the phases that look for more.
#[derive(Clone, Debug, Default)]
pub struct FullPipe {
    /// Bandwidth that has to be exceeded by a quarter.
    bw: Rate,
    /// Rounds that did not.
    rounds: u32,
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// The pipe was full once; stays true.
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// The pipe is full as far as the search under way has shown.
    pub fn now(&self) -> bool {
        self.now
    }

    /// A round, not limited by the application, ended with this bandwidth: `rounds` rounds without `growth` fill the pipe.
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

    /// Something else than a plateau says that the pipe is full.
    pub fn reach(&mut self) {
        self.reached = true;
    }

    /// The pipe was taken for full by mistake.
    pub fn unreach(&mut self) {
        self.reached = false;
    }

    /// Looks for more than `bw` from now on (BBR3-2).
    pub fn restart(&mut self, bw: Rate) {
        self.bw = bw;
        self.rounds = 0;
        self.now = false;
    }

    /// A timeout: compare with what comes, not with what was.
    pub fn on_timeout(&mut self) {
        self.bw = Rate::ZERO;
    }

    /// A slow-down was a mistake: begin anew.
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

    /// TV-B1.
    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        let seen: Vec<bool> = [10, 20, 40, 48, 49, 49]
            .iter()
            .map(|&bw| {
                pipe.on_round(Rate::from_bytes_per_sec(bw * 1000), growth(), 3);
                pipe.reached()
            })
            .collect();
        assert_eq!(seen, [false, false, false, false, false, true]);
    }

    #[test]
    fn growth_after_a_pause_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        let rounds = [10, 10, 10, 20, 20, 20, 20].map(|bw| {
            pipe.on_round(Rate::from_bytes_per_sec(bw * 1000), growth(), 3);
            pipe.reached()
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
        assert!(!pipe.reached());
        pipe.on_round(bw, growth(), 3);
        assert!(pipe.reached());
    }
}
