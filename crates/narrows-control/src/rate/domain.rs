//! Controllers of a whole domain. One domain controller serves all ports whose rate controllers are of the same kind. A
//! control network connects the domain controller to these ports.

use super::{FlowIdentity, FlowKey, Message, PortId};
use crate::units::{Span, Time};

/// Settings of the domain's controller, from the scenario or the operator.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Maximum time between polls of a port, if the controller polls; `None` for the controller's default.
    pub poll: Option<Span>,
}

/// Routes, which the domain's controller knows because it has installed them.
pub trait Topology<K: FlowIdentity = FlowKey> {
    /// Returns the controlled ports on the flow's path, in the order of the path; empty if the flow has no route.
    fn path(&self, flow: &K) -> Vec<PortId>;
}

/// The controller of a domain. It serves all ports whose rate controllers are of one kind, e.g. `pacec`. It is a pure
/// state machine. The control network delays messages. Messages may be lost if the controller or a port fails.
pub trait DomainController<K: FlowIdentity = FlowKey>: Send {
    /// Returns the name of the rate controllers that this controller serves, e.g. `pacec`.
    fn name(&self) -> &'static str;

    /// Called for a message from the port `from`. If the message reports about another port, it is ignored.
    fn on_message(
        &mut self,
        now: Time,
        from: PortId,
        message: &Message<K>,
        network: &dyn Topology<K>,
        out: &mut Vec<(PortId, Message<K>)>,
    );

    /// Called when the deadline of [`next_timer`](DomainController::next_timer) has passed.
    fn on_timer(&mut self, now: Time, network: &dyn Topology<K>, out: &mut Vec<(PortId, Message<K>)>);

    /// Returns the time at which `on_timer` must be called next.
    fn next_timer(&self) -> Time;
}
