//! HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019) with a congestion header of its own.
//!
//! Each router writes four words into the header of each data packet: the link's rate, the time, the bytes that the
//! link has sent, and the bytes in the queue. The receiver returns these words, and the sender computes its window from
//! them (Algorithm 1 of the paper).

use narrows_control::catalogue::{Entry, Family, Feedback, Group, Needs, RateEntry, Service};
use narrows_control::congestion::{Ack, Congestion, Controller, Departing, Recovery, Window};
use narrows_control::feedback::header::{Custom, Header};
use narrows_control::parameter::{Parameters, number, whole};
use narrows_control::rate::{HeaderController, PortCounters};
use narrows_control::units::{Bytes, Rate, Span, Time};

/// The number that distinguishes this header from headers of other crates.
const PROTOCOL: u8 = 1;
/// Number of words that each router writes (see [`Hop`]).
const WORDS_PER_HOP: usize = 4;
/// Number of routers whose words fit into a header.
const HOPS: usize = 3;
/// A header without words.
const EMPTY: Custom = Custom::new(PROTOCOL, WORDS_PER_HOP * HOPS);

/// The words of one router.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Hop {
    /// Rate of the link, in units of 8 bytes/s.
    rate: u32,
    /// Time at which the packet left the queue, ns modulo 2^32.
    time: u32,
    /// Bytes that the link has sent, modulo 2^32.
    sent: u32,
    /// Bytes in the queue behind the packet.
    queued: u32,
}

impl Hop {
    fn to_words(self) -> [u32; WORDS_PER_HOP] {
        [self.rate, self.time, self.sent, self.queued]
    }

    fn from_words(words: &[u32]) -> Option<Hop> {
        let &[rate, time, sent, queued] = words else { return None };
        Some(Hop { rate, time, sent, queued })
    }

    fn bytes_per_sec(self) -> f64 {
        f64::from(self.rate) * 8.0
    }
}

/// The router's part: in-band telemetry.
struct Telemetry {
    rate: u32,
    sent: u32,
}

impl HeaderController for Telemetry {
    fn name(&self) -> &'static str {
        "telemetry"
    }

    fn on_start(&mut self, now: Time, port: &PortCounters) {
        self.on_timer(now, port);
    }

    fn on_timer(&mut self, _now: Time, port: &PortCounters) {
        let rate = port.capacity.unwrap_or(Rate::ZERO);
        self.rate = u32::try_from(rate.as_bytes_per_sec() / 8).unwrap_or(u32::MAX);
    }

    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    fn on_departure(&mut self, now: Time, size: Bytes, header: &mut Header, queued: Bytes) {
        self.sent = self.sent.wrapping_add(size.get() as u32);
        if let Header::Custom(header) = header
            && header.protocol() == PROTOCOL
        {
            let queued = u32::try_from(queued.get()).unwrap_or(u32::MAX);
            let hop = Hop { rate: self.rate, time: now.as_nanos() as u32, sent: self.sent, queued };
            // If the header has no room left, `push` adds nothing. On a path with too many routers, the sender
            // therefore measures only the first ones.
            header.push(&hop.to_words());
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("rate_bps", f64::from(self.rate) * 64.0);
    }
}

/// The row for the rate controller. With this row, scenarios can use `kind = "telemetry"`.
pub const TELEMETRY: RateEntry =
    RateEntry::new("telemetry", "in-band telemetry for HPCC", |_, _, _| Box::new(Telemetry { rate: 0, sent: 0 }));

narrows_control::parameters! {
    /// Parameters of [`Hpcc`].
    pub struct Params {
        /// Share of each link that all flows together may use (eta).
        pub target: f64 = 0.95, number(0.1, 1.0).from("HPCC, section 3.3");
        /// Maximum number of consecutive additive steps (maxStage).
        pub stages: u32 = 5, whole(0, 100).from("HPCC, section 3.3");
        /// Additive step of the window (W_AI).
        pub step: f64 = 0.5, number(0.0, 1000.0).unit("segments").from("this example");
    }
}

