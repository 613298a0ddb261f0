//! The congestion header. Packets carry it to routers, and routers change it.

use crate::units::Span;

/// The congestion header (draft-falk-xcp-spec-03, section 2) as plain numbers.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The sender's RTT in microseconds; 0 if the sender does not know it.
    pub rtt: u32,
    /// X: the time between the sender's packets in nanoseconds, which is the packet size divided by the throughput.
    pub x: u32,
    /// Delta_Throughput in bytes/s: the sender's request, which each router lowers to its grant.
    pub delta: i64,
}

impl Header {
    /// Returns the RTT, or `None` if the sender does not know it.
    pub fn rtt(&self) -> Option<Span> {
        (self.rtt > 0).then(|| Span::from_micros(u64::from(self.rtt)))
    }

    /// Returns X in seconds.
    pub fn x_secs(&self) -> f64 {
        Span::from_nanos(u64::from(self.x)).as_secs_f64()
    }
}
