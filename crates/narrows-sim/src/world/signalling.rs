//! The cost of feedback (MET-82) at each port with a rate controller. The switch rewrites packets, exchanges messages
//! with its SDN controller, and sends notices to sources. This module counts these packets and messages.
//!
//! Feedback also adds bytes to packets. These bytes are counted in the rows of the flows, not in the rows of the ports.

use narrows_control::rate::PortId;

use super::World;
use super::domain::Message;
use crate::probe::row;

/// Counters of a port with a rate controller, since the start of the run.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct SignallingCounts {
    /// Number of packets of the reverse direction into which the switch has written a rate.
    pub(super) acks: u64,
    /// Number of messages between the port and its SDN controller, in both directions. `message_flows` is the number of
    /// entries for flows in these messages.
    messages: u64,
    message_flows: u64,
    /// Number of notices, which are messages that tell a source its rate.
    pub(super) notices: u64,
}

/// Returns the number of entries in a message. An entry concerns one flow, or one destination to which new flows may
/// start.
fn flows_in(message: &Message) -> u64 {
    match message {
        Message::Poll | Message::Report(_) | Message::Congestion { .. } => 0,
        Message::FlowAdvertisement { .. } | Message::Flow { .. } => 1,
        Message::Grants { flows, newcomers, .. } => (flows.len() + newcomers.len()) as u64,
    }
}

impl SignallingCounts {
    /// Counts a message to or from the SDN controller.
    pub(super) fn count_message(&mut self, message: &Message) {
        self.messages += 1;
        self.message_flows += flows_in(message);
    }
}

impl World<'_> {
    /// Writes the row of a port with a rate controller, at the end of the run.
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
