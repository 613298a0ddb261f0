//! The trait of controllers that read and write the congestion headers of packets, and keep no state for flows: RCP,
//! XCP, BDR and OBP.

use super::PortCounters;
use crate::feedback::header::Header;
use crate::units::{Bytes, Time};

/// A rate controller that uses congestion headers. It is a pure state machine. The port keeps its own queue, and the
/// port's capacity must be configured. The controller also sees packets with the header of another protocol, and
/// packets without a header, for example ACKs of flows in the other direction.
pub trait HeaderController: Send {
    /// Returns the name in scenarios and results, e.g. `xcp`.
    fn name(&self) -> &'static str;

    /// Called when the port has come up.
    fn on_start(&mut self, now: Time, port: &PortCounters);

    /// Called when a packet is about to join the port's queue. The controller may rewrite its header.
    fn on_arrival(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _port: &PortCounters) {}

    /// Called when the transmission of a packet starts. `queued` L3 bytes remain in the queue. The controller may
    /// rewrite its header.
    fn on_departure(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _queued: Bytes) {}

    /// Called when the deadline of [`next_timer`](HeaderController::next_timer) has passed or the configured capacity
    /// has changed.
    fn on_timer(&mut self, now: Time, port: &PortCounters);

    /// Returns the time at which `on_timer` must be called next.
    fn next_timer(&self) -> Time;

    /// Passes the names and values of the internal state to `trace`.
    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64));
}
