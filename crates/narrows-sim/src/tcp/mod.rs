//! TCP as in Linux, without I/O. The inputs are packets and timers, and the outputs are packets.
//!
//! A reader can take the modules in this order:
//!
//! * [`scoreboard`] (state of each segment), [`rtt`], [`sampler`] (delivery rate) and [`rack`] (loss detection). The
//!   module [`flight`] combines these four.
//! * [`control`]: the controller and its window.
//! * [`recovery`]: the congestion states and the timer, modelled on Linux `tcp_input.c`. It uses [`prr`] and [`undo`].
//! * [`sender`] handles ACKs. [`transmit`] sends segments, and uses [`pacer`].
//! * [`receiver`], and [`offer`] (the receiver's window).
//!
//! Sequence numbers count segments. LIMITATIONS.md lists the parts of TCP that the simulator does not model.

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
mod schedule;
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
pub(crate) use scoreboard::{Scoreboard, Segment};
pub(crate) use sender::{Config, Phase, Sender};

use narrows_control::congestion::Timestamps;
use narrows_control::units::Time;

use crate::packet::Packet;
use crate::packets::Packets;

/// The current time, and the packets that an endpoint sends.
pub(crate) struct Io<'a> {
    pub(crate) now: Time,
    pub(crate) packets: &'a mut Packets,
    /// Packets that the endpoint has sent, in the order of sending.
    pub(crate) out: &'a mut Vec<u32>,
}

impl Io<'_> {
    #[inline]
    pub(crate) fn send(&mut self, packet: Packet) {
        let id = self.packets.insert(packet);
        self.out.push(id);
    }

    /// Returns the current time of the timestamp clock, whose tick is 1 ms. If segments were retransmitted and no SACK
    /// gives an RTT, Linux measures the RTT by timestamps. Such an RTT can be up to one tick shorter than the real RTT.
    /// A path with an RTT of 20.7 ms can therefore show a minimum of 20.0 ms.
    pub(crate) fn timestamp(&self) -> u32 {
        Timestamps::clock(self.now)
    }
}

/// Whether `a` is before `b` in 32-bit serial arithmetic.
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
