//! Records the measurements of a flow over a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_control::catalogue::Catalogue;
use narrows_control::units::{Bytes, Time};
use narrows_sim::model::{Cell, EmptyPath, Histogram, Recorder};
use narrows_sim::plan::{Plan, TransportPlan};

use super::probe::Probe;
use crate::clock::Clock;
use crate::endpoint::{Member, name};
use crate::sample::{Diag, EbpfMaps, Reported, TcpInfo};
use crate::spec::FlowSpec;

/// Length in bytes of an IPv4 header and a TCP header with timestamps.
const TCP_HEADER_BYTES: u64 = 52;
/// Bytes by which an IPv6 header is longer than an IPv4 header.
const IPV6_EXTRA_BYTES: u64 = 20;

/// The rows that the results contain about a flow.
pub(crate) struct Rows {
    /// Whether the results contain samples and a histogram of the flow.
    pub(crate) is_sampled: bool,
    /// Whether they contain the state of the congestion controller, as far as it can be read.
    pub(crate) is_traced: bool,
    /// The maps with this state, if the controller is in eBPF.
    pub(crate) maps: Option<Arc<EbpfMaps>>,
}

/// A flow and its measurements.
pub(crate) struct FlowTrack {
    pub(crate) id: u32,
    pub(crate) member: Member,
    pub(crate) probe: Probe,
    /// Whether the results contain samples and a histogram of the flow.
    pub(crate) is_sampled: bool,
    is_traced: bool,
    maps: Option<Arc<EbpfMaps>>,
    empty: EmptyPath,
    headers: u64,
    info: Option<TcpInfo>,
    reported: Option<Reported>,
    delivered: u64,
    delivered_at_warmup: u64,
    delivered_at_stop: Option<u64>,
    last_delivered: u64,
    last_sent: u64,
    rtt: Option<Box<Histogram>>,
    rtt_sum: f64,
    rtt_count: u64,
    /// Number of segments that were delivered up to the last sample.
    rtt_delivered: u32,
    rtt_max: f64,
    is_over: bool,
}

impl FlowTrack {
    pub(crate) fn new(
        id: u32,
        member: Member,
        probe: Probe,
        Rows { is_sampled, is_traced, maps }: Rows,
        empty: EmptyPath,
        spec: &FlowSpec,
    ) -> Self {
        FlowTrack {
            id,
            member,
            probe,
            is_sampled,
            is_traced: is_sampled && is_traced,
            maps,
            empty,
            headers: if spec.source.is_ipv6() {
                TCP_HEADER_BYTES + IPV6_EXTRA_BYTES
            } else {
                TCP_HEADER_BYTES
            },
            info: None,
            reported: None,
            delivered: 0,
            delivered_at_warmup: 0,
            delivered_at_stop: None,
            last_delivered: 0,
            last_sent: 0,
            rtt: is_sampled.then(Histogram::new).flatten(),
            rtt_sum: 0.0,
            rtt_count: 0,
            rtt_delivered: 0,
            rtt_max: f64::NAN,
            is_over: false,
        }
    }

    /// Returns whether the flow has started and is not known to have ended.
    pub(crate) fn is_active(&self, now: Time) -> bool {
        self.member.start <= now && !self.is_over
    }

    /// Samples both ends. If `measure` is set, the RTT is recorded.
    pub(crate) fn update(
        &mut self,
        (clock, now): (Clock, Time),
        measure: bool,
        diags: &mut BTreeMap<PathBuf, Diag>,
    ) {
        match &mut self.probe {
            Probe::Own(board) => {
                // Read the end times first, so that the statistics read below are final if `is_over` is set.
                self.is_over = board.failed.load(Ordering::Relaxed)
                    || board.sender_done.get().is_some() && board.receiver_done.get().is_some();
                self.info = board.sample();
                self.reported = if self.is_traced { board.reported(self.maps.as_deref()) } else { None };
                self.delivered = board.delivered.load(Ordering::Relaxed);
            }
            Probe::External(external) => {
                external.sample(diags);
                self.info = external.info();
                self.reported = external.bbr().map(Reported::Linux);
                self.delivered = external.received();
            }
            Probe::Program(program) => {
                let is_new = program.sample(clock, diags);
                self.info = program.info();
                self.reported = program.bbr().map(Reported::Linux);
                self.delivered = program.counts.delivered;
                if is_new {
                    // Segments that the new connection delivered before this sample are not counted.
                    self.rtt_delivered = self.info.map_or(0, |i| i.delivered);
                }
            }
        }
        let Some(info) = self.info.filter(|i| i.srtt_us > 0) else { return };
        if measure && !self.is_over && now < self.member.stop {
            // The simulator samples the RTT at each ACK. The emulator samples it at fixed intervals, and weights each
            // sample with the number of segments that were delivered since the previous sample. Without the weights,
            // slow phases of a flow would count as much as fast phases.
            let segments = info.delivered.wrapping_sub(self.rtt_delivered);
            let seconds = info.srtt_us as f64 / 1e6;
            self.rtt_sum += seconds * f64::from(segments);
            self.rtt_count += u64::from(segments);
            self.rtt_max = self.rtt_max.max(seconds);
            if let Some(h) = &mut self.rtt {
                h.record_times(info.srtt_us as u64 * 1000, segments);
            }
        }
        self.rtt_delivered = info.delivered;
    }

