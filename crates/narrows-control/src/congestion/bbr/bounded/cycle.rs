//! The history of probing over the cycles Down, Cruise, Refill, Up (BBR2-4, BBR2-5, BBR3-5, BBR3-6).
//!
//! The history is kept across phases. It schedules the next probe and records how the last probe ended. It also tracks
//! whether ACKs acknowledge data of the latest probe, and how fast the long-term bound may grow.

use super::bounds::Bounds;
use super::params::Params;
use crate::congestion::Ack;
use crate::units::{Span, Time};

/// The kind of data that ACKs acknowledge at present, relative to the latest probe.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum Acks {
    /// Data unrelated to a probe.
    #[default]
    Init,
    /// Data that was sent in Refill or earlier.
    Refilling,
    /// Data that was sent before the probe. The probe itself has begun.
    Starting,
    /// Data of the probe.
    Feedback,
    /// Data of a probe that has ended.
    Stopping,
}

/// The information that an ACK gives about the end of a probe.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// No information.
    None,
    /// The last data of a probe was acknowledged, so the period of the bandwidth filter is over.
    Over,
    /// The last data of a probe was acknowledged, as in [`Feedback::Over`]. The probe was stopped as a precaution and
    /// had no excessive loss, so BBR probes again.
    Safe,
}

/// The history of probing.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    acks: Acks,
    /// Start of the present cycle of ProbeBW.
    since: Time,
    wait: Span,
    /// Number of rounds since the start of the cycle, plus a random number.
    rounds: u32,
    /// Whether losses count as losses of a probe (`is_bw_probe_sample`).
    pub sampling: bool,
    /// Whether the latest probe had excessive loss (`prev_probe_too_high`).
    pub too_high: bool,
    /// Whether the latest probe was stopped at the old bound as a precaution (`prev_probe_precautionary`).
    cautious: bool,
    up_rounds: u32,
    up_acked: u32,
    /// After this number of ACKed segments, the long-term bound grows by one segment.
    acked_per_segment: u32,
}

impl Cycle {
    /// Called when a round has begun.
    #[inline]
    pub fn on_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Called when a cycle of ProbeBW begins. `random` is a uniform random number that determines the time until the
    /// next probe (`PickProbeWait`).
    pub fn start_down(&mut self, now: Time, random: u64, params: &Params) {
        self.acks = Acks::Stopping;
        self.acked_per_segment = u32::MAX;
        self.since = now;
        let rounds = (random >> 32) * u64::from(params.probe_rounds_random);
        self.rounds = u32::try_from(rounds >> 32).unwrap_or(0);
        self.wait = params.probe_wait + params.probe_wait_random.scale(random & 0xffff_ffff, 1 << 32);
    }

    /// Called when Refill begins.
    pub fn start_refill(&mut self) {
        self.acks = Acks::Refilling;
        self.up_rounds = 0;
        self.up_acked = 0;
        self.cautious = false;
    }

    /// Called when Up begins. After this call, losses count as losses of the probe.
    pub fn start_up(&mut self, cwnd: u32) {
        self.acks = Acks::Starting;
        self.sampling = true;
        self.raise_slope(cwnd);
    }

    /// Called when ProbeRTT begins.
    pub fn interrupt(&mut self) {
        self.acks = Acks::Stopping;
    }

    /// Called when a probe's losses cross the threshold. Further losses of the probe have no effect.
    pub fn on_too_high(&mut self) {
        self.too_high = true;
        self.sampling = false;
    }

    /// Called once per round of a probe. Doubles the growth rate of the long-term bound (`RaiseInflightLongtermSlope`;
    /// BBR2-4).
    fn raise_slope(&mut self, cwnd: u32) {
        self.acked_per_segment = (cwnd >> self.up_rounds).max(1);
        self.up_rounds = (self.up_rounds + 1).min(30);
    }

    /// Tracks the data that ACKs acknowledge (first half of `AdaptLongTermModel`).
    #[inline]
    pub fn follow(&mut self, round_start: bool) -> Feedback {
        if !round_start {
            return Feedback::None;
        }
        match self.acks {
            Acks::Starting => {
                self.acks = Acks::Feedback;
                Feedback::None
            }
            Acks::Stopping => {
                self.sampling = false;
                self.acks = Acks::Init;
                if self.cautious && !self.too_high { Feedback::Safe } else { Feedback::Over }
            }
            _ => Feedback::None,
        }
    }

    /// Raises the long-term bound in Up, if there is no excessive loss and the window fills the bound
    /// (`ProbeInflightLongtermUpward`).
    pub fn grow(&mut self, ack: &Ack, round_start: bool, cwnd: u32, bounds: &mut Bounds) {
        if !ack.cwnd_limited || cwnd < bounds.longterm {
            // The window does not fill the bound, so the count of ACKed segments restarts. The kernel modules of v2 and
            // v3 do this too. The draft keeps the count.
            self.up_acked = 0;
            return;
        }
        self.up_acked = self.up_acked.saturating_add(ack.acked);
        let more = self.up_acked / self.acked_per_segment.max(1);
        self.up_acked -= more * self.acked_per_segment.max(1);
        bounds.longterm = bounds.longterm.saturating_add(more);
        if round_start {
            self.raise_slope(cwnd);
        }
    }

