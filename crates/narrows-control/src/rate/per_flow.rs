//! The trait of controllers that give each flow of a port a rate. Most of these controllers keep state for each flow.
//! The trait is implemented by BRF and PACEC, and by RCP and BDR for ports that write rates into ACKs.

use super::aggregate::Aggregated;
use super::{Action, Admission, FlowIdentity, FlowKey, Message, PacketInfo, PortCounters, Requirements};
use crate::units::{Rate, Time};

/// A rate controller that gives each flow a rate. It is a pure state machine. Its inputs are packets, timers and
/// messages. Its outputs are a leaf for each data packet, a rate to write into a packet of the reverse direction, and
/// [`Action`]s.
pub trait PerFlowController<K: FlowIdentity = FlowKey>: Send {
    /// Returns the name in scenarios and results, e.g. `brf`.
    fn name(&self) -> &'static str;

    /// Returns the requirements of the controller on its port.
    fn requirements(&self) -> Requirements;

    /// Called when the port has come up. The controller sets the first class rates.
    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>);

    /// Called when a data packet is about to join the controlled port's queue.
    fn on_data(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) -> Admission;

    /// Called for a packet of the reverse direction. Returns the rate to write into this packet, or `None` to leave the
    /// packet unchanged.
    fn on_reverse(&mut self, now: Time, packet: &PacketInfo<K>, actions: &mut Vec<Action<K>>)
    -> Option<Rate>;

    /// Called if the rate that the last `on_reverse` of this flow returned did not fit into the packet (BRF-11).
    fn on_write_failed(&mut self, _key: &K) {}

    /// Called when the deadline of [`next_timer`](PerFlowController::next_timer) has passed or the configured
    /// capacity has changed.
    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>);

    /// Returns the time at which `on_timer` must be called next.
    fn next_timer(&self) -> Time;

    /// Called for a message from the SDN controller.
    fn on_message(
        &mut self,
        _now: Time,
        _message: &Message<K>,
        _port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) {
    }

    /// Returns the flow's current rate, for traces, or `None` if the flow is unknown or has no rate.
    fn allocation(&self, key: &K) -> Option<Rate>;

    /// Converts the controller for a host that passes counts instead of packets. Returns `None` if the controller needs
    /// each packet.
    fn into_aggregated(self: Box<Self>) -> Option<Box<dyn Aggregated<K>>>;

    /// Passes the names and values of the internal state to `trace`.
    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64));
}