    /// Starts the measurement interval.
    pub(crate) fn mark_warmup(&mut self) {
        self.delivered_at_warmup = self.delivered;
    }

    /// Records the delivered bytes when the application stops. Later deliveries do not count as goodput.
    pub(crate) fn mark_stop(&mut self) {
        self.delivered_at_stop = Some(self.delivered);
    }

    /// Returns the reason why the flow failed, or `None` if it did not fail.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.probe {
            Probe::Own(board) => board.reason.get().cloned(),
            Probe::External(external) => external.failure(),
            Probe::Program(program) => program.failure(),
        }
    }

    /// Returns notes about the programs that send and receive the flow.
    pub(crate) fn notes(&self) -> Vec<String> {
        match &self.probe {
            Probe::Program(program) => program.notes(),
            Probe::Own(_) | Probe::External(_) => Vec::new(),
        }
    }

    /// Returns the kernel's last statistics of the connection.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        self.info
    }

    /// Returns the L3 bytes sent, including retransmissions.
    fn sent_bytes(&self, plan: &Plan) -> u64 {
        match (&plan.flows[self.member.plan as usize].transport, &self.probe) {
            (TransportPlan::Udp { packet, .. }, Probe::Own(board)) => {
                board.sent_packets.load(Ordering::Relaxed) * *packet as u64
            }
            (_, Probe::Program(program)) => program.counts.sent_bytes,
            _ => self.info.map_or(0, |i| i.bytes_sent + i.data_segments_out as u64 * self.headers),
        }
    }

    /// Adds a row of samples. `seconds` is the time since the last row.
    pub(crate) fn sample(&mut self, t: Time, seconds: f64, plan: &Plan, recorder: &mut Recorder) {
        let sent = self.sent_bytes(plan);
        let nan = f64::NAN;
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8.0 / seconds;
        let info = self.info.unwrap_or_default();
        let payload_to_l3 = (info.mss as f64 + self.headers as f64) / info.mss.max(1) as f64;
        self.trace(t, info.mss.into(), plan, recorder);
        let pacing = match &plan.flows[self.member.plan as usize].transport {
            TransportPlan::Udp { rate, .. } => rate.as_bits_per_sec(),
            TransportPlan::Tcp { .. } | TransportPlan::Program(_) => {
                info.pacing_rate.map_or(nan, |r| r as f64 * 8.0 * payload_to_l3)
            }
            TransportPlan::Stack(_) => nan,
        };
        recorder.flow_samples.push([
            Cell::F(t.as_secs_f64()),
            Cell::U(self.id as u64),
            Cell::F(rate(self.delivered, self.last_delivered)),
            Cell::F(rate(sent, self.last_sent)),
            Cell::U(info.cwnd as u64),
            Cell::F(info.ssthresh.filter(|_| self.info.is_some()).map_or(nan, f64::from)),
            Cell::F(pacing),
            Cell::F(if info.srtt_us > 0 { info.srtt_us as f64 / 1e6 } else { nan }),
            Cell::F(if info.srtt_us > 0 { info.rttvar_us as f64 / 1e6 } else { nan }),
            // The kernel reports only the smoothed RTT.
            Cell::F(nan),
            Cell::U(info.in_flight as u64),
            Cell::U(self.packets().1),
            Cell::F(nan),
            Cell::U(info.ca_state as u64),
        ]);
        (self.last_delivered, self.last_sent) = (self.delivered, sent);
    }

    /// Adds the rows of the congestion controller's state. `mss` is the payload of a full packet.
    fn trace(&self, t: Time, mss: f64, plan: &Plan, recorder: &mut Recorder) {
        let Some(reported) = self.reported.as_ref().filter(|_| self.is_traced && mss > 0.0) else { return };
        let flow = name(plan, &self.member);
        reported.trace(mss, mss + self.headers as f64, &mut |key, value| {
            let row =
                [Cell::F(t.as_secs_f64()), Cell::S(flow.clone()), Cell::S(key.to_owned()), Cell::F(value)];
            recorder.traces.push(row);
        });
    }

    /// Returns the numbers of sent packets and of retransmitted packets.
    pub(crate) fn packets(&self) -> (u64, u64) {
        match (&self.probe, self.info) {
            (Probe::Program(program), _) => (program.counts.sent_packets, program.counts.retransmitted),
            (_, Some(i)) => (i.data_segments_out as u64, i.retransmits as u64),
            (Probe::Own(board), None) => (board.sent_packets.load(Ordering::Relaxed), 0),
            (Probe::External(_), None) => (0, 0),
        }
    }

    /// Adds the row of the flow.
    pub(crate) fn record(&self, plan: &Plan, recorder: &mut Recorder) {
        let flow = &plan.flows[self.member.plan as usize];
        let nan = f64::NAN;
        let m = &self.member;
        let end_of_run = Time::ZERO + plan.duration;
        let stop = m.stop.min(end_of_run);
        let (started, sender_done, receiver_done) = match &self.probe {
            Probe::Own(b) => (b.started.get(), b.sender_done.get(), b.receiver_done.get()),
            Probe::External(_) => (None, None, None),
            Probe::Program(program) => {
                let (sender_done, receiver_done) = program.done().unzip();
                (program.started(), sender_done, receiver_done)
            }
        };
        let started = started.unwrap_or(m.start);
        let udp = matches!(flow.transport, TransportPlan::Udp { .. });
        let ended = match (sender_done, receiver_done) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => (udp && stop < end_of_run).then_some(stop),
        };
        let begin = m.start.max(Time::ZERO + plan.warmup);
        let until = ended.map_or(stop, |e| e.min(stop));
        let measured =
            self.delivered_at_stop.unwrap_or(self.delivered).saturating_sub(self.delivered_at_warmup);
        let seconds = until.since(begin).as_secs_f64();
        let since_start = |t: Option<Time>| t.map_or(nan, |t| t.since(started).as_secs_f64());
        let (cc, ideal) = match &flow.transport {
            TransportPlan::Tcp { cc, mss, .. } => {
                let segments = m.size.div_ceil(*mss as u64);
                let wire = Bytes::new(m.size + segments.saturating_mul(TCP_HEADER_BYTES));
                let ideal = self.empty.propagation.scale(2, 1) + self.empty.bottleneck.time_for(wire);
                (Catalogue::built_in().label(cc), if m.size > 0 { ideal.as_secs_f64() } else { nan })
            }
            TransportPlan::Udp { .. } => ("udp".to_owned(), nan),
            TransportPlan::Stack(stack) => (stack.name.clone(), nan),
            TransportPlan::Program(program) => {
                let cc = program.cc.as_ref();
                (cc.map_or_else(|| "udp".to_owned(), |cc| Catalogue::built_in().label(cc)), nan)
            }
        };
        let info = self.info.unwrap_or_default();
        let (sent, retransmits) = self.packets();
        let q = |q: f64| self.rtt.as_ref().map_or(nan, |h| h.quantile(q));
        let node = |i: u32| plan.nodes.get(i as usize).cloned().unwrap_or_default();
        recorder.flows.push([
            Cell::U(self.id as u64),
            Cell::S(name(plan, m)),
            Cell::S(cc),
            Cell::S(flow.name.clone()),
            Cell::S(node(flow.from)),
            Cell::S(node(flow.to)),
            Cell::F(m.start.as_secs_f64()),
            Cell::F(ended.map_or(nan, Time::as_secs_f64)),
            Cell::U(m.size),
            Cell::F(since_start(sender_done)),
            Cell::F(since_start(receiver_done)),
            Cell::F(ideal),
            Cell::F(self.empty.rtt.as_secs_f64()),
            Cell::U(self.delivered),
            Cell::F(if seconds > 0.0 { measured as f64 * 8.0 / seconds } else { nan }),
            Cell::U(sent),
            Cell::U(retransmits),
            Cell::U(info.dsack_dups as u64),
            Cell::U(info.timeouts as u64),
            Cell::F(if self.rtt_count > 0 { self.rtt_sum / self.rtt_count as f64 } else { nan }),
            Cell::F(q(0.5)),
            Cell::F(q(0.95)),
            Cell::F(q(0.99)),
            Cell::F(self.rtt_max),
            // The smoothed RTT does not show the RTT's jitter.
            Cell::F(nan),
            Cell::F(if info.min_rtt_us > 0 { info.min_rtt_us as f64 / 1e6 } else { nan }),
            // Bytes on the wire are counted only for programs. Bytes of signalling are not counted for any flow.
            Cell::U(if let Probe::Program(program) = &self.probe { program.counts.sent_bytes } else { 0 }),
            Cell::U(0),
            // One-way delays are not measured.
            Cell::F(nan),
        ]);
        if let Some(h) = &self.rtt {
            recorder.record_distribution("flow", self.id, "rtt", h);
        }
    }
}