    /// Returns whether a probe is due (BBR3-5). A probe is due after the waiting time of the cycle, after
    /// `probe_rounds` rounds, or after `inflight` rounds, whichever comes first. A Reno flow with `inflight` segments
    /// in flight would cause about one loss in this number of rounds.
    #[inline]
    pub fn is_due(&self, now: Time, inflight: impl FnOnce() -> u32, params: &Params) -> bool {
        now.since(self.since) > self.wait
            || self.rounds >= params.probe_rounds
            || self.rounds >= inflight().min(params.probe_rounds)
    }

    /// Returns whether the present probe must stop, because the previous probe had excessive loss and the data in
    /// flight has reached the long-term bound again. The cycle remembers that it stopped the probe as a precaution
    /// (BBR2-5, BBR3-6).
    pub fn detect_risk(&mut self, in_flight: u32, bounds: &Bounds) -> bool {
        let risky = self.too_high && in_flight >= bounds.longterm;
        self.cautious |= risky;
        risky
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::congestion::bbr::v3;
    use crate::congestion::harness::ack_at;

    fn bounds(longterm: u32) -> Bounds {
        let mut bounds = Bounds::default();
        bounds.longterm = longterm;
        bounds
    }

    /// Checks rule BBR2-4.
    #[test]
    fn the_bound_grows_by_1_2_4_and_8_in_the_rounds_of_a_probe() {
        let mut cycle = Cycle::default();
        let mut bounds = bounds(96);
        cycle.start_up(96);
        let mut grown = Vec::new();
        for _ in 0..4 {
            let before = bounds.longterm;
            for n in 1..=96 {
                cycle.grow(&ack_at(Time::ZERO), n == 96, 96.max(bounds.longterm), &mut bounds);
            }
            grown.push(bounds.longterm - before);
        }
        assert_eq!(grown, [1, 2, 4, 8]);
    }

    #[test]
    fn a_bound_that_is_not_used_does_not_grow() {
        let mut cycle = Cycle::default();
        let mut bounds = bounds(100);
        cycle.start_up(100);
        for _ in 0..1000 {
            cycle.grow(&ack_at(Time::ZERO), true, 99, &mut bounds);
            cycle.grow(&Ack { cwnd_limited: false, ..ack_at(Time::ZERO) }, true, 100, &mut bounds);
        }
        assert_eq!(bounds.longterm, 100);
    }

    #[test]
    fn acks_before_the_bound_was_left_unused_do_not_count() {
        let mut cycle = Cycle::default();
        let mut bounds = bounds(100);
        cycle.start_up(100);
        for _ in 0..10 {
            (0..99).for_each(|_| cycle.grow(&ack_at(Time::ZERO), false, 100, &mut bounds));
            cycle.grow(&ack_at(Time::ZERO), false, 99, &mut bounds);
        }
        assert_eq!(bounds.longterm, 100);
    }

    #[test]
    fn the_next_probe_is_due_after_as_many_rounds_as_segments_and_at_most_63() {
        let due_after = |inflight| {
            let mut cycle = Cycle::default();
            cycle.start_down(Time::ZERO, 0, &v3::params());
            (0..100).find(|_| {
                let due = cycle.is_due(Time::ZERO, || inflight, &v3::params());
                cycle.on_round();
                due
            })
        };
        assert_eq!([due_after(10), due_after(62), due_after(500)], [Some(10), Some(62), Some(63)]);
    }

    /// Checks rule BBR2-5.
    #[test]
    fn a_probe_after_a_lossy_one_stops_at_the_old_bound_and_is_repeated_without_loss() {
        let bounds = bounds(100);
        let after = |too_high: bool| {
            let mut cycle = Cycle { too_high: true, ..Cycle::default() };
            cycle.start_refill();
            cycle.start_up(100);
            assert_eq!((cycle.detect_risk(99, &bounds), cycle.detect_risk(100, &bounds)), (false, true));
            cycle.too_high = too_high;
            cycle.start_down(Time::ZERO, 0, &v3::params());
            assert_eq!(cycle.follow(false), Feedback::None);
            let feedback = cycle.follow(true);
            assert!(!cycle.sampling, "losses no longer count as losses of the probe");
            assert_eq!(cycle.follow(true), Feedback::None);
            feedback
        };
        assert_eq!(after(false), Feedback::Safe);
        assert_eq!(after(true), Feedback::Over);
        assert!(!Cycle::default().detect_risk(1000, &bounds), "the last probe had no excessive loss");
    }

    proptest! {
        #[test]
        fn the_wait_is_two_to_three_seconds_and_the_count_of_rounds_starts_at_0_or_1(random: u64) {
            let mut cycle = Cycle::default();
            cycle.start_down(Time::ZERO, random, &v3::params());
            prop_assert!((Span::from_secs(2)..Span::from_secs(3)).contains(&cycle.wait), "{:?}", cycle.wait);
            prop_assert!(cycle.rounds <= 1);
            let last = Time::ZERO + cycle.wait;
            let due = |at| cycle.is_due(at, || 1000, &v3::params());
            prop_assert!(!due(last) && due(last + Span::from_nanos(1)));
        }
    }
}
