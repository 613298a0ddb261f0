//! The BRF sender: paces at the rate that the bottleneck switch writes into ACKs. If there is no such rate, it falls
//! back to CUBIC.
//!
//! Source: "SDN-Based Congestion Control and Bandwidth Allocation Scheme in 5G Networks" (Sensors 24(3):749). Where the
//! paper specifies nothing, the sender follows BRF-90 to BRF-94, BRF-104 and BRF-105. The transport paces, and sets the
//! bit "not limited by the application" (BRF-100).
//!
//! Silence is a time without feedback. After `max(4 srtt, 200 ms)` of silence, the sender halves its rate every srtt.
//! After so long a silence, the allocation is outdated, and congestion may be the reason for the silence. With the
//! halving of BRF-92 alone, a flow would stay at two packets per RTT. However, BRF-105 requires a change to an ordinary
//! controller soon. So CUBIC takes over after four halvings.
//!
//! CUBIC starts with the window of the halved rate. Its slow-start threshold is half the window of the last allocation,
//! because that share was safe recently. When feedback returns, the halving or CUBIC ends at once. After CUBIC, the
//! rate starts at CUBIC's rate, and at most doubles per RTT.

use crate::parameter::{Parameters, Reading, Values, flag, time_from, whole, word};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::bdr::designator::Designator;
use crate::congestion::linux::cubic::Cubic;
use crate::congestion::{
    Ack, Congestion, Connection, Controller, Departing, INFINITE_SSTHRESH, Recovery, State, Window,
};
use crate::feedback::header::{Bdr, Header};
use crate::rate::bdr::Report;
use crate::units::{Bytes, Rate, Span, Time};

/// Minimum RTT. Shorter RTTs are clock errors.
const RTT_MIN: Span = Span::from_micros(10);

/// RTT samples are limited to this multiple of the minimum RTT (our choice). The first sample after an outage is as
/// long as the outage. Without this limit, the sender would send only two packets in a time as long as the outage, so
/// the next sample would be equally late.
const LONGEST_RTT: u64 = 8;

/// An increase starts from at least this number of segments per RTT of the path (our choice, equal to the floor of
/// BRF-92).
const FIRST_STEP: u64 = 2;

/// At a rate below this number of segments per RTT of the path, the gaps between segments vary (our choice).
const SPARSE: u64 = 2;

/// For [`SPARSE`], an RTT below this time counts as this time. This time is the minimum period of a switch (BRF-30).
/// Without this lower limit, the switch would mistake the varying gaps for a change of the rate.
const SPARSE_LEAST: Span = Span::from_millis(10);

/// The mean gap between two segments, in the unit of `Brf::gap`.
const EVEN: i64 = 1024;
/// The largest random difference between a gap and the mean gap, without the compensation in `choose_gap`.
const MOST_VARIED: i64 = EVEN / 3;

crate::parameters! {
    /// Parameters of [`Brf`]. `None` disables a safeguard that the paper does not have.
    pub struct Params {
        /// Maximum factor by which the rate grows per RTT.
        pub up_per_rtt: Option<u64> = Some(2), whole(1, 1000).or_none().from("BRF-104");
        /// The flow sends at least one segment in this time, even if the network's rate is lower. The default is the
        /// minimum RTO.
        pub slowest_segment: Span = Span::from_secs(1), time_from(Span::from_millis(1), Span::from_secs(100)).from("RFC 6298, 2.4");
        /// The window is this multiple of the data that the sender sends per srtt at its rate.
        pub window_srtts: Option<u64> = Some(2), whole(1, 1000).or_none().from("BRF-91");
        /// Minimum window.
        pub min_window: u32 = 4, whole(1, 10_000).unit("segments").from("BRF-91");
        /// Maximum rate between idle time and the next feedback, in segments per srtt.
        pub restart_segments: Option<u64> = Some(10), whole(1, 100_000).unit("segments").or_none().from("BRF-94");
        /// RTT assumed before the first sample.
        pub nominal_rtt: Span = Span::from_millis(100), time_from(Span::from_millis(1), Span::from_secs(10)).from("ours");
        /// Whether the gaps between segments vary at rates below two segments per RTT.
        pub vary_gaps: bool = true, flag().from("ours");
        /// Whether one packet per RTT is designated. This packet reports the time since the previous designated packet.
        /// Ports with `bdr` and `signal = "ack"` need these reports.
        pub designate: bool = false, flag().from("BDR-1");
    }
    and {
        /// Rate of this host's link. Rates from feedback are limited to this rate (BRF-104).
        pub link: Rate = Rate::MAX;
        /// The response to silence.
        pub silence: Option<Silence> = Some(Silence::default());
        /// Whether every rate after the SYN-ACK arrives in a separate message (PAC-3b) instead of an ACK.
        pub by_message: bool = false;
        /// A retransmission timeout is about srtt plus this time: Linux's minimum variance term (TCP_RTO_MIN).
        pub rto_floor: Span = Span::from_millis(200);
    }
}

