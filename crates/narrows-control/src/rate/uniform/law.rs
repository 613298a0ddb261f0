//! The interface of a law that gives every flow of a port the same rate.

use crate::rate::PortCounters;
use crate::rate::counters::rated;
use crate::units::{Bytes, Rate, Span, Time};

/// The port's state for a law.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Configured capacity.
    pub capacity: Rate,
    /// L3 bytes of rated flows that are queued. The queues of other traffic do not delay rated flows.
    pub queued: Bytes,
    /// Limit of the queue in bytes, computed for full packets, if there is a limit.
    pub limit: Option<Bytes>,
}

impl Port {
    pub(in crate::rate) fn of(port: &PortCounters) -> Self {
        Port { capacity: port.capacity.unwrap_or_default(), queued: rated(&port.queued), limit: port.limit() }
    }
}

/// L3 bytes since the last reading. The traffic of a class of flows that do not follow rates is included only up to the
/// guarantee of the class.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Bytes offered to the port.
    pub arrived: Bytes,
    /// Bytes sent by rated flows.
    pub own: Bytes,
    /// Bytes sent by all other flows.
    pub other: Bytes,
}

/// A law that gives every flow of a port the same rate.
pub trait Law: Send {
    /// Name of the controller in scenarios and results.
    const NAME: &'static str;

    /// Called when the port is up.
    fn start(&mut self, now: Time, port: &Port);
    /// Called when a flow begins, or resumes after idle time.
    fn on_begin(&mut self, _now: Time, _port: &Port) {}
    /// Called when L3 bytes of a flow's data have arrived. `_rtt` is the flow's RTT, if it is known.
    fn on_data(&mut self, _bytes: Bytes, _rtt: Option<Span>) {}
    /// Called once per RTT of a flow. `lived` is the time since the flow's last report, or since the flow began. Also
    /// called when the flow ends or becomes idle; `_last` is true in this case.
    fn on_report(&mut self, _now: Time, _lived: Span, _first: bool, _last: bool, _port: &Port) {}
    /// Called when the deadline of [`next`](Law::next) has passed or the capacity has changed.
    fn on_timer(&mut self, now: Time, port: &Port, passed: Passed);
    /// Returns the time at which [`on_timer`](Law::on_timer) must be called next.
    fn next(&self) -> Time;
    /// Returns the present rate of each flow, L3 bytes/s.
    fn rate(&self, now: Time) -> Rate;
    /// Returns the rate that the n-th newcomer from now would get, for n = `newcomers`.
    fn grant(&self, now: Time, newcomers: u64) -> Rate;
    /// Returns the minimum rate that a flow with this RTT gets as feedback.
    fn least(&self, _rtt: Span) -> Rate {
        Rate::from_bytes_per_sec(1)
    }
    /// Passes the names and values of the state to `trace`.
    fn trace(&self, now: Time, trace: &mut dyn FnMut(&'static str, f64));
}