/// The sender's part: Algorithm 1.
struct Hpcc {
    params: Params,
    /// Window, and the reference window of the current RTT (W and Wc), segments.
    window: f64,
    reference: f64,
    /// Number of additive steps since the last multiplicative step (incStage).
    stage: u32,
    /// Average utilisation of the busiest link (U).
    utilisation: f64,
    /// The reference window changes again at the first ACK of a segment after this one (lastUpdateSeq).
    update_after: u64,
    /// Words of the newest ACK, and words of the ACK before it (L).
    newest: Vec<Hop>,
    before: Vec<Hop>,
}

impl Hpcc {
    fn new(params: Params) -> Self {
        Hpcc {
            params,
            window: 10.0,
            reference: 10.0,
            stage: 0,
            utilisation: 1.0,
            update_after: 0,
            newest: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Updates the utilisation from the words of two ACKs (MeasureInflight). `base` is the RTT without queues.
    fn measure(&mut self, base: Span) {
        let base = base.as_secs_f64();
        let (mut busiest, mut elapsed) = (0.0, 0.0);
        for (new, old) in self.newest.iter().zip(&self.before) {
            // The differences are signed: ACKs may be reordered, and a router that restarts counts from zero again.
            let (nanos, sent) = (new.time.wrapping_sub(old.time) as i32, new.sent.wrapping_sub(old.sent) as i32);
            if nanos <= 0 || sent < 0 || new.rate == 0 {
                continue;
            }
            let seconds = f64::from(nanos) / 1e9;
            let rate = f64::from(sent) / seconds;
            let queued = f64::from(new.queued.min(old.queued));
            let used = queued / (new.bytes_per_sec() * base) + rate / new.bytes_per_sec();
            if used > busiest {
                (busiest, elapsed) = (used, seconds.min(base));
            }
        }
        let weight = elapsed / base;
        self.utilisation = (1.0 - weight) * self.utilisation + weight * busiest;
    }

    /// Computes the window (ComputeWind). If `is_new_round` is set, the reference window also changes.
    fn compute(&mut self, is_new_round: bool) {
        let is_multiplicative =
            self.utilisation >= self.params.target || self.stage >= self.params.stages;
        let factor = if is_multiplicative { self.params.target / self.utilisation.max(1e-3) } else { 1.0 };
        self.window = (self.reference * factor + self.params.step).clamp(1.0, 1e6);
        if is_new_round {
            self.stage = if is_multiplicative { 0 } else { self.stage + 1 };
            self.reference = self.window;
        }
    }
}

impl Controller for Hpcc {
    fn name(&self) -> &'static str {
        "hpcc"
    }

    fn header_bytes(&self) -> u16 {
        EMPTY.wire_bytes()
    }

    fn header(&mut self, _packet: &Departing, _window: &Window) -> Header {
        Header::Custom(EMPTY)
    }

    fn on_header(&mut self, _now: Time, header: &Custom) {
        self.before = std::mem::take(&mut self.newest);
        if header.protocol() == PROTOCOL {
            self.newest = header.words().chunks(WORDS_PER_HOP).filter_map(Hop::from_words).collect();
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if ack.min_rtt == Span::MAX || self.newest.is_empty() {
            return;
        }
        self.measure(ack.min_rtt);
        let is_new_round = ack.snd_una > self.update_after;
        self.compute(is_new_round);
        if is_new_round {
            self.update_after = ack.snd_nxt;
        }
        window.cwnd = self.window.ceil() as u32;
        let bytes = Bytes::new((self.window * 1500.0) as u64);
        window.pacing_rate = Some(Rate::of(bytes, ack.min_rtt));
    }

    /// HPCC avoids losses, and its paper does not specify the response to a loss. This sender keeps its window after a
    /// loss.
    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        window.ssthresh = window.cwnd;
    }

    fn recovery(&self) -> Recovery {
        Recovery::Controller
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("utilisation", self.utilisation);
        trace("stage", f64::from(self.stage));
    }
}

/// The row for the congestion controller, which needs [`TELEMETRY`] at the ports of its path.
pub const HPCC: Entry = Entry {
    parameters: &[Group::of::<Params>("")],
    needs: Needs {
        marks_or_else: None,
        service: Some(Service { kind: "telemetry", mode: None, domain: false, feedback: Feedback::Header }),
    },
    ..Entry::new("hpcc", Family::Network, "HPCC: the window follows in-band telemetry", |values| {
        Box::new(Hpcc::new(Params::default().with("", values)))
    })
};
