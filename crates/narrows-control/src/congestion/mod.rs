//! Congestion controllers at the sender: they turn ACKs, losses and feedback into a window and a
//! pacing rate.
//!
//! [`Controller`] is the interface between a controller and the transport (in the simulator, its TCP). The transport
//! detects losses, samples the delivery rate, and runs Proportional Rate Reduction for the controllers that ask for it
//! ([`Controller::recovery`]). The controller sets the [`Window`]. Windows are in segments, as in Linux. Rates are L3
//! bytes/s.

pub mod bbr;
pub mod copa;
pub mod filter;
pub mod linux;
pub mod network;

#[cfg(test)]
pub(crate) mod harness;

use crate::feedback::header::{Custom, Echo, Header};
use crate::units::{Rate, Span, Time};

/// Slow-start threshold of a connection that has had no congestion yet (Linux TCP_INFINITE_SSTHRESH).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The values that a controller sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Congestion window, segments, at least 1.
    pub cwnd: u32,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// Pacing rate, L3 bytes/s. If `None`, the configuration of the transport decides whether it paces. If so, it paces
    /// as Linux does: at 2 x cwnd per srtt early in slow start, and at 1.2 x cwnd per srtt afterwards.
    pub pacing_rate: Option<Rate>,
}

impl Window {
    /// Returns the window of a new connection: `cwnd` segments in slow start, without a pacing rate.
    pub fn new(cwnd: u32) -> Self {
        Window { cwnd, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

/// The properties of a connection at the end of its handshake.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connection {
    /// The current time.
    pub now: Time,
    /// L3 bytes of a full segment (1500). Pacing counts this size for every segment.
    pub packet_bytes: u32,
    /// RTT of the handshake, or `None` if there is no sample. If the SYN was retransmitted, its timestamp gives the
    /// sample.
    pub rtt: Option<Span>,
    /// Rate that the network wrote into the SYN-ACK or into the SYN's congestion header, L3
    /// bytes/s.
    pub feedback: Option<Rate>,
    /// Whether the SYN-ACK carried the rate option, with or without a value. If so, both ends use BRF, and a switch may
    /// write a rate into later ACKs.
    pub feedback_possible: bool,
    /// The echo of the SYN's congestion header.
    pub echo: Option<Echo>,
    /// Seed for random choices of the controller. Each flow gets its own seed, derived from the scenario's seed.
    pub seed: u64,
}

impl Connection {
    /// Returns a connection with a handshake that took `rtt`, without feedback from the network. The seed is 0.
    pub fn new(now: Time, packet_bytes: u32, rtt: Option<Span>) -> Self {
        Connection { now, packet_bytes, rtt, feedback: None, feedback_possible: false, echo: None, seed: 0 }
    }
}

/// The states of loss recovery (Linux `tcp_ca_state`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum State {
    /// No sign of loss or congestion.
    #[default]
    Open,
    /// SACKs or duplicate ACKs have arrived, but no segment is marked lost yet.
    Disorder,
    /// The window is being reduced for an ECN echo.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// A delivery-rate sample (BBR-1 to BBR-5; draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Copy, Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RateSample {
    /// Number of segments delivered over `interval`, or 0 if there is no valid sample.
    pub delivered: u32,
    /// The send interval or the ACK interval, whichever is longer. It is zero if there is no valid sample.
    pub interval: Span,
    /// Number of segments that had been delivered on the connection when the sampled segment was sent.
    pub prior_delivered: u64,
    /// Whether the application, not the network, limited the sample.
    pub app_limited: bool,
    /// Number of segments in flight just after the sampled segment was sent.
    pub tx_in_flight: u32,
    /// Number of segments that were marked lost after the sampled segment was sent and before it was acknowledged.
    pub lost: u32,
    /// Whether the sampled segment had been retransmitted.
    pub retransmitted: bool,
}

impl RateSample {
    /// Returns a sample of `delivered` segments over `interval`. All other fields are zero.
    pub fn new(delivered: u32, interval: Span) -> Self {
        RateSample { delivered, interval, ..RateSample::default() }
    }

