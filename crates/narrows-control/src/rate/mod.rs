//! Rate controllers in the network: they turn the packets of a port into a rate for each flow.
//!
//! [`RateController`] is the contract. Its inputs are packets, timers and messages. It returns a
//! leaf for each packet, a rate to write, and [`Action`]s. The host (the simulator's switch, or the
//! agent on a real one) owns queues, clocks and wires. A
//! [`DomainController`](domain::DomainController) decides for many ports at once; it exchanges only
//! [`Message`]s.

pub mod aggregate;
pub mod bdr;
pub mod brf;
mod counters;
pub mod domain;
mod identity;
pub mod kit;
mod message;
pub mod obp;
pub mod pacec;
mod packet;
mod queue;
pub mod rcp;
pub mod registry;
pub mod uniform;
pub mod xcp;

#[cfg(test)]
mod header_tests;

pub use counters::PortCounters;
pub use identity::{FlowIdentity, FlowKey, Host, Proto};
pub use message::{Action, CongestionKind, Message, PortId, Report};
pub use packet::{PacketInfo, RateOption, TcpFlags};
pub use queue::{Admission, Class, LEAVES, Leaf, Queueing, UDP_QUEUE_PART, UDP_QUEUES, plain_leaf};

use crate::feedback::header::Header;
use crate::units::{Bytes, Rate, Time};

/// A rate controller of one port: a pure state machine. Unused methods have defaults.
pub trait RateController<K: FlowIdentity = FlowKey>: Send {
    /// The name in scenarios and results, e.g. `brf`.
    fn name(&self) -> &'static str;

    /// The port has come up. The controller sets the first class rates.
    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>);

    /// A data packet is about to join the controlled port's queue.
    fn on_data(
        &mut self,
        _now: Time,
        packet: &PacketInfo<K>,
        _port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) -> Admission {
        Admission::Queue(plain_leaf(packet))
    }

    /// How the port queues. Header-based controllers need no classes of flows.
    fn queueing(&self) -> Queueing {
        if self.uses_headers() { Queueing::Own } else { Queueing::Classes }
    }

    /// Whether UDP has per-flow queues and may borrow, at a port with a configured capacity. Otherwise UDP is
    /// policed: a packet that would have to wait is dropped (BRF-23).
    fn queues_udp(&self) -> bool {
        false
    }

    /// Whether it uses congestion headers. If so, [`on_arrival`](RateController::on_arrival) and
    /// [`on_departure`](RateController::on_departure) are called for each data packet.
    fn uses_headers(&self) -> bool {
        false
    }

    /// A data packet has arrived for the port. The host calls this before
    /// [`on_data`](RateController::on_data). Its header, which may be [`Header::None`], may be rewritten.
    fn on_arrival(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _port: &PortCounters) {}

    /// A data packet starts to leave, with `queued` L3 bytes behind it. Its header may be
    /// rewritten.
    fn on_departure(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _queued: Bytes) {}

    /// Whether this controller needs a configured capacity. Other controllers measure the capacity
    /// if none is configured.
    fn needs_configured_capacity(&self) -> bool {
        self.uses_headers()
    }

    /// Whether it needs a [`domain::DomainController`].
    fn needs_domain(&self) -> bool {
        false
    }

    /// A packet of the reverse direction passes the switch. Returns the rate to write into it.
    fn on_reverse(
        &mut self,
        _now: Time,
        _packet: &PacketInfo<K>,
        _actions: &mut Vec<Action<K>>,
    ) -> Option<Rate> {
        None
    }

    /// The rate that the last `on_reverse` of this flow returned did not fit into its packet
    /// (BRF-11).
    fn on_write_failed(&mut self, _key: &K) {}

    /// The deadline of [`next_timer`](RateController::next_timer) has passed, or the configured
    /// capacity changed.
    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>);

    /// A message from the SDN controller has arrived.
    fn on_message(
        &mut self,
        _now: Time,
        _message: &Message<K>,
        _port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) {
    }

    /// When `on_timer` must be called next.
    fn next_timer(&self) -> Time;

    /// The flow's current rate, for traces; `None` if the flow is unknown or has none.
    fn allocation(&self, _key: &K) -> Option<Rate> {
        None
    }

    /// The interface through which this controller takes counts instead of packets; `None` if it has none.
    fn aggregated(&mut self) -> Option<&mut dyn aggregate::Aggregated<K>> {
        None
    }

    /// Names and values of the internal state, for traces.
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}
