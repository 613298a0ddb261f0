//! Controllers whose host counts packets for them.
//!
//! A simulated switch shows each packet to its [`RateController`]. A real one cannot: its data plane counts, and what
//! decides reads the counts every few milliseconds. Packets that open and close flows are few and are still shown one by
//! one; for all others [`Aggregated`] takes counts instead, and says what the data plane shall do with the flow.

use super::{Action, FlowKey, Leaf, RateController};
use crate::units::{Bytes, Rate, Span, Time};

/// Names a flow without a search, for as long as the controller knows the flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowHandle(pub(super) u64);

/// What was counted of one flow since the last report.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// When the last report was made.
    pub since: Time,
    /// L3 bytes of its data packets that arrived at the port.
    pub bytes: Bytes,
    /// Payload bytes that the sequence numbers skipped: lost before this switch (BRF-100).
    pub missing: Bytes,
    /// The sender said that its application does not limit it (BRF-100).
    pub unlimited: bool,
    /// The sender said that it does.
    pub limited: bool,
    /// A sample of the RTT between switch and receiver.
    pub receiver_half: Option<Span>,
    /// A sample of the RTT between switch and sender.
    pub sender_half: Option<Span>,
    /// The last rate that another switch had written into an ACK that passed.
    pub passed: Option<Rate>,
}

/// What the data plane shall do with a flow's packets.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to write into its ACKs; `None`: nothing.
    pub rate: Option<Rate>,
    /// The leaf of the port's queue that its data joins.
    pub leaf: Leaf,
    /// Its RTT, by which the data plane spaces feedback (BRF-60).
    pub rtt: Span,
}

/// What a report meant for the decision on its flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The controller does not know the flow any more.
    Gone,
    /// It stands.
    Same,
    /// [`decide`](Aggregated::decide) may answer otherwise than before.
    Changed,
}

/// A rate controller that takes counts in place of packets.
pub trait Aggregated: RateController {
    /// The flow's handle, if the controller knows the flow.
    fn handle(&self, key: &FlowKey) -> Option<FlowHandle>;

    /// Counts of one flow, and whether the decision on it stands. Flows that had no packet need no report.
    fn on_counts(
        &mut self,
        now: Time,
        flow: FlowHandle,
        counts: &Counts,
        actions: &mut Vec<Action>,
    ) -> Standing;

    /// What to do with the flow from now on; `None` if the controller has removed it. The host carries it out at once.
    ///
    /// To be asked when a report changed it, when [`version`](Aggregated::version) did, and of each flow now and then:
    /// time alone may change it, too (a flow falls silent, an advertisement runs out).
    fn decide(&mut self, now: Time, flow: FlowHandle) -> Option<Decision>;

    /// Changes whenever [`decide`](Aggregated::decide) may answer otherwise than before for flows that were not
    /// reported.
    fn version(&self) -> u64;

    /// What another switch asks to have written into this flow's ACKs, which do not pass it, and until when (BRF-63).
    fn advertised(&self, now: Time, key: &FlowKey) -> Option<(Rate, Time)>;

    /// The rate for a newcomer, the `newcomers`-th (from 1) since the controller last heard of one, ready to be handed
    /// out before it hears of this one. With `key` as for that flow, otherwise as for one that nothing is known of. `None`: no
    /// rate is assigned yet.
    fn grant(&self, key: Option<&FlowKey>, newcomers: u64) -> Option<Rate>;
}