crate::parameters! {
    /// Parameters of the response to silence (BRF-92, BRF-105).
    pub struct Silence {
        /// Silence begins after this number of smoothed RTTs without feedback, but not before `silence_least`.
        pub srtts: u64 = 4, whole(1, 1000).from("BRF-92");
        /// Minimum time before silence begins.
        pub least: Span = Span::from_millis(200), time_from(Span::from_millis(1), Span::from_secs(100)).from("BRF-92");
        /// Minimum rate during silence, in segments per srtt.
        pub floor_segments: u64 = 2, whole(1, 1000).unit("segments").from("BRF-105");
        /// Number of times that silence halves the rate before CUBIC takes over.
        pub halvings: u32 = 4, whole(0, 32).from("ours");
    }
}

crate::parameters! {
    /// The choice of the reading.
    pub struct Choices {
        /// `literal` is the sender of the paper: no limits on growth and window, and no fallback after the first rate.
        /// `literal` also changes the defaults of the other parameters.
        pub reading: Reading = Reading::Resolved, word(Reading::WORDS).from("the BRF paper");
    }
}

impl Params {
    /// Returns these parameters, changed by the given values of the catalogue.
    pub fn changed(self, values: &Values) -> Self {
        let silence = self.silence.clone().map(|silence| silence.with("silence_", values));
        Params { silence, ..self.with("", values) }
    }

    /// Returns the parameters for PACEC's sources that get their rates out of band. Sources with in-band rates use
    /// [`Brf`] with its defaults. A rate stays valid until the next update (PAC-4). The ingress repeats an unchanged
    /// rate every half second. So a source enters silence after a second without a rate.
    pub fn pacec() -> Self {
        let silence = Silence { least: Span::from_secs(1), ..Silence::default() };
        Params {
            up_per_rtt: None,
            silence: Some(silence),
            vary_gaps: false,
            by_message: true,
            ..Params::default()
        }
    }

    /// Returns the parameters of the paper's sender, which uses the rate from feedback and no window. Its only fallback
    /// is CUBIC for paths without a switch.
    pub fn literal() -> Self {
        Params {
            up_per_rtt: None,
            window_srtts: None,
            silence: None,
            restart_segments: None,
            vary_gaps: false,
            ..Params::default()
        }
    }
}

/// The controller that sets rate and window. The discriminants appear in traces.
#[derive(Clone, Debug)]
enum Mode {
    /// The network's rate.
    Rated,
    /// CUBIC, because the handshake had no option for feedback. Feedback that arrives later is
    /// treated as forged and ignored (BRF-104).
    Unrated(Cubic),
    /// CUBIC, because feedback has stopped or has not begun (BRF-93). Both ends use BRF. Perhaps a switch on the path
    /// of the ACKs has not received an advertisement of the flow yet (BRF-63). Or the switch was down during the
    /// handshake (BRF-105). Feedback may come at any time, because a switch treats every BRF flow as one that follows
    /// rates.
    Orphaned(Cubic),
}

