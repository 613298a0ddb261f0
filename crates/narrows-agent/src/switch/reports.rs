//! The program's counters of designated packets, and their differences.

use narrows_control::rate::aggregate::Reports;
use narrows_control::units::Span;

use crate::dataplane::layout::REPORT_UNIT;
use crate::dataplane::ports::Counters;

/// The sums over all designated packets of a port so far. Counts are whole reports: the parts of a report that is still
/// being counted come later.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    syns: u64,
    first: u64,
    number: u64,
    lived_us: u64,
}

impl Reported {
    pub(super) fn of(counters: &Counters) -> Self {
        Reported {
            syns: counters.designating_syns,
            first: counters.first_reports / REPORT_UNIT,
            number: counters.reports / REPORT_UNIT,
            lived_us: counters.reported_us,
        }
    }

    /// Returns the designated packets since `before`.
    pub(super) fn since(self, before: Reported) -> Reports {
        Reports {
            syns: self.syns.wrapping_sub(before.syns),
            first: self.first.wrapping_sub(before.first),
            number: self.number.wrapping_sub(before.number),
            lived: Span::from_micros(self.lived_us.wrapping_sub(before.lived_us)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_in_parts_counts_once() {
        let counters = |reports, reported_us| Counters { reports, reported_us, ..Counters::default() };
        let [a, b, c] =
            [counters(0, 0), counters(1333, 20_000), counters(2000, 30_000)].map(|c| Reported::of(&c));
        assert_eq!((b.since(a).number, b.since(a).lived), (1, Span::from_millis(20)));
        assert_eq!((c.since(b).number, c.since(b).lived), (1, Span::from_millis(10)));
    }
}
