//! The state of flows after each ACK, in bounded memory.

use narrows_control::units::{Span, Time};

use super::Table;
use super::table::row;

/// A row of the table `acks`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct AckRow {
    pub(crate) at: Time,
    /// Number of the flow, and number of the ACK within the flow, from 1.
    pub(crate) flow: u32,
    pub(crate) ack: u64,
    /// Segments that this ACK newly delivered, and segments that were newly marked lost.
    pub(crate) acked: u32,
    pub(crate) lost: u32,
    pub(crate) rtt: Option<Span>,
    pub(crate) srtt: Span,
    /// Payload bits per second of the ACK's delivery-rate sample, and whether the application limited it.
    pub(crate) delivery: Option<f64>,
    pub(crate) app_limited: bool,
    pub(crate) in_flight: u32,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: Option<u32>,
    pub(crate) pacing: Option<f64>,
    pub(crate) state: u32,
    pub(crate) phase: Option<f64>,
}

/// Collects rows. When the limit is reached, it drops every second row, and from then on every second ACK that it would
/// have kept. So the rows always cover the whole run, at equal distances.
#[derive(Debug)]
pub(crate) struct AckLog {
    rows: Vec<AckRow>,
    most: usize,
    /// An ACK is kept if its number minus one is a multiple of this number.
    stride: u64,
}

impl AckLog {
    /// Creates a log of at most `most` rows, which is at least 2.
    pub(crate) fn new(most: u32) -> Self {
        AckLog { rows: Vec::new(), most: most.max(2) as usize, stride: 1 }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: AckRow) {
        if !keeps(self.stride, row.ack) {
            return;
        }
        if self.rows.len() == self.most {
            self.stride *= 2;
            let stride = self.stride;
            self.rows.retain(|row| keeps(stride, row.ack));
            if !keeps(stride, row.ack) || self.rows.len() == self.most {
                return;
            }
        }
        self.rows.push(row);
    }

    /// Returns the finished table.
    pub(crate) fn into_table(self) -> Table {
        let mut table = empty();
        for r in self.rows {
            table.push(row![
                r.at.as_secs_f64(),
                r.flow,
                r.ack,
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

/// Whether the ACK with this number is kept.
fn keeps(stride: u64, ack: u64) -> bool {
    (ack - 1).is_multiple_of(stride)
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

    fn row(flow: u32, ack: u64) -> AckRow {
        AckRow {
            at: Time::from_nanos(ack),
            flow,
            ack,
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
        }
    }

    proptest! {
        /// The log keeps its bound, and each flow's rows are at equal distances from its first ACK on.
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
                let expected: Vec<u64> = (1..=*count).filter(|a| keeps(log.stride, *a)).collect();
                // More flows than rows: the last flows may lack rows, but none is in the wrong place.
                prop_assert!(kept == expected || counts.len() > most as usize || kept.len() + 1 >= expected.len());
            }
        }
    }
}
