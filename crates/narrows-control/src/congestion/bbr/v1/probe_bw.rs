//! ProbeBW is the steady state. It cycles through pacing gains around 1 (BBR-15, BBR-16).
//!
//! [`GainCycle`] supplies the gains. BBR v1 uses constants, and its variants compute gains.

use super::view::View;
use crate::congestion::Ack;
use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::model::Model;
use crate::parameter::gain;
use crate::units::{Span, Time};

/// The probing entry of a cycle.
pub const PROBE: usize = 0;
/// The draining entry.
pub const DRAIN: usize = 1;

/// The end condition of the probing entry.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProbeEnd {
    /// The length of the entry has passed. In addition, there was a loss or gain x BDP is in flight (BBR-16).
    Both,
    /// There was a loss, this number of BDPs is in flight, or the entry's length has passed.
    Either(Gain),
    /// The entry's length has passed.
    Time,
}

/// The gains of a ProbeBW cycle. Entry 0 probes for bandwidth, entry 1 drains the queue, and the other entries
/// cruise.
pub trait GainCycle: Send {
    /// Returns the controller's name.
    fn name(&self) -> &'static str;

    /// Returns the number of entries in the cycle, at least 2.
    fn entries(&self) -> usize {
        8
    }

    /// Returns the pacing gain of an entry. The method is called once, when the entry begins.
    fn gain(&mut self, index: usize) -> Gain;

    /// Returns the length of an entry, by default one propagation time. The end of a probing or draining entry also
    /// depends on the data in flight (BBR-16).
    fn length(&self, _index: usize, min_rtt: Span) -> Span {
        min_rtt
    }

    /// Returns the end condition of the probing entry, for gains above 1.
    fn probe_end(&self) -> ProbeEnd {
        ProbeEnd::Both
    }

    /// Called for every ACK, in any phase, before the cycle moves. Cycles that measure the path use this call.
    fn on_ack(&mut self, _ack: &Ack, _model: &Model) {}

    /// Passes the names and values of the cycle's measurements to `trace`.
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}

crate::parameters! {
    /// The cycle of BBR v1 (`bbr_pacing_gain`).
    #[derive(Copy)]
    pub struct ConstantGains {
        /// Pacing gain of the phase that probes for bandwidth.
        pub up_gain: Gain = Gain::ratio(5, 4), gain(1.0, 4.0).from("bbr_pacing_gain");
        /// Pacing gain of the phase that drains the queue of the probe.
        pub down_gain: Gain = Gain::ratio(3, 4), gain(0.1, 1.0).from("bbr_pacing_gain");
    }
}

impl GainCycle for ConstantGains {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn gain(&mut self, index: usize) -> Gain {
        match index {
            PROBE => self.up_gain,
            DRAIN => self.down_gain,
            _ => Gain::ONE,
        }
    }
}

/// The position in the cycle.
#[derive(Clone, Debug)]
pub struct ProbeBw {
    index: usize,
    since: Time,
    gain: Gain,
}

/// Returns the entry before the flow's first entry, so that [`ProbeBw::advance`] leads to the first entry. The first
/// entry is uniformly distributed over all entries except the draining entry (BBR-15). `random` is a uniform 32-bit
/// number.
fn before_first(entries: usize, random: u32) -> usize {
    let choices = entries.saturating_sub(1) as u64;
    let choice = (u64::from(random) * choices) >> 32;
    entries.saturating_sub(1 + choice as usize)
}

impl ProbeBw {
    /// Enters the cycle at a random entry, so that flows do not probe at the same time.
    pub fn enter(now: Time, cycle: &mut dyn GainCycle, random: u32) -> Self {
        let mut probe = ProbeBw { index: before_first(cycle.entries(), random), since: now, gain: Gain::ONE };
        probe.advance(now, cycle);
        probe
    }

    /// Returns the entry of the cycle.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the gain of the entry. On a policed path, the gain is 1 to avoid drops.
    pub fn pacing_gain(&self, policed: bool) -> Gain {
        if policed { Gain::ONE } else { self.gain }
    }

    /// Moves to the next entry of the cycle if the present entry is over.
    pub fn on_ack(&mut self, view: &View<'_>, cycle: &mut dyn GainCycle) {
        if self.is_over(view, cycle) {
            self.advance(view.ack.now, cycle);
        }
    }

    fn advance(&mut self, now: Time, cycle: &mut dyn GainCycle) {
        self.index = (self.index + 1) % cycle.entries().max(1);
        self.since = now;
        self.gain = cycle.gain(self.index);
    }

    /// Returns whether the entry is over according to BBR-16, or by the cycle's own end condition for a probe. Linux
    /// estimates the data in flight at the earliest departure of the next burst. This transport paces single packets,
    /// so this function uses the data that is in flight now. During a probe, the packet that is about to leave also
    /// counts.
    fn is_over(&self, view: &View<'_>, cycle: &dyn GainCycle) -> bool {
        let length = cycle.length(self.index, view.model.min_rtt);
        let long_enough = view.ack.now.since(self.since) > length;
        let gain = self.pacing_gain(view.policed);
        let (bw, in_flight) = (view.model.max_bw(), view.ack.prior_in_flight);
        let top = self.index == PROBE;
        if gain == Gain::ONE {
            long_enough
        } else if gain > Gain::ONE {
            // A path with small buffers may never have room for gain x BDP, so a loss also ends the probe.
            let full =
                |level| view.ack.lost > 0 || in_flight.saturating_add(1) >= view.inflight(bw, level, top);
            match cycle.probe_end() {
                ProbeEnd::Both => long_enough && full(gain),
                ProbeEnd::Either(level) => long_enough || full(level),
                ProbeEnd::Time => long_enough,
            }
        } else {
            long_enough || in_flight <= view.inflight(bw, Gain::ONE, top)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks test vector TV-B5.
    #[test]
    fn the_cycle_never_begins_with_draining() {
        // Returns the smallest 32-bit number that maps to `choice` of 7 choices.
        let random = |choice: u64| u32::try_from((choice << 32).div_ceil(7)).unwrap_or(u32::MAX);
        assert_eq!(before_first(8, random(0)), 7);
        assert_eq!(before_first(8, random(6)), 1);
        let firsts: Vec<usize> = (0..7)
            .map(|choice| ProbeBw::enter(Time::ZERO, &mut ConstantGains::default(), random(choice)).index())
            .collect();
        assert_eq!(firsts, [0, 7, 6, 5, 4, 3, 2]);
        assert_eq!(ProbeBw::enter(Time::ZERO, &mut ConstantGains::default(), u32::MAX).index(), 2);
    }

    #[test]
    fn the_gains_of_a_cycle_average_to_one() {
        let sum: f64 = (0..8).map(|i| ConstantGains::default().gain(i).as_f64()).sum();
        assert_eq!(sum, 8.0);
    }
}
