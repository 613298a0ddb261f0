//! TCP as in Linux, without I/O. The inputs are packets and timers, and the outputs are packets.
//!
//! Begin with [`scoreboard`] (state of each segment), [`rtt`], [`sampler`] and [`rack`] (loss detection). The module
//! [`flight`] combines these four. Then read [`control`] (the controller and its window), and [`recovery`] (the
//! congestion states and the timer, modelled on Linux `tcp_input.c`) with [`prr`] and [`undo`]. The remaining modules
//! are [`sender`] (ACKs), [`transmit`] (transmission) with [`pacer`], [`receiver`] and [`offer`] (the receiver's
//! window). Sequence numbers count segments. LIMITATIONS.md lists the parts of TCP that the simulator does not model.

mod app;
mod control;
mod flight;
mod offer;
mod pacer;
mod prr;
mod rack;
mod receiver;
mod recovery;
mod rtt;
mod rtt_stats;
mod sampler;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;
mod timer;
mod transmit;
mod undo;
mod usage;

pub use app::{App, Chunk};
pub(crate) use offer::Offer;
pub(crate) use receiver::Receiver;
pub(crate) use rtt_stats::RttStats;
pub(crate) use scoreboard::Segment;
pub(crate) use sender::{Config, Phase, Sender};

use narrows_control::congestion::Timestamps;
use narrows_control::units::Time;

use crate::packet::Packet;
use crate::packets::Packets;

/// The time, and the output of an endpoint.
pub(crate) struct Io<'a> {
    pub(crate) now: Time,
    pub(crate) packets: &'a mut Packets,
    /// Packets that the endpoint sends, in the order of sending.
    pub(crate) out: &'a mut Vec<u32>,
}

impl Io<'_> {
    #[inline]
    pub(crate) fn send(&mut self, packet: Packet) {
        let id = self.packets.insert(packet);
        self.out.push(id);
    }

    /// Returns the time of the timestamp clock. If segments were retransmitted and no SACK gives an RTT, Linux measures
    /// the RTT by timestamps. Such an RTT can be up to one tick (1 ms) shorter than the real RTT. A path with an RTT of
    /// 20.7 ms can therefore show a minimum of 20.0 ms.
    pub(crate) fn timestamp(&self) -> u32 {
        Timestamps::clock(self.now)
    }
}

/// Whether `a` is before `b` in 32-bit serial arithmetic.
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
