//! Controllers that receive packet counts instead of packets.
//!
//! A simulated switch passes each packet to its [`PerFlowController`]. On a real switch the data plane counts packets,
//! and the controller reads the counts every few milliseconds. Only few packets open or close a flow. The data plane
//! passes each of them to the controller as an event, and only counts all other packets. From events and counts, an
//! [`Aggregated`] controller decides how the data plane treats each flow.

use super::{Action, FlowEvent, FlowIdentity, FlowKey, Leaf, PerFlowController, PortCounters};
use crate::units::{Bytes, Rate, Span, Time};

/// Identifies a flow, so that the controller finds it without a search. The handle is valid until the controller
/// removes the flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowHandle(pub(super) u64);

/// Counts of one flow since the previous report of counts.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The time of the previous report. If the flow began after that report, the time at which the flow began.
    pub since: Time,
    /// L3 bytes of the flow's data packets that arrived at the port.
    pub bytes: Bytes,
    /// Payload bytes that are missing according to gaps in the sequence numbers. These bytes were lost on the way to
    /// this switch (BRF-100).
    pub missing: Bytes,
    /// Whether the sender reported that its application does not limit the flow (BRF-100).
    pub unlimited: bool,
    /// Whether the sender reported that its application limits the flow.
    pub limited: bool,
    /// A sample of the RTT between switch and receiver.
    pub receiver_half: Option<Span>,
    /// A sample of the RTT between switch and sender.
    pub sender_half: Option<Span>,
    /// The last rate that another switch wrote into an ACK of the flow since the previous report.
    pub passed: Option<Rate>,
}

/// Sums over the designated packets that arrived since the last call of [`on_reports`](ReportCounter::on_reports). They
/// are for a controller that keeps no state per flow (BDR-41). In each designated packet, the sender reports the time
/// since the flow's previous report.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    /// Number of SYNs and SYN-ACKs of senders that designate packets.
    pub syns: u64,
    /// Number of flows that sent their first report.
    pub first: u64,
    /// Number of reports, including first reports.
    pub number: u64,
    /// Sum of the times that the senders report.
    pub lived: Span,
}

/// The treatment of a flow's packets in the data plane.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Decision {
    /// The rate to write into the flow's ACKs; `None` to write nothing.
    pub rate: Option<Rate>,
    /// The leaf of the port's queue that the flow's data joins.
    pub leaf: Leaf,
    /// The minimum time between two rates that the data plane writes for the flow: the flow's RTT (BRF-60), or a time
    /// that the controller chooses (PAC-3a).
    pub rtt: Span,
}

/// Whether the controller knows the flow after a report of counts, and whether its decision about the flow may have
/// changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The controller no longer knows the flow.
    Gone,
    /// The decision has not changed.
    Same,
    /// [`decide`](Aggregated::decide) may return another decision than before.
    Changed,
}

/// A rate controller that takes counts instead of packets.
pub trait Aggregated<K: FlowIdentity = FlowKey>: PerFlowController<K> {
    /// Returns the flow's handle, if the controller knows the flow.
    fn handle(&self, key: &K) -> Option<FlowHandle>;

    /// Handles a packet that begins, confirms or ends a flow, or only shows that the flow is alive.
    fn on_event(
        &mut self,
        now: Time,
        event: &FlowEvent<K>,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    );

    /// Takes the L3 bytes of UDP that arrived at the port since the last call.
    fn on_udp(&mut self, now: Time, bytes: Bytes, port: &PortCounters, actions: &mut Vec<Action<K>>);

    /// Takes the counts of one flow, and returns whether the decision about this flow may have changed. The host does
    /// not call this function for flows without packets.
    fn on_counts(
        &mut self,
        now: Time,
        flow: FlowHandle,
        counts: &Counts,
        actions: &mut Vec<Action<K>>,
    ) -> Standing;

    /// Returns the treatment of the flow from now on, or `None` if the controller has removed the flow. The host
    /// applies the decision at once.
    ///
    /// The host calls this function when a report or a new [`version`](Aggregated::version) may have changed the
    /// decision. The host also calls it occasionally for every flow, because time can change decisions: a flow becomes
    /// idle, or an advertisement expires.
    fn decide(&mut self, now: Time, flow: FlowHandle) -> Option<Decision>;

    /// Returns a number. If the number differs from that of the last call, the decision about every flow may have
    /// changed, even if there was no report about the flow.
    fn version(&self) -> u64;

    /// Returns the rate that another switch requests for this flow's ACKs, and the time at which the request expires.
    /// A switch that sees the flow's data but not its ACKs makes this request (BRF-63).
    fn advertised(&self, now: Time, key: &K) -> Option<(Rate, Time)>;

    /// Returns the first rate of a newcomer whose packets the controller has not seen yet, or `None` if there is no
    /// rate yet. `newcomers` is the number of such newcomers, including this one. `key` is the newcomer's key, or
    /// `None` if the key is not known.
    fn grant(&self, key: Option<&K>, newcomers: u64) -> Option<Rate>;

    /// Returns whether sources get their rates in separate messages (PAC-3b). If so, the data plane writes a rate only
    /// into SYN-ACKs.
    fn sends_messages(&self) -> bool {
        false
    }

    /// Returns the controller as a counter of reports if it keeps no state per flow, and `None` otherwise. For a
    /// counter of reports, the data plane keeps no records of the port's flows. It counts their designated packets
    /// instead.
    fn report_counter(&mut self) -> Option<&mut dyn ReportCounter> {
        None
    }
}

/// The additional interface of an [`Aggregated`] controller that keeps no state per flow (BDR). Such a controller takes
/// sums over designated packets, and gives all flows one rate.
pub trait ReportCounter {
    /// Returns the longest time that one report may state. If a sender reports a longer time, the data plane counts
    /// this maximum.
    fn report_max(&self) -> Span;

    /// Takes the sums over the designated packets since the last call. Called in each tick.
    fn on_reports(&mut self, now: Time, reports: &Reports, port: &PortCounters);

    /// Returns the rate of all flows until the next call of [`on_reports`](ReportCounter::on_reports).
    fn common_rate(&self, now: Time) -> Rate;
}
