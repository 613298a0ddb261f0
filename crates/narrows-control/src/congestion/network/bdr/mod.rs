//! The BDR sender. One packet per window asks the routers for a recommendation, and the sender sets
//! its window to the answer (Loureiro, Mascolo and Monteiro; BDR-30 to BDR-36). [`designator`]
//! chooses the packets.

pub mod designator;

use self::designator::{Backoff, Designator, after_idle, apply_gain, window as window_of};
use crate::congestion::linux::cubic::Cubic;
use crate::congestion::{Ack, Congestion, Connection, Controller, Departing, Recovery, Signal, Window};
use crate::feedback::header::{Bdr as BdrHeader, Echo, Header};
use crate::parameter::{Parameters, Reading, Values, flag, word};
use crate::rate::bdr::Report;
use crate::units::{Bytes, Rate, Span, Time};

/// The BDR sender.
#[derive(Clone, Debug)]
pub struct Bdr {
    choices: Choices,
    designator: Designator,
    backoff: Backoff,
    packet: Bytes,
    /// The last recommendation (resolved mode).
    advice: Rate,
    /// CUBIC, if there is no BDR router on the path (BDR-32).
    fallback: Option<Cubic>,
}

crate::parameters! {
    /// The choices of the sender.
    pub struct Choices {
        /// `literal` is the paper's sender. It applies gains, designates neither the SYN nor the FIN, and uses the
        /// flow's initial window.
        pub reading: Reading = Reading::Resolved, word(Reading::WORDS).from("the BDR paper; BDR-D6");
        /// Whether the sender spreads each window over the smoothed RTT. The paper's sender sends as soon as the
        /// window allows.
        pub pacing: bool = true, flag().from("BDR-25");
    }
}

impl Default for Bdr {
    fn default() -> Self {
        Bdr::new(Choices::default())
    }
}

impl Bdr {
    /// Returns the sender with the given parameters of the catalogue.
    pub fn from_values(values: &Values) -> Self {
        Bdr::new(Choices::default().with("", values))
    }

    fn new(choices: Choices) -> Self {
        Bdr {
            choices,
            designator: Designator::default(),
            backoff: Backoff::default(),
            packet: Bytes::new(1500),
            advice: Rate::ZERO,
            fallback: None,
        }
    }

    fn is_literal(&self) -> bool {
        self.choices.reading == Reading::Literal
    }

    /// Sets the pacing rate to one window per srtt (BDR-25), or leaves the flow unpaced.
    fn pace(&self, srtt: Span, window: &mut Window) {
        let bytes = Bytes::new(u64::from(window.cwnd).saturating_mul(self.packet.get()));
        window.pacing_rate = (self.choices.pacing && srtt > Span::ZERO)
            .then(|| Rate::of(bytes, srtt).max(Rate::from_bytes_per_sec(1)));
    }

    /// Applies an echoed recommendation at once, whether the window rises or falls (BDR-34).
    fn on_echo(&mut self, echo: Echo, min_rtt: Span, window: &mut Window) {
        match echo {
            // In resolved mode the echo is a rate. The window is the product of this rate and the minimum RTT, so the
            // window leaves no data for a queue (BDR-25).
            Echo::Rate(rate) => {
                self.advice = rate;
                window.cwnd = window_of(rate, min_rtt, self.packet);
            }
            // In literal mode the echo is the number of packets to add, as in the paper (BDR-26).
            Echo::Gain(gain) => window.cwnd = apply_gain(window.cwnd, gain),
            // A change of the throughput is feedback for XCP senders, which BDR ignores.
            Echo::Change(_) => return,
        }
        self.backoff.on_echo();
    }
}

impl Controller for Bdr {
    fn name(&self) -> &'static str {
        "bdr"
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        self.designator.on_established();
        self.packet = Bytes::new(u64::from(connection.packet_bytes.max(1)));
        let rtt = connection.rtt.unwrap_or(Span::ZERO);
        match connection.echo {
            Some(echo) => self.on_echo(echo, rtt, window),
            // In the paper, the SYN carries no header. So no router sets the first window.
            None if self.is_literal() => {}
            // There is no BDR router on the path (BDR-32).
            None => {
                let mut cubic = Cubic::default();
                cubic.on_established(connection, window);
                self.fallback = Some(cubic);
                return;
            }
        }
        self.pace(rtt, window);
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(cubic) = &mut self.fallback {
            cubic.on_ack(ack, window);
            return;
        }
        let echo = ack.echo.filter(|echo| !matches!(echo, Echo::Change(_)));
        self.designator.on_ack(ack.now, echo.is_some(), ack.snd_una);
        if let Some(echo) = echo {
            self.on_echo(echo, ack.min_rtt, window);
        }
        self.pace(ack.srtt, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        match &mut self.fallback {
            Some(cubic) => cubic.on_congestion(event, window),
            // After a timeout, the transport sets the window to 1. The next echo restores the
            // window (BDR-35).
            None if event.signal == Signal::Timeout => {}
            None => window.cwnd = self.backoff.on_loss(event.now, event.srtt, window.cwnd),
        }
    }

    fn on_recovered(&mut self, now: Time, window: &mut Window) {
        if let Some(cubic) = &mut self.fallback {
            cubic.on_recovered(now, window);
        }
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        if let Some(cubic) = &mut self.fallback {
            cubic.on_undo(now, window);
        }
    }

    fn on_restart(&mut self, now: Time, idle: Span, app_limited: bool, window: &mut Window) {
        match &mut self.fallback {
            Some(cubic) => cubic.on_restart(now, idle, app_limited, window),
            // The flow's fair share may have changed during the idle time (BDR-28).
            None => window.cwnd = after_idle(window.cwnd),
        }
    }

    fn recovery(&self) -> Recovery {
        if self.fallback.is_some() { Recovery::Transport } else { Recovery::Controller }
    }

    fn header_bytes(&self) -> u16 {
        // Only designated packets carry a header, and only one designated packet is in flight at a time (BDR-33).
        if self.fallback.is_some() || self.designator.is_outstanding() {
            return 0;
        }
        Header::Bdr(BdrHeader { report: Report::default(), advice: None }).wire_bytes()
    }

    fn header(&mut self, packet: &Departing, _window: &Window) -> Header {
        if self.fallback.is_some() {
            return Header::None;
        }
        let size = Bytes::new(u64::from(packet.packet_bytes));
        let report = if packet.syn {
            let report = self.designator.connect(packet.now, size);
            (!self.is_literal()).then_some(report)
        } else if packet.again {
            // The next new packet is designated instead of the retransmission (BDR-27).
            self.designator.on_retransmission(packet.seq);
            None
        } else if packet.fin && !self.is_literal() {
            // BDR-36 puts the last report into the last data packet. That report would omit the time until the packet
            // is acknowledged: half the life of a flow of one window. The FIN that closes the connection includes this
            // time.
            self.designator.finish(packet.now, size)
        } else {
            self.designator.on_send(packet.now, packet.seq, packet.rto, size)
        };
        match report {
            Some(report) => Header::Bdr(BdrHeader { report, advice: None }),
            None => Header::Member,
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("advice", self.advice.as_f64());
        trace("outstanding", f64::from(u8::from(self.designator.is_outstanding())));
        trace("fallback", f64::from(u8::from(self.fallback.is_some())));
    }
}
