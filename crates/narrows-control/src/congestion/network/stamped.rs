//! The senders of RCP and OBP. They use the sender of [`brf`](super::brf), but their rate is in a congestion header of
//! each packet, not in an option of ACKs (RCP-4, OBP-1).

use super::brf::{Brf, Params};
use crate::congestion::{Ack, Congestion, Connection, Controller, Departing, Recovery, Window};
use crate::feedback::header::{Header, Obp, Rcp};
use crate::units::{Rate, Span, Time};

/// A sender whose packets request a rate.
#[derive(Clone, Debug)]
pub struct Stamped {
    rated: Brf,
    header: fn(&Departing, &Window) -> Header,
    header_bytes: u16,
}

impl Stamped {
    fn new(name: &'static str, header: fn(&Departing, &Window) -> Header, empty: Header) -> Self {
        // The sender does not bound the growth of its rate. In RCP, the routers prevent rates from growing faster than
        // the path allows. In OBP, nothing limits the growth.
        let rated = Brf::new(name, Params { up_per_rtt: None, ..Params::default() });
        Stamped { rated, header, header_bytes: empty.wire_bytes() }
    }

    /// Returns the RCP sender. Its packets carry its RTT.
    pub fn rcp() -> Self {
        let header = |packet: &Departing, _: &Window| {
            let rtt = (packet.srtt > Span::ZERO).then_some(packet.srtt);
            Header::Rcp(Rcp { rate: Rate::MAX, rtt })
        };
        Stamped::new("rcp", header, Header::Rcp(Rcp { rate: Rate::MAX, rtt: None }))
    }

    /// Returns the OBP sender. Its packets carry its permitted rate, not the rate that its application uses (our
    /// choice).
    pub fn obp() -> Self {
        const EMPTY: Obp = Obp { own: None, available: Rate::MAX, capacity: Rate::MAX, rate: Rate::MAX };
        // Without a rate from the network, the sender does not pace, and only the window limits it.
        let header = |_: &Departing, window: &Window| Header::Obp(Obp { own: window.pacing_rate, ..EMPTY });
        Stamped::new("obp", header, Header::Obp(EMPTY))
    }
}

impl Controller for Stamped {
    fn name(&self) -> &'static str {
        self.rated.name()
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        // If the echoed rate is [`Rate::MAX`], no router on the path uses this header.
        let feedback = connection.feedback.filter(|rate| *rate < Rate::MAX);
        self.rated.on_established(&Connection { feedback, ..connection.clone() }, window);
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        let feedback = ack.feedback.filter(|rate| *rate < Rate::MAX);
        self.rated.on_ack(&Ack { feedback, ..ack.clone() }, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.rated.on_congestion(event, window);
    }

    fn on_recovered(&mut self, now: Time, window: &mut Window) {
        self.rated.on_recovered(now, window);
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        self.rated.on_undo(now, window);
    }

    fn on_restart(&mut self, now: Time, idle: Span, app_limited: bool, window: &mut Window) {
        self.rated.on_restart(now, idle, app_limited, window);
    }

    fn recovery(&self) -> Recovery {
        self.rated.recovery()
    }

    fn header_bytes(&self) -> u16 {
        self.header_bytes
    }

    fn header(&mut self, packet: &Departing, window: &Window) -> Header {
        (self.header)(packet, window)
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.rated.trace(trace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::harness::{ack_at, connection, initial_window};

    const RTT: Span = Span::from_millis(40);

    fn departing(srtt: Span) -> Departing {
        Departing {
            now: Time::ZERO,
            syn: false,
            fin: false,
            again: false,
            seq: 0,
            srtt,
            min_rtt: srtt,
            rto: RTT,
            packet_bytes: 1500,
        }
    }

    fn established(mut sender: Stamped, feedback: Option<Rate>) -> (Stamped, Window) {
        let mut window = initial_window();
        let connection = connection(Some(RTT), feedback);
        sender.on_established(&connection, &mut window);
        (sender, window)
    }

    /// OBP-1: a new flow reports no rate. Later it reports the rate that the network gave it.
    #[test]
    fn obp_reports_its_permitted_rate() {
        let rate = Rate::from_bytes_per_sec;
        let own = |sender: &mut Stamped, window: &Window| match sender.header(&departing(RTT), window) {
            Header::Obp(header) => header.own,
            other => panic!("{other:?}"),
        };
        let (mut sender, mut window) = established(Stamped::obp(), Some(rate(3_750_000)));
        assert_eq!(own(&mut Stamped::obp(), &Window { pacing_rate: None, ..window.clone() }), None);
        assert_eq!(own(&mut sender, &window), Some(rate(3_750_000)));
        let ack =
            Ack { srtt: RTT, min_rtt: RTT, feedback: Some(rate(9_000_000)), ..ack_at(Time::ZERO + RTT) };
        sender.on_ack(&ack, &mut window);
        assert_eq!(own(&mut sender, &window), Some(rate(9_000_000)), "the sender has no bound of its own");
    }

    #[test]
    fn rcp_reports_its_known_rtt() {
        let (mut sender, window) = established(Stamped::rcp(), None);
        for (srtt, told) in [(RTT, Some(RTT)), (Span::ZERO, None)] {
            let header = sender.header(&departing(srtt), &window);
            assert_eq!(header, Header::Rcp(Rcp { rate: Rate::MAX, rtt: told }));
        }
    }

    /// If the echo of the SYN has the rate [`Rate::MAX`], no router on the path uses the header. In this case, the
    /// sender uses CUBIC, which does not pace.
    #[test]
    fn the_echo_of_an_untouched_header_is_not_a_rate() {
        for sender in [Stamped::rcp(), Stamped::obp()] {
            let (_, window) = established(sender, Some(Rate::MAX));
            assert_eq!(window.pacing_rate, None);
        }
    }
}
