//! The XCP sender: the network changes its window by a small amount with each ACK (Katabi, Handley
//! and Rohrs, SIGCOMM 2002; XCP-5).
//!
//! Each packet carries the RTT and the time between packets of its flow. When the RTT is known, each packet also
//! requests the largest possible increase. Routers lower the request to the amount that they grant.
//!
//! The sender responds to losses as Reno does, because a router without XCP may be on the path. On a path without XCP,
//! nothing lowers the request, and the SYN does not reveal this. So the sender ignores the echo of an unchanged
//! request.

use crate::congestion::linux::slow_start::slow_start;
use crate::congestion::{
    Ack, Congestion, Connection, Controller, Departing, INFINITE_SSTHRESH, State, Window,
};
use crate::feedback::header::{Echo, Header};
use crate::rate::xcp;
use crate::units::{Span, Time};

/// The largest request. No grant has this value, so an unchanged request is recognisable.
const ALL: i64 = i32::MAX as i64;

/// The XCP sender.
#[derive(Clone, Debug, Default)]
pub struct Xcp {
    /// L3 bytes of a full segment.
    packet: f64,
    /// The part of the window beyond whole segments, bytes.
    rest: f64,
}

impl Xcp {
    /// Changes the window by this number of bytes, but leaves at least one segment (XCP-5).
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

    fn on_established(&mut self, connection: &Connection, _window: &mut Window) {
        self.packet = f64::from(connection.packet_bytes.max(1));
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if ack.state == State::Loss {
            // After a timeout, the sender uses slow start, as any TCP does, until it reaches half of the window before
            // the timeout. After slow start, the network sets the window again.
            slow_start(window, ack.acked);
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

    /// Resets the threshold, because slow start happens only after a timeout.
    fn on_recovered(&mut self, _now: Time, window: &mut Window) {
        window.ssthresh = INFINITE_SSTHRESH;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Signal;
    use crate::congestion::harness::{ack_at, connection, initial_window};

    const RTT: Span = Span::from_millis(40);

    fn established() -> (Xcp, Window) {
        let mut window = initial_window();
        let connection = connection(Some(RTT), None);
        let mut xcp = Xcp::default();
        xcp.on_established(&connection, &mut window);
        (xcp, window)
    }

    fn ack(change: i64, state: State) -> Ack {
        Ack { srtt: RTT, state, echo: Some(Echo::Change(change)), ..ack_at(Time::ZERO) }
    }

    /// XCP-5: 15,000 bytes/s over 40 ms are 600 bytes. A segment of 1500 bytes is two and a half
    /// times as large.
    #[test]
    fn xcp_5_changes_add_up_to_whole_segments_and_leave_one() {
        let (mut xcp, mut window) = established();
        let windows: Vec<u32> = (0..5)
            .map(|_| {
                xcp.on_ack(&ack(15_000, State::Open), &mut window);
                window.cwnd
            })
            .collect();
        assert_eq!(windows, [10, 10, 11, 11, 12]);
        xcp.on_ack(&ack(-1_000_000_000, State::Open), &mut window);
        assert_eq!(window.cwnd, 1);
    }

    #[test]
    fn a_request_that_no_router_changed_is_not_a_grant() {
        let (mut xcp, mut window) = established();
        let departing = Departing {
            now: Time::ZERO,
            syn: false,
            fin: false,
            again: false,
            seq: 0,
            srtt: RTT,
            min_rtt: RTT,
            rto: RTT,
            packet_bytes: 1500,
        };
        let Header::Xcp(header) = xcp.header(&departing, &window) else { panic!("XCP's header") };
        assert_eq!((header.rtt, header.x), (40_000, 4_000_000));
        // One ACK may acknowledge several packets.
        for packets in 1..4 {
            xcp.on_ack(&ack(packets * header.delta, State::Open), &mut window);
            assert_eq!(window.cwnd, 10);
        }
        let Header::Xcp(first) = xcp.header(&Departing { srtt: Span::ZERO, ..departing }, &window) else {
            panic!("XCP's header")
        };
        assert_eq!((first.rtt, first.delta), (0, 0), "XCP-4: without an RTT, nothing is requested");
    }

    /// After a spurious timeout, the threshold is infinite. The window must not grow up to the threshold.
    #[test]
    fn after_a_timeout_half_the_window_is_recovered_and_after_a_spurious_one_nothing_more() {
        let (mut xcp, mut window) = established();
        window.cwnd = 40;
        let event =
            Congestion { again: false, signal: Signal::Timeout, now: Time::ZERO, in_flight: 40, srtt: RTT };
        xcp.on_congestion(&event, &mut window);
        window.cwnd = 1;
        for _ in 0..100 {
            xcp.on_ack(&ack(15_000, State::Loss), &mut window);
        }
        assert_eq!((window.cwnd, window.ssthresh), (20, 20));
        window.ssthresh = INFINITE_SSTHRESH;
        xcp.on_recovered(Time::ZERO, &mut window);
        assert_eq!((window.cwnd, window.ssthresh), (20, INFINITE_SSTHRESH));
    }
}
