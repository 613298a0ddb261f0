//! Notices. A notice is a message that tells a source its rate, independently of ACKs (PAC-3b).
//!
//! A rate controller sends a notice by an action. When the notice arrives, a Domain event delivers it.

use narrows_control::rate::PortId;
use narrows_control::units::{Rate, Span};

use super::World;
use super::domain::NOTICES_FROM;
use crate::engine::Kind;
use crate::flow::{Body, FlowIndex};

/// A notice on its way to a source.
#[derive(Copy, Clone, Debug)]
pub(super) struct Notice {
    slot: u32,
    generation: u16,
    rate: Rate,
}

impl World<'_> {
    /// Sends a rate from a switch to the source of a flow. The notice takes the propagation delay of the links from the
    /// switch to the source, but uses none of their capacity.
    pub(super) fn notify_source(&mut self, port: PortId, key: &FlowIndex, rate: Rate) {
        let Some(flow) = self.flows.find(key) else { return };
        let Some(back) = flow.reverse() else { return };
        let sender = &mut self.switches[port as usize];
        sender.signalling.notices += 1;
        let switch = self.ports[sender.link as usize].from;
        let path = self.paths.links_of(back);
        let rest = path.iter().skip_while(|&&l| self.ports[l as usize].from != switch);
        let delay: Span = rest.map(|&l| self.ports[l as usize].delay_at(self.now)).sum();
        let notice = Notice { slot: key.slot, generation: self.flows.generation(key.slot), rate };
        let index = self.notices.insert(notice);
        self.events.push(self.now + delay, Kind::Domain, NOTICES_FROM + index);
    }

    /// Delivers a notice to its source.
    pub(super) fn notice_event(&mut self, index: u32) {
        let Notice { slot, generation, rate } = *self.notices.get(index);
        self.notices.free(index);
        if !self.flows.is_current(slot, generation) {
            return;
        }
        self.with_flow(slot, |flow, io| {
            if let Body::Tcp(tcp) = &mut flow.body {
                tcp.sender.on_rate(io, rate);
            }
        });
    }
}