    /// Returns the sample of an ACK that delivered `delivered` segments since the sampled segment was sent.
    /// `send_elapsed` is the time in which these segments were sent, and `ack_elapsed` is the time in which they were
    /// acknowledged (BBR-4).
    ///
    /// An interval shorter than the minimum RTT gives no valid sample, as in Linux `tcp_rate_gen`. `min_rtt` includes
    /// the RTT of this ACK. It is [`Span::MAX`] if no RTT is known.
    #[inline]
    pub fn measured(delivered: u32, send_elapsed: Span, ack_elapsed: Span, min_rtt: Span) -> Self {
        let interval = send_elapsed.max(ack_elapsed);
        let is_valid = min_rtt == Span::MAX || interval >= min_rtt;
        RateSample::new(delivered, if is_valid { interval } else { Span::ZERO })
    }
}

/// The timestamps in the header of an ACK (RFC 7323), in milliseconds modulo 2^32.
///
/// All hosts of the simulator share one clock ([`Timestamps::clock`]). A controller that models
/// unsynchronised clocks must add an offset.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The time at which the receiver sent the ACK, by the receiver's clock (TSval).
    pub value: u32,
    /// The time at which the sender sent the acknowledged segment, by the sender's clock (TSecr). If the ACK
    /// acknowledges several segments, this is the time of the first one.
    pub echo: u32,
}

impl Timestamps {
    /// Length of a tick of the clock (Linux TCP_TS_HZ).
    pub const TICK: Span = Span::from_millis(1);

    /// Returns the value of the clock at a time. The value is never 0, because 0 means that there is no timestamp. The
    /// clock wraps around after 49 days. After the wrap, the value 1 lasts two ticks.
    #[inline]
    pub fn clock(at: Time) -> u32 {
        ((at.as_nanos() / Self::TICK.as_nanos()) as u32).wrapping_add(1).max(1)
    }
}

/// The contents of one ACK, after the transport has updated its scoreboard.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ack {
    /// The current time.
    pub now: Time,
    /// Number of segments that this ACK reports as delivered for the first time, cumulatively or by SACK.
    pub acked: u32,
    /// Number of segments newly marked lost.
    pub lost: u32,
    /// Number of segments delivered so far on the connection.
    pub delivered: u64,
    /// Number of segments marked lost so far on the connection.
    pub total_lost: u64,
    /// First unacknowledged segment.
    pub snd_una: u64,
    /// Next segment to be sent for the first time.
    pub snd_nxt: u64,
    /// Number of segments in flight before this ACK was processed.
    pub prior_in_flight: u32,
    /// Number of segments in flight now.
    pub in_flight: u32,
    /// RTT sample. Only segments that were sent once give a sample (Karn's algorithm).
    pub rtt: Option<Span>,
    /// Smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Span,
    /// Minimum RTT of the connection; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// Delivery-rate sample.
    pub rate: RateSample,
    /// Recovery state after this ACK.
    pub state: State,
    /// Whether the window, not the application, limits the sender (RFC 7661; Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the receiver probably delayed this ACK.
    pub delayed: bool,
    /// Whether the receiver echoes congestion experienced (ECE).
    pub ece: bool,
    /// Rate that the network wrote into this ACK or into a congestion header that the ACK echoes,
    /// L3 bytes/s.
    pub feedback: Option<Rate>,
    /// The echo of congestion headers, if this ACK carries an echo.
    pub echo: Option<Echo>,
    /// The timestamps of the ACK.
    pub timestamps: Option<Timestamps>,
}

impl Ack {
    /// Returns an ACK of `acked` segments in state [`State::Open`]. The window limits the sender. There is no RTT, no
    /// rate sample and no feedback.
    pub fn new(now: Time, acked: u32) -> Self {
        Ack {
            now,
            acked,
            lost: 0,
            delivered: 0,
            total_lost: 0,
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: 0,
            in_flight: 0,
            rtt: None,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            rate: RateSample::default(),
            state: State::Open,
            cwnd_limited: true,
            delayed: false,
            ece: false,
            feedback: None,
            echo: None,
            timestamps: None,
        }
    }
}

