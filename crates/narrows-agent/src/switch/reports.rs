//! Computes differences of the program's counters of designated packets.

use narrows_control::rate::aggregate::Reports;
use narrows_control::units::Span;

use crate::dataplane::layout::whole_reports;
use crate::dataplane::ports::Counters;

/// The sums over all designated packets of a port so far, in whole reports. A report is counted as soon as half of its
/// segments have passed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    syns: u64,
    first: u64,
    number: u64,
    lived_ns: u64,
}

impl Reported {
    pub(super) fn of(counters: &Counters) -> Self {
        Reported {
            syns: counters.designating_syns,
            first: whole_reports(counters.first_reports),
            number: whole_reports(counters.reports),
            lived_ns: counters.reported_ns,
        }
    }

    /// Returns the increase of each counter since `before`, or zero for a counter that has decreased.
    pub(super) fn since(self, before: Reported) -> Reports {
        Reports {
            syns: self.syns.saturating_sub(before.syns),
            first: self.first.saturating_sub(before.first),
            number: self.number.saturating_sub(before.number),
            lived: Span::from_nanos(self.lived_ns.saturating_sub(before.lived_ns)),
        }
    }
}

/// Adds `new` to `sum`, saturating, because the program's counters use all 64 bits.
pub(super) fn add(sum: &mut Reports, new: &Reports) {
    sum.syns = sum.syns.saturating_add(new.syns);
    sum.first = sum.first.saturating_add(new.first);
    sum.number = sum.number.saturating_add(new.number);
    sum.lived = Span::from_nanos(sum.lived.as_nanos().saturating_add(new.lived.as_nanos()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::layout::REPORT_UNIT;

    fn counted(reports: u64, reported_ns: u64) -> Reported {
        Reported::of(&Counters { reports, reported_ns, ..Counters::default() })
    }

    #[test]
    fn a_report_in_parts_counts_once() {
        let third = (REPORT_UNIT + 1) / 3;
        let parts = [0, 1, 2, 3].map(|n| counted(n * third, n * 10_000_000));
        let news: Vec<_> = parts.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        assert_eq!(news.iter().map(|new| new.number).collect::<Vec<_>>(), [0, 1, 0]);
        assert!(news.iter().all(|new| new.lived == Span::from_millis(10)));
    }

    #[test]
    fn counters_neither_wrap_nor_go_back() {
        let most = counted(u64::MAX, u64::MAX);
        assert_eq!(most.since(counted(0, 0)).number, u64::MAX / REPORT_UNIT);
        assert_eq!(counted(0, 0).since(most), Reports::default());
        let new = most.since(counted(0, 0));
        let mut sum = Reports { number: u64::MAX, ..new };
        add(&mut sum, &new);
        assert_eq!((sum.number, sum.lived), (u64::MAX, Span::from_nanos(u64::MAX)));
    }
}
