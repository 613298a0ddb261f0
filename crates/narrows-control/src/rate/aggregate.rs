//! Controllers that receive packet counts instead of packets.
//!
//! A simulated switch shows each packet to its [`PerFlowController`]. On a real switch the data plane counts packets,
//! and the controller reads the counts every few milliseconds. Packets that open and close flows are few, so the data
//! plane records each of them as an event. For all other packets an [`Aggregated`] controller takes counts, and
//! decides what the data plane does with the flow.

use super::{Action, FlowEvent, FlowIdentity, FlowKey, Leaf, PerFlowController, PortCounters};
use crate::units::{Bytes, Rate, Span, Time};

/// Identifies a flow, so that the controller finds it without a search. The handle is valid until the controller
/// removes the flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowHandle(pub(super) u64);

/// Counts of one flow since the last report.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The time of the last report.
    pub since: Time,
    /// L3 bytes of the flow's data packets that arrived at the port.
    pub bytes: Bytes,
    /// Payload bytes that are missing according to gaps in the sequence numbers. These bytes were lost before this
    /// switch (BRF-100).
    pub missing: Bytes,
    /// Whether the sender reported that its application does not limit the flow (BRF-100).
    pub unlimited: bool,
    /// Whether the sender reported that its application limits the flow.
    pub limited: bool,
    /// A sample of the RTT between switch and receiver.
    pub receiver_half: Option<Span>,
    /// A sample of the RTT between switch and sender.
    pub sender_half: Option<Span>,
    /// The rate in the last ACK into which another switch had written a rate.
    pub passed: Option<Rate>,
}

/// Sums over the designated packets since the last call, for a controller that keeps no state per flow (BDR-41). In
/// each designated packet, the sender reports the time since the flow's previous report.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    /// Number of SYNs and SYN-ACKs of senders that designate packets.
    pub syns: u64,
    /// Number of flows that sent their first report.
    pub first: u64,
    /// Number of reports.
    pub number: u64,
    /// Sum of the times in the reports.
    pub lived: Span,
}

/// The treatment of a flow's packets in the data plane.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Decision {
    /// The rate to write into the flow's ACKs; `None` to write nothing.
    pub rate: Option<Rate>,
    /// The leaf of the port's queue that the flow's data joins.
    pub leaf: Leaf,
    /// The flow's RTT: the data plane sends feedback at most once per RTT (BRF-60).
    pub rtt: Span,
}

/// The effect of a report on the decision about its flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The controller no longer knows the flow.
    Gone,
    /// The decision stands.
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

    /// Takes the counts of one flow, and returns whether the decision about the flow may have
    /// changed. Flows without packets need no report.
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
    /// The host calls this function after a report or a new [`version`](Aggregated::version), which may have changed
    /// the decision. It also calls it occasionally for every flow, because decisions also change with time: a flow
    /// becomes idle, or an advertisement expires.
    fn decide(&mut self, now: Time, flow: FlowHandle) -> Option<Decision>;

    /// Returns a number that changes when decisions may have changed for flows without a new report.
    fn version(&self) -> u64;

    /// Returns the rate that another switch requests for this flow's ACKs, and the time at which the request expires.
    /// A switch that sees the flow's data but not its ACKs makes this request (BRF-63).
    fn advertised(&self, now: Time, key: &K) -> Option<(Rate, Time)>;

    /// Returns the first rate of a newcomer whose packets the controller has not seen yet, or `None` if there is no
    /// rate yet. `newcomers` is the number of such newcomers, including this one. `key` is the newcomer's key, or
    /// `None` if the key is not known.
    fn grant(&self, key: Option<&K>, newcomers: u64) -> Option<Rate>;

    /// If the controller keeps no state per flow, returns it as a counter of reports. The data plane then keeps no
    /// records of the port's flows, and counts their designated packets instead.
    fn report_counter(&mut self) -> Option<&mut dyn ReportCounter> {
        None
    }
}

/// The additional interface of an [`Aggregated`] controller that keeps no state per flow (BDR). Such a controller takes
/// sums over designated packets, and gives all flows one rate.
pub trait ReportCounter {
    /// Returns the longest time that one report can count for. A longer time is reduced to this maximum.
    fn report_max(&self) -> Span;

    /// Takes the sums of designated packets. Called in each tick.
    fn on_reports(&mut self, now: Time, reports: &Reports, port: &PortCounters);

    /// Returns the rate of all flows until the next call of [`on_reports`](ReportCounter::on_reports).
    fn common_rate(&self, now: Time) -> Rate;
}
