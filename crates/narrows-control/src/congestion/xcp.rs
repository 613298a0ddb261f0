//! The XCP sender: a window that the network moves, by a little with each ACK (Katabi, Handley and Rohrs, SIGCOMM 2002; XCP-5).
//!
//! Each packet says how often its flow sends one and asks for all it can get; routers lower that to what they grant. Loss is
//! answered as Reno answers it, since a router that speaks no XCP may be in the way. On a path without XCP nobody lowers the
//! request: a sender whose SYN found no router cannot know that, so the echo of an untouched request is ignored.

use super::{Ack, Congestion, Controller, Departing, State, Window};
use crate::feedback::header::{Echo, Header};
use crate::rate::xcp;
use crate::units::Span;

/// "As much as there is": an untouched request is told from any grant by it.
const ALL: i64 = i32::MAX as i64;

/// The XCP sender.
#[derive(Clone, Debug, Default)]
pub struct Xcp {
    /// L3 bytes of a full segment.
    packet: f64,
    /// What the window holds beyond whole segments, bytes.
    rest: f64,
}

impl Xcp {
    /// Moves the window by so many bytes, no lower than one segment (XCP-5).
    fn change(&mut self, bytes: f64, window: &mut Window) {
        let all = (f64::from(window.cwnd) * self.packet + self.rest + bytes).max(self.packet);
        let segments = (all / self.packet).floor().min(f64::from(u32::MAX));
        self.rest = all - segments * self.packet;
        window.cwnd = segments as u32;
    }
}

impl Controller for Xcp {
    fn name(&self) -> &'static str {
        "xcp"
    }

    fn on_established(&mut self, connection: &super::Connection, _window: &mut Window) {
        self.packet = f64::from(connection.packet_bytes.max(1));
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if !matches!(ack.state, State::Open | State::Disorder) {
            return;
        }
        if let Some(Echo::Change(change)) = ack.echo
            && change.abs() < ALL
        {
            self.change(change as f64 * ack.srtt.as_secs_f64(), window);
        }
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        self.rest = 0.0;
        window.ssthresh = (window.cwnd / 2).max(2);
    }

    fn on_recovered(&mut self, _now: crate::units::Time, window: &mut Window) {
        // After a timeout the window is one segment, and it is the network's to open it again: there is no slow start.
        window.cwnd = window.cwnd.max(window.ssthresh.min(super::INFINITE_SSTHRESH - 1)).max(1);
        window.ssthresh = super::INFINITE_SSTHRESH;
    }

    fn header_bytes(&self) -> u16 {
        Header::Xcp(xcp::Header::default()).wire_bytes()
    }

    fn header(&mut self, packet: &Departing, window: &Window) -> Header {
        let rtt = u32::try_from(packet.srtt.as_micros()).unwrap_or(u32::MAX);
        let spacing = packet.srtt.scale(1, u64::from(window.cwnd.max(1)));
        let x = u32::try_from(spacing.as_nanos()).unwrap_or(u32::MAX);
        let delta = if packet.srtt > Span::ZERO { ALL } else { 0 };
        Header::Xcp(xcp::Header { rtt, x, delta })
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("rest", self.rest);
    }
}
