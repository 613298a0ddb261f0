//! The cost of feedback (MET-82) at each controlled port: the number of packets that the switch rewrites, and the
//! number of messages of the control network.
//!
//! The bytes that feedback adds to packets are counted in the rows of the flows, not in the rows of the ports.

use narrows_control::rate::PortId;

use super::World;
use super::domain::Message;
use crate::probe::row;

/// Counters of a controlled port since the start of the run.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct SignallingCounts {
    /// Packets of the reverse direction into which a rate was written.
    pub(super) acks: u64,
    /// Messages between the port and the domain's controller in both directions, and the number of entries
    /// for flows in these messages.
    messages: u64,
    message_flows: u64,
    /// Notices: messages that carry a rate to a source.
    pub(super) notices: u64,
}

/// Returns the number of entries in a message. An entry is for a flow, or for a destination to which new
/// flows may start.
fn flows_in(message: &Message) -> u64 {
    match message {
        Message::Poll | Message::Report(_) | Message::Congestion { .. } => 0,
        Message::FlowAdvertisement { .. } | Message::Flow { .. } => 1,
        Message::Grants { flows, newcomers, .. } => (flows.len() + newcomers.len()) as u64,
    }
}

impl SignallingCounts {
    /// Counts a message to or from the domain's controller.
    pub(super) fn count_message(&mut self, message: &Message) {
        self.messages += 1;
        self.message_flows += flows_in(message);
    }
}

impl World<'_> {
    /// Writes the row of a controlled port at the end of the run.
    pub(super) fn record_signalling(&mut self, port: PortId) {
        let switch = &self.switches[port as usize];
        let (link, counts) = (switch.link as usize, switch.signalling);
        self.recorder.signalling.push(row![
            switch.link,
            self.plan.links[link].name.as_str(),
            self.plan.rate_controllers[port as usize].kind.as_str(),
            self.end.as_secs_f64(),
            self.ports[link].stats.rewritten,
            counts.acks,
            counts.messages,
            counts.message_flows,
            counts.notices,
        ]);
    }
}
