//! Measures how much of its grant a flow uses. A flow that uses clearly less than its grant requests 1.1 times its use,
//! so that other flows can use the rest. A flow that fills its grant requests an unlimited rate.

use crate::units::{Bytes, Rate, Span};

/// Number of windows that are evaluated together.
const WINDOWS: u32 = 4;
/// A flow is limited elsewhere if it uses less than this share of its grant in each of [`WINDOWS`] windows.
const LIMITED: f64 = 0.9;
/// A flow is not limited if it uses at least this share of its grant in one window. The share must exceed 1 /
/// [`HEADROOM`]. Otherwise a limited flow would count as unlimited as soon as it got its request (as in BRF-39).
const FULL: f64 = 0.95;
/// Ratio of a limited flow's request to its use.
const HEADROOM: f64 = 1.1;
/// Changes of a demand by at most this share are ignored.
const SAME: f64 = 0.1;

/// Measures the use of one flow's grant.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Meter {
    sent: Bytes,
    windows: u32,
    /// The maximum use and the minimum grant over the last `windows` windows.
    peak: Rate,
    least: Rate,
    /// The flow's request; `None` if the flow requests an unlimited rate.
    demand: Option<Rate>,
}

impl Meter {
    /// Counts bytes that the flow has sent.
    pub(super) fn count(&mut self, size: Bytes) {
        self.sent += size;
    }

    /// Returns the flow's request, or `None` if the flow requests an unlimited rate.
    pub(super) fn demand(&self) -> Option<Rate> {
        self.demand
    }

    /// Ends a window of this length, in which the flow was permitted to send at the rate `granted`. Returns whether the
    /// demand changed.
    pub(super) fn end_window(&mut self, window: Span, granted: Option<Rate>) -> bool {
        let used = Rate::of(core::mem::take(&mut self.sent), window);
        let Some(granted) = granted else {
            *self = Meter { demand: self.demand, ..Meter::default() };
            return false;
        };
        if used >= granted.mul_f64(FULL) {
            let lifted = self.demand.is_some();
            *self = Meter::default();
            return lifted;
        }
        self.least = if self.windows == 0 { granted } else { self.least.min(granted) };
        self.peak = self.peak.max(used);
        self.windows += 1;
        if self.windows < WINDOWS {
            return false;
        }
        let (peak, least) = (self.peak, self.least);
        *self = Meter { demand: self.demand, ..Meter::default() };
        // The use is compared with the minimum grant, because a sender learns of an increase only after an RTT.
        if self.demand.is_none() && peak >= least.mul_f64(LIMITED) {
            return false;
        }
        let asked = peak.mul_f64(HEADROOM);
        let differs = |old: Rate| (asked.as_f64() - old.as_f64()).abs() > SAME * old.as_f64();
        let new = self.demand.is_none_or(differs);
        if new {
            self.demand = Some(asked);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TC: Span = Span::from_millis(50);

    fn rate(r: u64) -> Rate {
        Rate::from_bytes_per_sec(r)
    }

    /// Passes windows in which the flow used `used` of its grant. Returns the numbers of the windows that changed the
    /// demand.
    fn run(meter: &mut Meter, windows: usize, used: u64, granted: u64) -> Vec<usize> {
        let told = |_: &usize| {
            meter.count(rate(used).bytes_in(TC));
            meter.end_window(TC, Some(rate(granted)))
        };
        (0..windows).filter(told).collect()
    }

    #[test]
    fn a_flow_that_uses_clearly_less_requests_a_tenth_more_than_it_uses() {
        let mut meter = Meter::default();
        assert_eq!(run(&mut meter, 10, 500_000, 1_000_000), [3]);
        assert_eq!(meter.demand(), Some(rate(550_000)));
        assert_eq!(
            run(&mut meter, 20, 500_000, 550_000),
            [0; 0],
            "the flow stays limited when it gets its request"
        );
        assert_eq!(
            run(&mut meter, 8, 300_000, 550_000),
            [5],
            "four windows from the third on show a lower use"
        );
        assert_eq!(meter.demand(), Some(rate(330_000)));
        assert_eq!(run(&mut meter, 8, 320_000, 330_000), [0], "the flow fills its grant");
        assert_eq!(meter.demand(), None);
    }

    #[test]
    fn a_flow_that_almost_fills_its_grant_is_not_limited() {
        let mut meter = Meter::default();
        assert_eq!(run(&mut meter, 20, 920_000, 1_000_000), [0; 0]);
        for _ in 0..20 {
            run(&mut meter, 3, 0, 1_000_000);
            run(&mut meter, 1, 1_000_000, 1_000_000);
        }
        assert_eq!(meter.demand(), None, "a pause of less than four windows does not count");
    }

    #[test]
    fn an_increase_unknown_to_the_sender_does_not_count_against_it() {
        let mut meter = Meter::default();
        for step in 0..8 {
            // In each window, the flow uses as much as the previous window's grant.
            assert_eq!(run(&mut meter, 1, 100_000 << step, 200_000 << step), [0; 0]);
        }
        assert_eq!(run(&mut meter, 4, 100_000, 0), [0; 0], "any use fills a grant of zero");
    }
}
