//! A log of ACKs. Each row contains an ACK and the state of its flow after the ACK. The number of rows is limited.

use std::cell::RefCell;
use std::rc::Rc;

use narrows_control::units::{Span, Time};

use super::Table;
use super::table::row;

/// A row of the table `acks`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct AckRow {
    pub(crate) at: Time,
    /// Number of segments that this ACK newly delivered. `lost` is the number of segments that were marked lost because
    /// of this ACK.
    pub(crate) acked: u32,
    pub(crate) lost: u32,
    pub(crate) rtt: Option<Span>,
    pub(crate) srtt: Span,
    /// The ACK's delivery-rate sample in payload bits per second, and whether the application limited the sample.
    pub(crate) delivery: Option<f64>,
    pub(crate) app_limited: bool,
    pub(crate) in_flight: u32,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: Option<u32>,
    pub(crate) pacing: Option<f64>,
    pub(crate) state: u32,
    pub(crate) phase: Option<f64>,
}

/// Adds a row to the log of the run for each ACK of one flow. The first ACK of the flow has number 1.
#[derive(Debug)]
pub(crate) struct AckRecorder {
    flow: u32,
    count: u64,
    log: Rc<RefCell<AckLog>>,
}

impl AckRecorder {
    /// Creates the recorder for this flow number.
    pub(crate) fn new(flow: u32, log: Rc<RefCell<AckLog>>) -> Self {
        AckRecorder { flow, count: 0, log }
    }

    /// Adds the row of an ACK.
    pub(crate) fn add(&mut self, row: AckRow) {
        self.count += 1;
        self.log.borrow_mut().push(Numbered { flow: self.flow, ack: self.count, row });
    }
}

/// A row, with the number of its flow and the number of the ACK within this flow. The first ACK has number 1.
#[derive(Debug)]
struct Numbered {
    flow: u32,
    ack: u64,
    row: AckRow,
}

/// Collects rows, up to a limit. When the log reaches the limit, it drops every second row of each flow. From then on,
/// it adds rows for only half as many ACKs as before. The rows of a flow therefore cover the whole run, with the same
/// number of ACKs between any two successive rows.
#[derive(Debug, Default)]
pub(crate) struct AckLog {
    rows: Vec<Numbered>,
    /// Maximum number of rows.
    most: usize,
    /// Number of times that the log has reached its limit. The log keeps ACK number `n` if `n - 1` is a multiple of
    /// 2^halvings.
    halvings: u32,
    /// Whether the log is full and contains only first ACKs of flows. The log never drops these rows, so it accepts no
    /// more rows.
    is_full: bool,
}

impl AckLog {
    /// Creates a log of at most `most` rows.
    pub(crate) fn new(most: u32) -> Self {
        AckLog { rows: Vec::new(), most: most as usize, halvings: 0, is_full: false }
    }

    fn push(&mut self, row: Numbered) {
        if self.is_full || !keeps(self.halvings, row.ack) {
            return;
        }
        if self.rows.len() == self.most {
            self.halvings += 1;
            let halvings = self.halvings;
            self.rows.retain(|row| keeps(halvings, row.ack));
            if !keeps(halvings, row.ack) {
                return;
            }
            // If dropping has freed no row, all rows are first ACKs, and later attempts would free no row either.
            self.is_full = self.rows.len() == self.most;
            if self.is_full {
                return;
            }
        }
        self.rows.push(row);
    }

    /// Returns the finished table.
    pub(crate) fn into_table(self) -> Table {
        let mut table = empty();
        for Numbered { flow, ack, row: r } in self.rows {
            table.push(row![
                r.at.as_secs_f64(),
                flow,
                ack,
                r.acked,
                r.lost,
                r.rtt.map(Span::as_secs_f64),
                Some(r.srtt).filter(|srtt| *srtt > Span::ZERO).map(Span::as_secs_f64),
                r.delivery,
                u32::from(r.app_limited),
                r.in_flight,
                r.cwnd,
                r.ssthresh.map(f64::from),
                r.pacing,
                r.state,
                r.phase,
            ]);
        }
        table
    }
}

/// Whether the log keeps the ACK with this number.
fn keeps(halvings: u32, ack: u64) -> bool {
    (ack - 1).trailing_zeros() >= halvings
}

/// Creates a table without rows.
pub(crate) fn empty() -> Table {
    Table::new(
        "acks",
        &[
            ("t_s", 'f'),
            ("flow", 'u'),
            ("ack", 'u'),
            ("acked", 'u'),
            ("lost", 'u'),
            ("rtt_s", 'f'),
            ("srtt_s", 'f'),
            ("delivery_bps", 'f'),
            ("app_limited", 'u'),
            ("in_flight", 'u'),
            ("cwnd", 'u'),
            ("ssthresh", 'f'),
            ("pacing_bps", 'f'),
            ("state", 'u'),
            ("phase", 'f'),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(flow: u32, ack: u64) -> Numbered {
        let row = AckRow {
            at: Time::from_nanos(ack),
            acked: 1,
            lost: 0,
            rtt: None,
            srtt: Span::ZERO,
            delivery: None,
            app_limited: false,
            in_flight: 0,
            cwnd: 10,
            ssthresh: None,
            pacing: None,
            state: 0,
            phase: None,
        };
        Numbered { flow, ack, row }
    }

    proptest! {
        #[test]
        fn rows_are_bounded_and_evenly_spaced(most in 2u32..40, counts in prop::collection::vec(0u64..300, 1..4)) {
            let mut log = AckLog::new(most);
            for ack in 1..=counts.iter().copied().max().unwrap_or(0) {
                for (flow, count) in counts.iter().enumerate() {
                    if ack <= *count {
                        log.push(row(flow as u32, ack));
                        prop_assert!(log.rows.len() <= most as usize);
                    }
                }
            }
            let total: u64 = counts.iter().sum();
            prop_assert!(total > u64::from(most) || log.rows.len() as u64 == total);
            for (flow, count) in counts.iter().enumerate() {
                let kept: Vec<u64> = log.rows.iter().filter(|r| r.flow == flow as u32).map(|r| r.ack).collect();
                let expected: Vec<u64> = (1..=*count).filter(|a| keeps(log.halvings, *a)).collect();
                // If there are more flows than rows, some flows have no row.
                prop_assert!(kept == expected || counts.len() > most as usize);
            }
            prop_assert!(total == 0 || !log.rows.is_empty());
        }
    }
}
