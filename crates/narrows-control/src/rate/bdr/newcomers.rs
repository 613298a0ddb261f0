//! Newcomers: flows that have sent a SYN but no data. If the count ignored newcomers, it would react to new flows only
//! after a round trip plus tau (BDR-22).
//!
//! Deviation: BDR-22 as specified adds half of all newcomers. That would count handshakes twice, because a flow's first
//! report includes the time of its handshake. In the paper's traffic, half of a flow's life is its handshake, so the
//! count would be a quarter too high. Therefore the code adds only half of the excess. The excess is the number of
//! newcomers minus its average over the last tau. In a steady state the excess is zero. In a burst of SYNs, almost all
//! newcomers belong to the excess.

use crate::units::Time;

/// Weight of a newcomer before its first report (BDR-22).
const WEIGHT: f64 = 0.5;
/// Number of age classes. Each class covers one period of the timer, which is half of the mean time between reports. A
/// newcomer is forgotten after 2 to 2.5 times that mean (BDR-22: 2 times).
const AGES: usize = 5;

/// The counter n_new and its average.
#[derive(Clone, Debug)]
pub(super) struct Newcomers {
    /// Number of newcomers by age, youngest first.
    ages: [u32; AGES],
    mean: f64,
    at: Time,
}

impl Newcomers {
    pub(super) fn new(now: Time) -> Self {
        Newcomers { ages: [0; AGES], mean: 0.0, at: now }
    }

    fn waiting(&self) -> f64 {
        self.ages.iter().copied().map(f64::from).sum()
    }

    /// Returns the average at `now`. The average is exact, because the counter is constant between events.
    fn mean(&self, now: Time, tau: f64) -> f64 {
        let kept = libm::exp(-now.since(self.at).as_secs_f64() / tau);
        self.mean * kept + self.waiting() * (1.0 - kept)
    }

    fn settle(&mut self, now: Time, tau: f64) {
        self.mean = self.mean(now, tau);
        self.at = self.at.max(now);
    }

    /// Counts `syns` SYNs.
    pub(super) fn on_syns(&mut self, now: Time, tau: f64, syns: u64) {
        self.settle(now, tau);
        if let Some(youngest) = self.ages.first_mut() {
            *youngest = youngest.saturating_add(u32::try_from(syns).unwrap_or(u32::MAX));
        }
    }

    /// Removes the `flows` oldest newcomers, because this many flows have sent their first data.
    pub(super) fn on_first_data(&mut self, now: Time, tau: f64, flows: u64) {
        self.settle(now, tau);
        let mut left = u32::try_from(flows).unwrap_or(u32::MAX);
        for oldest in self.ages.iter_mut().rev() {
            let removed = left.min(*oldest);
            *oldest -= removed;
            left -= removed;
        }
    }

    /// Moves each newcomer up by `halves` age classes. Each class covers half the mean time between reports.
    pub(super) fn age(&mut self, now: Time, tau: f64, halves: usize) {
        self.settle(now, tau);
        let halves = halves.min(AGES);
        self.ages.rotate_right(halves);
        self.ages.iter_mut().take(halves).for_each(|n| *n = 0);
    }

    /// Returns the number to add to the estimated number of flows.
    pub(super) fn excess(&self, now: Time, tau: f64) -> f64 {
        WEIGHT * (self.waiting() - self.mean(now, tau)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    #[test]
    fn a_burst_counts_half_at_once_and_nothing_when_it_has_reported() {
        let mut newcomers = Newcomers::new(Time::ZERO);
        (0..100).for_each(|_| newcomers.on_syns(at(1.0), 0.5, 1));
        assert_eq!(newcomers.excess(at(1.0), 0.5), 50.0);
        (0..100).for_each(|_| newcomers.on_first_data(at(1.1), 0.5, 1));
        assert_eq!(newcomers.excess(at(1.1), 0.5), 0.0);
        newcomers.on_first_data(at(1.2), 0.5, 1);
        assert_eq!(newcomers.waiting(), 0.0, "more first data than SYNs");
    }

    #[test]
    fn a_steady_stream_counts_nothing() {
        let mut newcomers = Newcomers::new(Time::ZERO);
        for i in 0..4000 {
            let now = at(f64::from(i) / 1000.0);
            newcomers.on_syns(now, 0.5, 1);
            if i >= 100 {
                newcomers.on_first_data(now, 0.5, 1);
            }
        }
        assert_eq!(newcomers.waiting(), 100.0);
        assert!(newcomers.excess(at(4.0), 0.5) < 0.1);
    }

    #[test]
    fn syns_without_data_are_forgotten_after_two_reports_time() {
        let mut newcomers = Newcomers::new(Time::ZERO);
        newcomers.on_syns(at(0.01), 0.5, 1);
        // The mean time between reports is 0.1 s, so the timer expires every 0.05 s.
        for i in 1..=4 {
            newcomers.age(at(0.05 * f64::from(i)), 0.5, 1);
        }
        assert_eq!(newcomers.waiting(), 1.0, "after 0.19 s");
        newcomers.age(at(0.25), 0.5, 1);
        assert_eq!(newcomers.waiting(), 0.0);
        newcomers.on_syns(at(0.3), 0.5, 1);
        newcomers.age(at(9.0), 0.5, 1_000_000);
        assert_eq!(newcomers.waiting(), 0.0);
    }
}
