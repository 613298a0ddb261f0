//! The RCP sender: the rate-obeying sender of [`brf`](super::brf), with the rate in a congestion header of each packet instead
//! of an option in ACKs (RCP-4).

use super::brf::{Brf, Params};
use super::{Ack, Congestion, Connection, Controller, Departing, Recovery, Window};
use crate::feedback::header::{Header, Rcp as RcpHeader};
use crate::units::{Rate, Span, Time};

/// The RCP sender.
#[derive(Clone, Debug)]
pub struct Rcp {
    rated: Brf,
}

impl Default for Rcp {
    fn default() -> Self {
        // RCP's routers see to it that rates grow no faster than the path can take: the sender has no bound of its own.
        Rcp { rated: Brf::new("rcp", Params { up_per_rtt: None, ..Params::default() }) }
    }
}

impl Controller for Rcp {
    fn name(&self) -> &'static str {
        self.rated.name()
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        // The echo of a rate that nobody limited is nobody's word: there is no RCP router on the path.
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
        Header::Rcp(RcpHeader { rate: Rate::MAX, rtt: None }).wire_bytes()
    }

    fn header(&mut self, packet: &Departing, _window: &Window) -> Header {
        let rtt = (packet.srtt > Span::ZERO).then_some(packet.srtt);
        Header::Rcp(RcpHeader { rate: Rate::MAX, rtt })
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.rated.trace(trace);
    }
}
