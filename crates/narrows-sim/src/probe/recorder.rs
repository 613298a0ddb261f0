//! The result tables of a run. Units: seconds, bit/s, bytes, packets. Undefined values are NaN.

use narrows_control::rate::kit::features;

use super::{Histogram, Table, acks};
use crate::probe::table::row;

/// Result tables to which the run still adds rows.
pub struct Recorder {
    /// A row per flow.
    pub flows: Table,
    /// A row per flow and probe interval.
    pub flow_samples: Table,
    /// A row per link.
    pub links: Table,
    /// A row per link and probe interval.
    pub link_samples: Table,
    /// A row per port with a rate controller. The row counts the packets and messages that carry the port's feedback.
    pub signalling: Table,
    /// Training data for bandwidth models. For each measured flow that has ended, the table has one row for each BRF
    /// port on the flow's path.
    pub flow_records: Table,
    /// Quantiles of the flows' RTTs and of the links' sojourn times.
    pub distributions: Table,
    /// Events, each with its time.
    pub events: Table,
    /// Internal variables of controllers over time.
    pub traces: Table,
    /// A row per recorded ACK.
    pub acks: Table,
    /// A row per requested object.
    pub requests: Table,
}

impl Recorder {
    /// Creates empty tables.
    #[allow(clippy::new_without_default, reason = "an empty recorder is not a useful default")]
    pub fn new() -> Self {
        let flows = Table::new(
            "flows",
            &[
                ("flow", 'u'),
                ("name", 's'),
                ("cc", 's'),
                ("source", 's'),
                ("from", 's'),
                ("to", 's'),
                ("start_s", 'f'),
                ("end_s", 'f'),
                ("size_bytes", 'u'),
                ("fct_s", 'f'),
                ("fct_recv_s", 'f'),
                ("ideal_fct_s", 'f'),
                ("rtt_empty_s", 'f'),
                ("delivered_bytes", 'u'),
                ("goodput_bps", 'f'),
                ("sent_packets", 'u'),
                ("retransmits", 'u'),
                ("spurious", 'u'),
                ("timeouts", 'u'),
                ("rtt_mean_s", 'f'),
                ("rtt_p50_s", 'f'),
                ("rtt_p95_s", 'f'),
                ("rtt_p99_s", 'f'),
                ("rtt_max_s", 'f'),
                ("rtt_jitter_s", 'f'),
                ("min_rtt_s", 'f'),
                ("sent_bytes", 'u'),
                ("signal_bytes", 'u'),
                ("delay_mean_s", 'f'),
            ],
        );
        let flow_samples = Table::new(
            "flow_samples",
            &[
                ("t_s", 'f'),
                ("flow", 'u'),
                ("goodput_bps", 'f'),
                ("send_bps", 'f'),
                ("cwnd", 'u'),
                ("ssthresh", 'f'),
                ("pacing_bps", 'f'),
                ("srtt_s", 'f'),
                ("rttvar_s", 'f'),
                ("rtt_s", 'f'),
                ("in_flight", 'u'),
                ("retransmits", 'u'),
                ("allocation_bps", 'f'),
                ("state", 'u'),
            ],
        );
        let links = Table::new(
            "links",
            &[
                ("link", 'u'),
                ("name", 's'),
                ("capacity_bps", 'f'),
                ("utilisation", 'f'),
                ("throughput_bps", 'f'),
                ("offered_packets", 'u'),
                ("dropped_packets", 'u'),
                ("drop_rate", 'f'),
                ("random_losses", 'u'),
                ("marks", 'u'),
                ("sojourn_mean_s", 'f'),
                ("sojourn_p50_s", 'f'),
                ("sojourn_p95_s", 'f'),
                ("sojourn_p99_s", 'f'),
                ("sojourn_max_s", 'f'),
                ("backlog_mean_packets", 'f'),
            ],
        );
        let link_samples = Table::new(
            "link_samples",
            &[
                ("t_s", 'f'),
                ("link", 'u'),
                ("throughput_bps", 'f'),
                ("capacity_bps", 'f'),
                ("queue_packets", 'u'),
                ("queue_bytes", 'u'),
                ("drops", 'u'),
                ("marks", 'u'),
                ("random_losses", 'u'),
            ],
        );
        let signalling = Table::new(
            "signalling",
            &[
                ("link", 'u'),
                ("name", 's'),
                ("rate_controller", 's'),
                ("duration_s", 'f'),
                ("rewritten_data", 'u'),
                ("rewritten_acks", 'u'),
                ("messages", 'u'),
                ("message_flows", 'u'),
                ("notices", 'u'),
            ],
        );
        let mut columns = vec![("link", 'u'), ("start_s", 'f'), ("use_bps", 'f'), ("limited", 'u')];
        columns.extend(features::NAMES.map(|name| (name, 'u')));
        let flow_records = Table::new("flow_records", &columns);
        let distributions = Table::new(
            "distributions",
            &[("entity", 's'), ("id", 'u'), ("quantity", 's'), ("quantile", 'f'), ("value_s", 'f')],
        );
        let events = Table::new("events", &[("t_s", 'f'), ("kind", 's'), ("entity", 's'), ("value", 'f')]);
        let traces = Table::new("traces", &[("t_s", 'f'), ("entity", 's'), ("key", 's'), ("value", 'f')]);
        let requests = Table::new(
            "requests",
            &[
                ("flow", 'u'),
                ("request", 'u'),
                ("requested_s", 'f'),
                ("received_s", 'f'),
                ("size_bytes", 'u'),
            ],
        );
        Recorder {
            flows,
            flow_samples,
            links,
            link_samples,
            signalling,
            flow_records,
            distributions,
            events,
            traces,
            acks: acks::empty(),
            requests,
        }
    }

    /// Adds the quantiles of a histogram: one for each whole per cent, and three more above 99 %.
    pub fn record_distribution(&mut self, entity: &str, id: u32, quantity: &str, histogram: &Histogram) {
        if histogram.is_empty() {
            return;
        }
        let percents = (0..=100).map(|p| p as f64 / 100.0);
        for q in percents.chain([0.995, 0.999, 0.9999]) {
            self.distributions.push(row![entity, id, quantity, q, histogram.quantile(q)]);
        }
    }

    /// Returns the rows so far of a table that gets rows during the run.
    pub fn rows(&self, name: &str) -> Option<&Table> {
        let growing = [&self.flows, &self.flow_samples, &self.link_samples, &self.events, &self.traces];
        growing.into_iter().find(|table| table.name == name)
    }

    /// Returns the finished tables. Leaves out the tables of ACKs and of requests if they have no rows.
    pub fn into_tables(self) -> Vec<Table> {
        let mut tables = vec![
            self.flows,
            self.flow_samples,
            self.links,
            self.link_samples,
            self.signalling,
            self.flow_records,
            self.distributions,
            self.events,
            self.traces,
        ];
        tables.extend([self.acks, self.requests].into_iter().filter(|table| table.rows() > 0));
        tables
    }
}