/// A segment that the transport has just marked lost (Linux `skb_marked_lost`).
///
/// A rate sample counts the losses during the flight of the *delivered* segment. BBR v2 and v3 need the losses during
/// the flight of the *lost* segment, to find the in-flight level at which loss became excessive. If losses are detected
/// late, a rate sample counts too few losses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lost {
    /// The current time.
    pub now: Time,
    /// Number of segments delivered so far on the connection.
    pub delivered: u64,
    /// Number of segments in flight just after the lost segment was sent.
    pub tx_in_flight: u32,
    /// Segments marked lost since this segment was sent, including this segment.
    pub lost: u32,
    /// Whether the application, not the network, limited the sender when this segment was sent.
    pub app_limited: bool,
}

impl Lost {
    /// Returns a loss of one segment that was sent with `tx_in_flight` segments in flight.
    pub fn new(now: Time, tx_in_flight: u32) -> Self {
        Lost { now, delivered: 0, tx_in_flight, lost: 1, app_limited: false }
    }
}

/// A packet in the data direction that is about to leave. The packet may carry a congestion header.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Departing {
    /// The current time.
    pub now: Time,
    /// Whether the packet is the SYN.
    pub syn: bool,
    /// Whether this is the last packet of the flow, which is sent after all data was acknowledged.
    pub fin: bool,
    /// Whether the packet retransmits data.
    pub again: bool,
    /// Segment number of the packet's data.
    pub seq: u64,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Minimum RTT; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// Retransmission timeout.
    pub rto: Span,
    /// L3 bytes of a full segment.
    pub packet_bytes: u32,
}

impl Departing {
    /// Returns a data packet that is sent for the first time, before any RTT sample. The packet's timeout is 1 s
    /// (RFC 6298, 2.1).
    pub fn new(now: Time, seq: u64, packet_bytes: u32) -> Self {
        Departing {
            now,
            syn: false,
            fin: false,
            again: false,
            seq,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            rto: Span::from_secs(1),
            packet_bytes,
        }
    }
}

/// The reason why the sender must slow down.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Fast recovery begins.
    Loss,
    /// An ECN echo, once per window.
    Ecn,
    /// A tail loss probe repaired a loss (RFC 8985, section 7.4). The controller responds once, without a recovery.
    /// Linux enters CWR, as after an ECN echo.
    Probe,
    /// A retransmission timeout. The transport sets cwnd to 1 after the controller has responded.
    Timeout,
}

/// A congestion event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Congestion {
    /// The kind of event.
    pub signal: Signal,
    /// The current time.
    pub now: Time,
    /// Number of segments in flight.
    pub in_flight: u32,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Whether this is a timeout in an episode whose threshold is already set. If so, the transport ignores a new
    /// threshold from the controller. Linux does not call `ssthresh` in this case, and only reports the state Loss
    /// (`set_state`).
    pub again: bool,
}

impl Congestion {
    /// Returns the first event of an episode, with nothing in flight and no RTT sample.
    pub fn new(signal: Signal, now: Time) -> Self {
        Congestion { signal, now, in_flight: 0, srtt: Span::ZERO, again: false }
    }
}

/// The owner of the window during recovery.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The transport, which reduces the window to `ssthresh` with PRR (RFC 6937). The transport does not call `on_ack`
    /// during recovery.
    Transport,
    /// The controller, which sets the window on every ACK (BBR, and controllers with explicit rates).
    Controller,
}

/// A congestion controller: a pure state machine without a clock or a socket. The controller's only source of
/// randomness is its seed.
///
/// Only [`name`](Controller::name), [`on_ack`](Controller::on_ack) and [`on_congestion`](Controller::on_congestion)
/// have no default.
pub trait Controller: Send {
    /// Returns the name in scenarios and results, e.g. `cubic`.
    fn name(&self) -> &'static str;

    /// Called when the handshake is complete. `window` holds the initial window (10) and an infinite `ssthresh`.
    fn on_established(&mut self, _connection: &Connection, _window: &mut Window) {}

    /// Called when a segment was marked lost. The call precedes [`on_congestion`](Controller::on_congestion) and
    /// [`on_ack`](Controller::on_ack) for the same event. A timer may detect losses without an ACK.
    fn on_lost(&mut self, _lost: &Lost, _window: &Window) {}

