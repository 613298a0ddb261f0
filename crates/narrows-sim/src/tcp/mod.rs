//! TCP as in Linux, without I/O: packets and timers in, packets out.
//!
//! Reading order: [`scoreboard`] (state of each segment), [`rtt`], [`sampler`], [`rack`] (loss detection), [`prr`] (window
//! reduction), [`sender`] (the state machine, after Linux `tcp_input.c`), [`transmit`] (transmission), [`receiver`],
//! [`offer`] (the receiver's window).
//! Sequence numbers count segments. LIMITATIONS.md lists what is not modelled.

mod app;
mod offer;
mod prr;
mod rack;
mod receiver;
mod recovery;
mod rtt;
mod sampler;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;
mod timeouts;
mod timer;
mod transmit;
mod undo;

pub use app::{App, Chunk};
pub(crate) use offer::Offer;
pub(crate) use receiver::Receiver;
pub(crate) use sender::{Config, Phase, Sender};

use narrows_control::congestion::Timestamps;
use narrows_control::units::Time;

use crate::engine::Slab;
use crate::packet::Packet;

/// The time, and the output of an endpoint.
pub(crate) struct Io<'a> {
    pub(crate) now: Time,
    pub(crate) packets: &'a mut Slab<Packet>,
    /// Packets to forward, in order.
    pub(crate) out: &'a mut Vec<u32>,
}

impl Io<'_> {
    #[inline]
    pub(crate) fn send(&mut self, packet: Packet) {
        let id = self.packets.insert(packet);
        self.out.push(id);
    }

    /// The timestamp clock. An RTT that Linux measures by timestamps alone, after retransmissions, is up to a tick too short:
    /// a minimum RTT of 20.0 ms on a path of 20.7 ms.
    pub(crate) fn timestamp(&self) -> u32 {
        Timestamps::clock(self.now)
    }
}

/// Whether `a` is before `b` in 32-bit serial arithmetic.
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
