//! The contract of controllers that read and write the congestion headers of packets, and keep no flows: RCP, XCP, BDR
//! and OBP.

use super::PortCounters;
use crate::feedback::header::Header;
use crate::units::{Bytes, Time};

/// A rate controller that uses congestion headers: a pure state machine. The port keeps its queue, and its capacity must
/// be configured. Packets without a header, and with the header of another protocol, are shown too.
pub trait HeaderController: Send {
    /// The name in scenarios and results, e.g. `xcp`.
    fn name(&self) -> &'static str;

    /// The port has come up.
    fn on_start(&mut self, now: Time, port: &PortCounters);

    /// A data packet is about to join the port's queue. Its header may be rewritten.
    fn on_arrival(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _port: &PortCounters) {}

    /// A data packet starts to leave, with `queued` L3 bytes behind it. Its header may be
    /// rewritten.
    fn on_departure(&mut self, _now: Time, _size: Bytes, _header: &mut Header, _queued: Bytes) {}

    /// The deadline of [`next_timer`](HeaderController::next_timer) has passed, or the configured
    /// capacity changed.
    fn on_timer(&mut self, now: Time, port: &PortCounters);

    /// When `on_timer` must be called next.
    fn next_timer(&self) -> Time;

    /// Names and values of the internal state, for traces.
    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64));
}