/// The BRF sender.
#[derive(Clone, Debug)]
pub struct Brf {
    name: &'static str,
    params: Params,
    mode: Mode,
    /// The connection. Before the handshake, this is a placeholder.
    connection: Connection,
    /// The network's rate, within this host's limits.
    target: Rate,
    /// The target, limited by the bound on growth per RTT.
    granted: Rate,
    /// The value of `granted` at the start of the current RTT, or a later value that is lower.
    base: Rate,
    /// The start of the current RTT.
    base_at: Time,
    /// Maximum rate between idle time and the next feedback.
    restart: Option<Rate>,
    /// Feedback received while CUBIC was active: from a separate message, or in an ACK during a recovery.
    word: Option<Rate>,
    /// Whether feedback arrived during a recovery in which the transport sets CUBIC's window.
    is_called_back: bool,
    /// Time of the last feedback or the last restart from idle.
    heard_at: Time,
    halvings: u32,
    halved_at: Time,
    srtt: Span,
    /// Minimum RTT. The rate doubles once per minimum RTT, not per srtt. After an outage, srtt is as long as the outage
    /// for many RTTs. A rate that doubles once per srtt, for example every five seconds, would not recover.
    path: Span,
    /// The last measured RTT, for limits in segments per RTT. It includes the queueing delay. A minimum rate that
    /// ignored the queueing delay would make the queue grow.
    recent: Span,
    /// The present gap of a sparse flow, in units in which [`EVEN`] is the mean gap.
    gap: i64,
    /// The sum of the differences between the gaps and the mean gap, in the unit of `gap`.
    varied: i64,
    rng: Pcg32,
    is_established: bool,
    designator: Designator,
}

impl Default for Brf {
    fn default() -> Self {
        Brf::new("brf", Params::default())
    }
}

impl Brf {
    /// Returns the sender with the given parameters of the catalogue.
    pub fn from_values(values: &Values) -> Self {
        let params = match Choices::default().with("", values).reading {
            Reading::Resolved => Params::default(),
            Reading::Literal => Params::literal(),
        };
        Brf::new("brf", params.changed(values))
    }

    /// Returns a sender with these parameters, called `name` in results.
    pub fn new(name: &'static str, params: Params) -> Self {
        let connection = Connection::new(Time::ZERO, 1500, None);
        Brf {
            name,
            srtt: params.nominal_rtt,
            path: params.nominal_rtt,
            recent: params.nominal_rtt,
            params,
            mode: Mode::Unrated(Cubic::default()),
            connection,
            target: Rate::ZERO,
            granted: Rate::ZERO,
            base: Rate::ZERO,
            base_at: Time::ZERO,
            restart: None,
            word: None,
            is_called_back: false,
            heard_at: Time::ZERO,
            halvings: 0,
            halved_at: Time::ZERO,
            gap: EVEN,
            varied: 0,
            rng: Pcg32::seed_from_u64(0),
            is_established: false,
            designator: Designator::default(),
        }
    }

    fn segments(&self, n: u64) -> Bytes {
        Bytes::new(n.saturating_mul(u64::from(self.connection.packet_bytes)))
    }

    /// Returns the rate of this number of segments per recent RTT.
    fn segments_per_rtt(&self, segments: u64) -> Rate {
        Rate::of(self.segments(segments), self.recent).max(Rate::from_bytes_per_sec(1))
    }

    /// Returns the lowest rate that silence can cause (BRF-92).
    fn floor(&self) -> Rate {
        // Without a response to silence, as in the paper, the rate only has to be above zero.
        self.params
            .silence
            .as_ref()
            .map_or(Rate::from_bytes_per_sec(1), |s| self.segments_per_rtt(s.floor_segments))
    }

    /// Returns the lowest rate that feedback can cause (BRF-104).
    ///
    /// The floor of BRF-92 would be too high. If the fair share is less than two packets per RTT, senders at that floor
    /// overload the port forever. The minimum of this function is lower, so the sender follows every rate of an honest
    /// switch. A forged rate of zero makes the flow as slow as repeated timeouts would.
    fn least(&self) -> Rate {
        self.floor().min(Rate::of(self.segments(1), self.params.slowest_segment))
    }