    /// Called after each ACK, in any state, to take measurements (Linux `pkts_acked`). For the same ACK, this call
    /// follows [`on_congestion`](Controller::on_congestion) and precedes [`on_ack`](Controller::on_ack). So
    /// [`Ack::state`] is the state after congestion handling. Unlike this transport, Linux calls `pkts_acked` before it
    /// handles congestion.
    fn on_sample(&mut self, _ack: &Ack) {}

    /// Called after each ACK. With [`Recovery::Transport`] the transport skips this call while PRR owns the window
    /// (CWR, Recovery). With [`Recovery::Controller`] the transport calls it in every state.
    fn on_ack(&mut self, ack: &Ack, window: &mut Window);

    /// Called on congestion. The controller sets `window.ssthresh`. The transport calls this once per episode, and
    /// again for a timeout within an episode ([`Congestion::again`]).
    fn on_congestion(&mut self, event: &Congestion, window: &mut Window);

    /// Called when Recovery, CWR or Loss has ended. If the ACK that ends Recovery proves that the loss was spurious,
    /// this call follows [`on_undo`](Controller::on_undo).
    fn on_recovered(&mut self, _now: Time, _window: &mut Window) {}

    /// Called when DSACK, timestamps or F-RTO show that the episode was spurious. `window` holds the values from before
    /// the episode, which the transport has restored (Linux `tcp_undo_cwnd_reduction`).
    fn on_undo(&mut self, _now: Time, _window: &mut Window) {}

    /// Called when the sender resumes after all data was acknowledged (CA_EVENT_TX_START). `idle` is the time since the
    /// last transmission. `app_limited` states whether the rate sampler treats the sender as application-limited.
    fn on_restart(&mut self, _now: Time, _idle: Span, _app_limited: bool, _window: &mut Window) {}

    /// Returns whether the controller has a timer. A controller without a timer always returns `false`, and the
    /// transport never calls its [`next_timer`](Controller::next_timer).
    fn uses_timer(&self) -> bool {
        false
    }

    /// Returns the time of the next call of [`on_timer`](Controller::on_timer). The transport reads this time after
    /// every call of another method.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// Called at [`next_timer`](Controller::next_timer), after the handshake. After this call, the next timer must be
    /// later than `now`. Otherwise, the transport calls `on_timer` again before its next transmission.
    fn on_timer(&mut self, _now: Time, _window: &mut Window) {}

    /// Returns the owner of the window during recovery. The returned value may change during a connection.
    fn recovery(&self) -> Recovery {
        Recovery::Transport
    }

    /// Returns the number of bytes that a congestion header takes from the payload of the next data packet. A
    /// controller without headers always returns 0, and the transport never calls its [`header`](Controller::header).
    fn header_bytes(&self) -> u16 {
        0
    }

    /// Returns the congestion header of a packet that is about to leave.
    fn header(&mut self, _packet: &Departing, _window: &Window) -> Header {
        Header::None
    }

    /// Called when an ACK returned a header that another crate defines. The header has the words that rate controllers
    /// on the path added. This call precedes all other calls for the same ACK, including
    /// [`on_established`](Controller::on_established).
    fn on_header(&mut self, _now: Time, _header: &Custom) {}

    /// Called when the network sent a rate (L3 bytes/s) in a separate message (PAC-3b). The transport never calls this
    /// before the handshake is complete.
    fn on_feedback(&mut self, _now: Time, _rate: Rate, _window: &mut Window) {}

    /// Returns whether the SYN asks the network for a rate (BRF-10).
    fn wants_feedback(&self) -> bool {
        false
    }

    /// Returns whether every rate after the SYN-ACK arrives in a separate message (PAC-3b). If so, ACKs have no rate
    /// option.
    fn is_fed_by_messages(&self) -> bool {
        false
    }

    /// Returns whether the controller needs to know which packets were marked (RFC 8257, section 3.2; Linux
    /// TCP_CONG_NEEDS_ECN). If so, the flow negotiates ECN in any scenario. The receiver echoes CE exactly, and
    /// retransmissions are ECN-capable. A controller must always return the same value.
    fn needs_exact_ce_echo(&self) -> bool {
        false
    }

    /// Passes the names and values of the internal state to `trace`, e.g. `trace("bw", 1.25e7)`. A controller always
    /// passes the same names.
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}
