//! TCP as Linux does it, sans I/O: packets and timers in, packets out.
//!
//! Reading order: [`scoreboard`] (what is where), [`rtt`], [`sampler`], [`rack`] (what is lost), [`prr`] (how fast to
//! reduce), [`sender`] (the state machine, after Linux `tcp_input.c`), [`transmit`] (what goes out), [`receiver`], [`offer`]
//! (its window).
//! Sequence numbers count segments. What is left out stands in LIMITATIONS.md.

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

/// Where an endpoint puts what it sends.
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

    /// The timestamp clock. What Linux measures by it alone, after retransmissions, is up to a tick too short: a least RTT of
    /// 20.0 ms on a path of 20.7.
    pub(crate) fn timestamp(&self) -> u32 {
        Timestamps::clock(self.now)
    }
}

/// `a` is before `b` in a 32-bit circle.
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