    /// Returns the rate in use.
    fn rate(&self) -> Rate {
        let halved = self.granted.as_bytes_per_sec().checked_shr(self.halvings).unwrap_or(0);
        let floor = self.floor().min(self.granted);
        Rate::from_bytes_per_sec(halved).max(floor).min(self.restart.unwrap_or(Rate::MAX))
    }

    /// Returns the number of segments that a flow sends in `srtts` smoothed RTTs at `rate`, rounded up.
    fn segments_in_srtt(&self, rate: Rate, srtts: u64) -> u32 {
        let bytes = rate.bytes_in(self.srtt).get().saturating_mul(srtts);
        u32::try_from(bytes.div_ceil(u64::from(self.connection.packet_bytes))).unwrap_or(u32::MAX)
    }

    fn hear(&mut self, now: Time, feedback: Rate) {
        self.heard_at = now;
        self.halvings = 0;
        self.restart = None;
        self.target = feedback.min(self.params.link);
    }

    /// Moves the rate to the target. The rate falls at once, and rises by at most the factor `up_per_rtt` per RTT
    /// (BRF-104).
    fn follow_target(&mut self, now: Time) {
        if now.since(self.base_at) >= self.path {
            self.base_at = now;
            self.base = self.granted;
        }
        // The base has a floor, because doubling from almost zero would take too long.
        let base = self.base.max(Rate::of(self.segments(FIRST_STEP), self.path));
        let most = match self.params.up_per_rtt {
            Some(factor) => Rate::from_bytes_per_sec(base.as_bytes_per_sec().saturating_mul(factor)),
            None => Rate::MAX,
        };
        self.granted = self.target.min(most).max(self.least());
        // After the rate falls, it rises again from the lower rate. So a target that varies within an RTT causes no
        // jumps.
        self.base = self.base.min(self.granted);
    }

    /// Halves the rate during silence (BRF-92). Each ACK halves the rate at most once, because ACKs that an outage
    /// delayed do not prove silence.
    fn on_silence(&mut self, now: Time) {
        let Some(silence) = &self.params.silence else { return };
        let patience = self.srtt.scale(silence.srtts, 1).max(silence.least);
        let since_last = if self.halvings == 0 { self.srtt } else { now.since(self.halved_at) };
        if now.since(self.heard_at) > patience && since_last >= self.srtt {
            self.halvings += 1;
            self.halved_at = now;
        }
    }

    /// Switches to CUBIC or back, also during a recovery. An outage of a fast path may lose all packets of a large
    /// window. Without CUBIC, the recovery at the lowest rate of BRF-92 would take hundreds of RTTs. Without the change
    /// back, CUBIC would exceed the flow's rate for so long that the switch would demote the flow.
    fn change_mode(&mut self, ack: &Ack, window: &mut Window) {
        match &self.mode {
            Mode::Rated => {
                let most = self.params.silence.as_ref().map_or(u32::MAX, |s| s.halvings);
                if self.halvings > most {
                    self.halvings = most;
                    let mut was_filled = self.segments_in_srtt(self.granted, 1);
                    if !matches!(ack.state, State::Open | State::Disorder) {
                        // The threshold is at least half of all unacknowledged data (RFC 5681), so that CUBIC ends a
                        // long recovery soon.
                        let outstanding = ack.snd_nxt.saturating_sub(ack.snd_una);
                        was_filled = was_filled.max(u32::try_from(outstanding).unwrap_or(u32::MAX));
                    }
                    window.cwnd = self.segments_in_srtt(self.rate(), 1).max(self.params.min_window);
                    window.ssthresh = (was_filled / 2).max(window.cwnd);
                    self.mode = Mode::Orphaned(self.start_cubic(ack.now, window));
                }
            }
            Mode::Orphaned(_) => {
                if let Some(feedback) = ack.feedback.or(self.word.take()) {
                    self.is_called_back = false;
                    self.granted = self.segments_per_rtt(u64::from(window.cwnd));
                    self.base = self.granted;
                    self.base_at = ack.now;
                    self.mode = Mode::Rated;
                    window.ssthresh = INFINITE_SSTHRESH;
                    self.hear(ack.now, feedback);
                }
            }
            Mode::Unrated(_) => {}
        }
    }

