//! The rate controller of a port, per-flow or header-based, for hosts that can run controllers of either kind.

use super::aggregate::Aggregated;
use super::{
    Action, FlowIdentity, FlowKey, HeaderController, Message, PerFlowController, PortCounters, Queueing,
};
use crate::units::{Rate, Time};

/// The requirements of a rate controller on its port.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// How the port queues packets.
    pub queueing: Queueing,
    /// Whether the capacity must be configured. If not, the controller can measure the capacity.
    pub configured_capacity: bool,
    /// Whether the controller needs a [`DomainController`](super::domain::DomainController).
    pub domain: bool,
}

/// A rate controller of one port.
pub enum RateController<K: FlowIdentity = FlowKey> {
    /// A controller that gives each flow a rate.
    PerFlow(Box<dyn PerFlowController<K>>),
    /// A controller that reads and writes congestion headers.
    Headers(Box<dyn HeaderController>),
}

impl<K: FlowIdentity> RateController<K> {
    /// Returns the name in scenarios and results.
    pub fn name(&self) -> &'static str {
        match self {
            RateController::PerFlow(controller) => controller.name(),
            RateController::Headers(controller) => controller.name(),
        }
    }

    /// Returns the requirements of the controller on its port.
    pub fn requirements(&self) -> Requirements {
        match self {
            RateController::PerFlow(controller) => controller.requirements(),
            RateController::Headers(_) => {
                Requirements { queueing: Queueing::Own, configured_capacity: true, domain: false }
            }
        }
    }

    /// Called when the port has come up.
    pub fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        match self {
            RateController::PerFlow(controller) => controller.on_start(now, port, actions),
            RateController::Headers(controller) => controller.on_start(now, port),
        }
    }

    /// Called when the deadline of [`next_timer`](RateController::next_timer) has passed or the configured capacity
    /// has changed.
    pub fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        match self {
            RateController::PerFlow(controller) => controller.on_timer(now, port, actions),
            RateController::Headers(controller) => controller.on_timer(now, port),
        }
    }

    /// Returns the time at which `on_timer` must be called next.
    pub fn next_timer(&self) -> Time {
        match self {
            RateController::PerFlow(controller) => controller.next_timer(),
            RateController::Headers(controller) => controller.next_timer(),
        }
    }

    /// Called for a message from the SDN controller. Header-based controllers get no messages.
    pub fn on_message(
        &mut self,
        now: Time,
        message: &Message<K>,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) {
        if let RateController::PerFlow(controller) = self {
            controller.on_message(now, message, port, actions);
        }
    }

    /// Returns the flow's current rate, for traces.
    pub fn allocation(&self, key: &K) -> Option<Rate> {
        match self {
            RateController::PerFlow(controller) => controller.allocation(key),
            RateController::Headers(_) => None,
        }
    }

    /// Converts the controller for a host that passes counts instead of packets. Returns `None` if the controller needs
    /// each packet.
    pub fn into_aggregated(self) -> Option<Box<dyn Aggregated<K>>> {
        match self {
            RateController::PerFlow(controller) => controller.into_aggregated(),
            RateController::Headers(_) => None,
        }
    }

    /// Passes the names and values of the internal state to `trace`.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        match self {
            RateController::PerFlow(controller) => controller.trace(trace),
            RateController::Headers(controller) => controller.trace(trace),
        }
    }
}
