//! Controllers of a whole domain: one for all controlled ports of a kind, heard and obeyed over a control network.

use super::{FlowKey, Message, PortId};
use crate::units::{Span, Time};

/// What the scenario, or the operator, says about the domain's controller.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How often ports are polled at most, where the controller polls; `None`: its own default.
    pub poll: Option<Span>,
}

/// What a domain's controller knows without being told by its ports: it has installed the routes.
pub trait Topology {
    /// The controlled ports that the flow's data passes, first to last; empty for a flow that nobody routes.
    fn path(&self, flow: &FlowKey) -> Vec<PortId>;
}

/// A controller of all ports of one kind: a pure state machine. What it says and hears is under way for the control network's
/// delay, and may be lost with the controller or a port.
pub trait DomainController: Send {
    /// The name of the rate controllers whose ports it has, e.g. `pacec`.
    fn name(&self) -> &'static str;

    /// A message of a port has arrived. A port speaks for itself only: what says otherwise is ignored.
    fn on_message(
        &mut self,
        now: Time,
        from: PortId,
        message: &Message,
        network: &dyn Topology,
        out: &mut Vec<(PortId, Message)>,
    );

    /// The deadline of [`next_timer`](DomainController::next_timer) has come.
    fn on_timer(&mut self, now: Time, network: &dyn Topology, out: &mut Vec<(PortId, Message)>);

    /// When `on_timer` wants to be called next.
    fn next_timer(&self) -> Time;
}