    fn start_cubic(&self, now: Time, window: &mut Window) -> Cubic {
        let mut cubic = Cubic::default();
        window.pacing_rate = None;
        cubic.on_established(&Connection { now, ..self.connection.clone() }, window);
        cubic
    }

    /// Returns the pacing rate that gives the chosen gap after the next segment.
    fn pacing_rate(&self, rate: Rate) -> Rate {
        let sparse = rate < Rate::of(self.segments(SPARSE), self.path.max(SPARSE_LEAST));
        if !(self.params.vary_gaps && sparse) {
            return rate;
        }
        Rate::from_bytes_per_sec(rate.as_bytes_per_sec().saturating_mul(EVEN as u64) / self.gap.max(1) as u64)
    }

    /// Chooses the next gap of a sparse flow.
    ///
    /// With equal gaps, flows that start together would send together forever. So the gaps vary uniformly by up to a
    /// third of their mean. Each gap also compensates for a sixteenth of the sum of all variations. This keeps
    /// long-term rates exact, but a segment can still leave at almost any time within a mean gap.
    fn choose_gap(&mut self) {
        let vary = i64::from(self.rng.next_u32()) % (2 * MOST_VARIED) - MOST_VARIED;
        self.gap = (EVEN + vary - self.varied / 16).clamp(EVEN / 4, EVEN * 7 / 4);
        self.varied += self.gap - EVEN;
    }

    fn decide(&self, window: &mut Window) {
        let rate = self.rate();
        window.pacing_rate = Some(self.pacing_rate(rate));
        window.cwnd = match self.params.window_srtts {
            Some(srtts) => self.segments_in_srtt(rate, srtts).max(self.params.min_window),
            None => INFINITE_SSTHRESH,
        };
    }

    /// Returns whether the flow's packets carry BDR's reports. The reports end if the handshake shows that no switch on
    /// the path gives rates.
    fn designates(&self) -> bool {
        self.params.designate && (!self.is_established || !matches!(self.mode, Mode::Unrated(_)))
    }

    fn cubic(&mut self) -> Option<&mut Cubic> {
        match &mut self.mode {
            Mode::Rated => None,
            Mode::Unrated(cubic) | Mode::Orphaned(cubic) => Some(cubic),
        }
    }
}

