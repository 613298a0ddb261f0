//! Is the pipe full? When the bandwidth estimate has stopped growing (BBR-14).

use super::params::Params;
use crate::units::Rate;

/// The plateau detector of Startup.
#[derive(Clone, Debug, Default)]
pub struct FullPipe {
    /// Bandwidth that has to be exceeded by a quarter.
    bw: Rate,
    /// Rounds that did not.
    rounds: u32,
    reached: bool,
}

impl FullPipe {
    /// The pipe was full once; stays true.
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// A round, not limited by the application, ended with this bandwidth estimate.
    pub fn on_round(&mut self, max_bw: Rate, params: &Params) {
        if self.reached {
            return;
        }
        let needed = params.full_bw_growth.of(u128::from(self.bw.as_bytes_per_sec()));
        if u128::from(max_bw.as_bytes_per_sec()) >= needed {
            self.bw = max_bw;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= params.full_bw_rounds;
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

    /// TV-B1.
    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        let seen: Vec<bool> = [10, 20, 40, 48, 49, 49]
            .iter()
            .map(|&bw| {
                pipe.on_round(Rate::from_bytes_per_sec(bw * 1000), &Params::default());
                pipe.reached()
            })
            .collect();
        assert_eq!(seen, [false, false, false, false, false, true]);
    }

    #[test]
    fn growth_after_a_pause_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        let rounds = [10, 10, 10, 20, 20, 20, 20].map(|bw| {
            pipe.on_round(Rate::from_bytes_per_sec(bw * 1000), &Params::default());
            pipe.reached()
        });
        assert_eq!(rounds, [false, false, false, false, false, false, true]);
    }

    #[test]
    fn a_mistaken_slow_down_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        let bw = Rate::from_bytes_per_sec(1000);
        for _ in 0..3 {
            pipe.on_round(bw, &Params::default());
        }
        pipe.on_undo();
        for _ in 0..3 {
            pipe.on_round(bw, &Params::default());
        }
        assert!(!pipe.reached());
        pipe.on_round(bw, &Params::default());
        assert!(pipe.reached());
    }
}
