//! What feedback costs (MET-82): packets that switches rewrite and messages of the control network, by controlled port.
//!
//! The bytes that feedback adds to packets are counted with the flows that send them, where no packet counts twice.

use narrows_control::rate::{Message, PortId};

use super::World;
use crate::probe::row;

/// What a controlled port has done since the run began.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Work {
    /// Packets against the data that a rate was written into.
    pub(super) acks: u64,
    /// Messages between the port and the domain's controller, both ways, and flows that they speak of.
    messages: u64,
    message_flows: u64,
    /// Messages to sources.
    pub(super) notices: u64,
}

/// The flows (and destinations of newcomers) that a message has an entry for.
fn flows_in(message: &Message) -> u64 {
    match message {
        Message::Poll | Message::Report(_) | Message::Congestion { .. } => 0,
        Message::FlowAdvertisement { .. } | Message::Flow { .. } => 1,
        Message::Grants { flows, newcomers, .. } => (flows.len() + newcomers.len()) as u64,
    }
}

impl Work {
    /// A message sets out, to the domain's controller or from it.
    pub(super) fn message(&mut self, message: &Message) {
        self.messages += 1;
        self.message_flows += flows_in(message);
    }
}

impl World<'_> {
    /// The row of a controlled port when the run ends.
    pub(super) fn record_signalling(&mut self, port: PortId) {
        let switch = &self.switches[port as usize];
        let (link, work) = (switch.link as usize, switch.work);
        self.recorder.signalling.push(row![
            switch.link,
            self.plan.links[link].name.as_str(),
            self.plan.controllers[port as usize].kind.as_str(),
            self.plan.duration.as_secs_f64(),
            self.ports[link].stats.rewritten,
            work.acks,
            work.messages,
            work.message_flows,
            work.notices,
        ]);
    }
}