impl Controller for Brf {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        self.designator.on_established();
        self.is_established = true;
        self.connection = Connection { packet_bytes: connection.packet_bytes.max(1), ..connection.clone() };
        self.srtt = connection.rtt.filter(|&rtt| rtt > Span::ZERO).unwrap_or(self.params.nominal_rtt);
        (self.path, self.recent) = (self.srtt, self.srtt);
        self.rng = Pcg32::seed_from_u64(connection.seed);
        self.choose_gap();
        match connection.feedback {
            Some(feedback) => {
                self.mode = Mode::Rated;
                self.hear(connection.now, feedback);
                // The switch chooses the first rate. There is no earlier rate, so the bound on growth does not apply.
                self.granted = self.target.max(self.least());
                self.base = self.granted;
                self.base_at = connection.now;
                self.decide(window);
            }
            None => {
                let cubic = self.start_cubic(connection.now, window);
                let awaited = connection.feedback_possible;
                self.mode = if awaited { Mode::Orphaned(cubic) } else { Mode::Unrated(cubic) };
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.designator.on_ack(ack.now, false, ack.snd_una);
        if ack.srtt > Span::ZERO {
            self.srtt = ack.srtt;
            self.path = ack.min_rtt.min(ack.srtt).max(RTT_MIN);
            let recent = ack.rtt.unwrap_or(self.recent);
            self.recent = recent.max(self.path).min(self.path.scale(LONGEST_RTT, 1));
        }
        if matches!(self.mode, Mode::Rated) {
            match ack.feedback {
                Some(feedback) => self.hear(ack.now, feedback),
                None => self.on_silence(ack.now),
            }
        }
        self.change_mode(ack, window);
        if let Some(cubic) = self.cubic() {
            cubic.on_ack(ack, window);
            return;
        }
        self.follow_target(ack.now);
        self.choose_gap();
        self.decide(window);
    }

    fn on_sample(&mut self, ack: &Ack) {
        // During a reduction, the transport sets CUBIC's window and does not call `on_ack`. This controller gets the
        // window back with the next ACK.
        if matches!(self.mode, Mode::Orphaned(_))
            && matches!(ack.state, State::Cwr | State::Recovery)
            && ack.feedback.is_some()
        {
            (self.word, self.is_called_back) = (ack.feedback, true);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        // BRF-91: a loss does not change the network's rate.
        if let Some(cubic) = self.cubic() {
            cubic.on_congestion(event, window);
        }
    }

    fn on_recovered(&mut self, now: Time, window: &mut Window) {
        if let Some(cubic) = self.cubic() {
            cubic.on_recovered(now, window);
        }
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        if let Some(cubic) = self.cubic() {
            cubic.on_undo(now, window);
        }
    }

    fn on_restart(&mut self, now: Time, idle: Span, app_limited: bool, window: &mut Window) {
        if let Some(cubic) = self.cubic() {
            cubic.on_restart(now, idle, app_limited, window);
            return;
        }
        // While nothing is sent, no feedback is expected. So idle time does not count as silence, but silence before
        // the idle time does. Otherwise a flow of short bursts would never detect that its switch is gone.
        self.heard_at = (self.heard_at + idle).min(now);
        if let Some(segments) = self.params.restart_segments
            && idle > self.srtt + self.params.rto_floor
        {
            self.restart = Some(self.segments_per_rtt(segments));
            self.decide(window);
        }
    }

    fn on_feedback(&mut self, now: Time, rate: Rate, window: &mut Window) {
        match self.mode {
            Mode::Rated => {
                self.hear(now, rate);
                self.follow_target(now);
                self.decide(window);
            }
            Mode::Orphaned(_) => self.word = Some(rate),
            Mode::Unrated(_) => {}
        }
    }

    fn recovery(&self) -> Recovery {
        match self.mode {
            Mode::Rated => Recovery::Controller,
            Mode::Orphaned(_) if self.is_called_back => Recovery::Controller,
            Mode::Unrated(_) | Mode::Orphaned(_) => Recovery::Transport,
        }
    }

    fn wants_feedback(&self) -> bool {
        true
    }

    fn is_fed_by_messages(&self) -> bool {
        self.params.by_message
    }

    fn header_bytes(&self) -> u16 {
        if !self.designates() || self.designator.is_outstanding() {
            return 0;
        }
        Header::Bdr(Bdr { report: Report::default(), advice: None }).wire_bytes()
    }

    fn header(&mut self, packet: &Departing, _window: &Window) -> Header {
        if !self.designates() {
            return Header::None;
        }
        let size = Bytes::new(u64::from(packet.packet_bytes));
        let report = if packet.syn {
            Some(self.designator.connect(packet.now, size))
        } else if packet.again {
            self.designator.on_retransmission(packet.seq);
            None
        } else if packet.fin {
            self.designator.finish(packet.now, size)
        } else {
            self.designator.on_send(packet.now, packet.seq, packet.rto, size)
        };
        match report {
            Some(report) => Header::Bdr(Bdr { report, advice: None }),
            // A flow that does not follow rates must not join the queue of flows that do.
            None if matches!(self.mode, Mode::Rated) => Header::Member,
            None => Header::None,
        }
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let (mode, rate) = match self.mode {
            Mode::Rated if self.halvings == 0 => (0.0, self.rate().as_f64()),
            Mode::Rated => (1.0, self.rate().as_f64()),
            Mode::Orphaned(_) => (2.0, f64::NAN),
            Mode::Unrated(_) => (3.0, f64::NAN),
        };
        trace("mode", mode);
        trace("rate", rate);
        trace("target", self.target.as_f64());
        trace("halvings", f64::from(self.halvings));
    }
}

#[cfg(test)]
#[path = "brf_tests.rs"]
mod tests;
