//! Adapts congestion controllers of Narrows to quinn's interface.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use narrows_control::catalogue::{Catalogue, Choice, Problem};
use narrows_control::congestion::{
    Ack, Congestion, Connection, Controller, INFINITE_SSTHRESH, Lost, Recovery, Signal, State, Window,
};
use narrows_control::units::{Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerFactory, ControllerMetrics};

use crate::sampler::Sampler;

/// Number of datagrams added to a window that is computed from a pacing rate. An ACK acknowledges two packets, so the
/// window needs this room. No specification defines the number.
///
/// BBR v1 was measured at 20 Mbit/s with 1 to 5 datagrams. On a path of 40 ms with a queue of 4 BDP, its mean RTT was
/// 69 to 81 ms. On a path of 20 ms with a queue of 0.5 BDP, it lost 4 to 8 % of its packets.
const PACING_SLACK_DATAGRAMS: u64 = 3;
/// IPv4 and UDP headers, which the size of a segment does not include.
const UDP_HEADER_BYTES: u32 = 28;
/// Controllers that need TCP timestamps. QUIC has no timestamps.
const NEED_TIMESTAMPS: [&str; 1] = ["lp"];
/// Initial window in segments (RFC 9002, section 7.2).
const INITIAL_SEGMENTS: u32 = 10;
/// Minimum window in segments (RFC 9002, section 7.2).
const MIN_WINDOW_SEGMENTS: u32 = 2;

/// Builds a controller for each connection.
pub struct Factory {
    build: Box<dyn Fn() -> Box<dyn Controller> + Send + Sync>,
    seed: u64,
    /// Number of controllers that were built.
    built: AtomicU64,
}

impl Factory {
    /// Returns a factory of a controller of the catalogue, e.g. `bbr3`.
    ///
    /// # Errors
    /// If no controller has this name, or if the controller needs information that QUIC does not carry.
    pub fn named(name: &str) -> Result<Self, Problem> {
        Factory::with_parameters(name.into())
    }

    /// Returns a factory of a controller of the catalogue with parameters.
    ///
    /// # Errors
    /// If a parameter is not valid, or if [`named`](Factory::named) would return an error.
    pub fn with_parameters(choice: Choice) -> Result<Self, Problem> {
        let catalogue = Catalogue::built_in();
        catalogue.check(&choice)?;
        let unknown = Problem::unknown(&choice.name);
        let sample = catalogue.build(&choice).ok_or_else(|| unknown.clone())?;
        refuse_unsupported(&choice.name, &*sample)?;
        // The name and the parameters were checked above, so this cannot fail.
        let build = move || catalogue.build(&choice).unwrap_or_else(|| unreachable!("{unknown:?}"));
        Ok(Factory::from_fn(build))
    }

    /// Returns a factory of controllers of your own. They get no congestion headers and no exact ECN echoes.
    pub fn from_fn(build: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Factory { build: Box::new(build), seed: 0, built: AtomicU64::new(0) }
    }

    /// Sets the seed of the controllers' random choices. Controllers of one factory get different seeds.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// Refuses a controller that needs information that QUIC does not carry.
pub(crate) fn refuse_unsupported(name: &str, cc: &dyn Controller) -> Result<(), Problem> {
    let needs = if NEED_TIMESTAMPS.contains(&cc.name()) {
        "TCP timestamps"
    } else if cc.needs_exact_ce_echo() {
        "each ECN mark"
    } else if cc.wants_feedback() || cc.header_bytes() > 0 {
        "rates from the network"
    } else {
        return Ok(());
    };
    let expected = format!("a controller that QUIC can carry (this one needs {needs})");
    Err(Problem { parameter: None, found: format!("{name:?}"), expected })
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let seed = self.seed.wrapping_add(self.built.fetch_add(1, Ordering::Relaxed));
        Box::new(Adapter::new((self.build)(), now, current_mtu, seed))
    }
}

/// A congestion controller of Narrows that implements quinn's interface. Clones share the controller.
#[derive(Clone)]
pub struct Adapter {
    core: Arc<Mutex<Core>>,
}

impl Adapter {
    /// Wraps the controller of a connection that begins at `now` with datagrams of this size.
    pub(crate) fn new(cc: Box<dyn Controller>, now: Instant, datagram_bytes: u16, seed: u64) -> Self {
        Adapter { core: Arc::new(Mutex::new(Core::new(cc, now, datagram_bytes.into(), seed))) }
    }

    /// Passes the names and values of the controller's state to `trace`.
    ///
    /// A program gets the adapter of a connection from quinn by `connection.congestion_state().into_any().downcast()`.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        locked(&self.core).cc.trace(trace);
    }
}

/// The controller, and the state of its connection.
struct Core {
    cc: Box<dyn Controller>,
    window: Window,
    state: State,
    /// Bytes of a segment.
    segment_bytes: u64,
    /// The time at which the controller's clock is zero.
    base: Instant,
    sampler: Sampler,
    is_established: bool,
    last_sent: Time,
    min_rtt: Span,
    srtt: Span,
    /// Bytes in flight. This is quinn's last report, plus the bytes sent and minus the bytes lost since that report.
    in_flight: u64,
    /// Bytes that the current ACK delivers, plus the rest of a segment that earlier ACKs delivered in part.
    acked: u64,
    /// Bytes that quinn has declared lost since the last ACK. quinn reports losses after the ACK that revealed them, or
    /// when its loss timer expires.
    lost: u64,
    ece: bool,
    /// The time of the last reduction. Recovery ends when a packet sent after this time is acknowledged.
    reduced_at: Option<Time>,
    /// The slow-start threshold of the current episode. A timeout within the episode does not change this threshold.
    episode_ssthresh: u32,
    /// The current size of a full datagram in bytes.
    datagram_bytes: u64,
    seed: u64,
}

/// Locks a mutex, even if a panic in another thread has poisoned the mutex.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    fn new(cc: Box<dyn Controller>, base: Instant, segment_bytes: u64, seed: u64) -> Self {
        Core {
            cc,
            window: Window::new(INITIAL_SEGMENTS),
            state: State::Open,
            segment_bytes,
            base,
            sampler: Sampler::default(),
            is_established: false,
            last_sent: Time::ZERO,
            min_rtt: Span::MAX,
            srtt: Span::ZERO,
            in_flight: 0,
            acked: 0,
            lost: 0,
            ece: false,
            reduced_at: None,
            episode_ssthresh: INFINITE_SSTHRESH,
            datagram_bytes: segment_bytes,
            seed,
        }
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(at.saturating_duration_since(self.base).as_nanos() as u64)
    }

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / self.segment_bytes).unwrap_or(u32::MAX)
    }

    fn window_bytes(&self) -> u64 {
        let window = u64::from(self.window.cwnd) * self.segment_bytes;
        // quinn does not accept a pacing rate. If the window is the pacing rate times the RTT, the average rate over an
        // RTT is the same.
        let paced = match self.window.pacing_rate {
            Some(rate) if self.srtt > Span::ZERO => {
                rate.bytes_in(self.srtt).get() + PACING_SLACK_DATAGRAMS * self.datagram_bytes
            }
            _ => u64::MAX,
        };
        window.min(paced).max(u64::from(MIN_WINDOW_SEGMENTS) * self.datagram_bytes)
    }

    fn on_sent(&mut self, now: Time, bytes: u64) {
        if self.in_flight == 0 && self.is_established {
            let idle = now.since(self.last_sent);
            self.cc.on_restart(now, idle, self.sampler.is_app_limited(), &mut self.window);
        }
        self.last_sent = now;
        self.sampler.send(now, bytes, self.in_flight);
        self.in_flight += bytes;
        self.run_timer(now);
    }

    /// Handles the end of an ACK, and passes the ACK to the controller.
    fn on_end_acks(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        let prior_in_flight = self.segments(self.in_flight);
        self.in_flight = in_flight;
        if app_limited {
            self.sampler.mark_app_limited(in_flight);
        }
        let Some(sent_at) = self.sampler.newest() else { return };
        let rtt = now.since(sent_at);
        self.min_rtt = self.min_rtt.min(rtt);
        let rate = self.sampler.finish(now, self.min_rtt, self.segment_bytes);
        // quinn updates its own smoothed RTT only after this call. So this function computes a smoothed RTT (RFC 6298,
        // section 2).
        self.srtt = if self.srtt == Span::ZERO { rtt } else { self.srtt.scale(7, 8) + rtt.scale(1, 8) };
        self.establish(now, rtt);
        let acked = self.segments(self.acked);
        self.acked -= u64::from(acked) * self.segment_bytes;
        if self.state != State::Open && self.reduced_at.is_none_or(|reduced_at| sent_at > reduced_at) {
            self.state = State::Open;
            self.cc.on_recovered(now, &mut self.window);
        }
        let mut ack = Ack::new(now, acked);
        ack.lost = self.segments(self.lost);
        self.lost -= u64::from(ack.lost) * self.segment_bytes;
        ack.delivered = self.sampler.delivered / self.segment_bytes;
        ack.total_lost = self.sampler.lost / self.segment_bytes;
        ack.snd_nxt = self.sampler.sent / self.segment_bytes;
        // Approximation: the code treats the newest bytes that were sent as the bytes in flight.
        ack.snd_una = self.sampler.sent.saturating_sub(in_flight) / self.segment_bytes;
        ack.prior_in_flight = prior_in_flight;
        ack.in_flight = self.segments(in_flight);
        ack.rtt = Some(rtt);
        ack.srtt = self.srtt;
        ack.min_rtt = self.min_rtt;
        ack.rate = rate;
        ack.state = self.state;
        ack.cwnd_limited = !app_limited;
        ack.ece = std::mem::take(&mut self.ece);
        self.cc.on_sample(&ack);
        let is_reduced = matches!(self.state, State::Recovery | State::Cwr);
        if !is_reduced || self.cc.recovery() == Recovery::Controller {
            self.cc.on_ack(&ack, &mut self.window);
        }
        self.window.cwnd = self.window.cwnd.max(1);
        // Entries are kept for some time, because ACKs may be late.
        let memory = self.srtt.scale(4, 1).max(Span::from_millis(200));
        self.sampler.forget_before(Time::from_nanos(sent_at.as_nanos().saturating_sub(memory.as_nanos())));
    }

    /// Calls the controller's `on_established` when the first RTT is known. Later calls do nothing.
    fn establish(&mut self, now: Time, rtt: Span) {
        if !std::mem::replace(&mut self.is_established, true) {
            let mut connection =
                Connection::new(now, self.segment_bytes as u32 + UDP_HEADER_BYTES, Some(rtt));
            connection.seed = self.seed;
            self.cc.on_established(&connection, &mut self.window);
        }
    }

    /// Handles lost packets, or an ECN mark if `bytes` is 0. The newest lost or marked packet was sent at `sent_at`.
    fn on_congestion(&mut self, now: Time, sent_at: Time, is_persistent: bool, bytes: u64) {
        if bytes > 0 {
            self.sampler.lost += bytes;
            self.lost += bytes;
            // quinn subtracts lost packets from the bytes in flight before it reports them.
            self.in_flight = self.in_flight.saturating_sub(bytes);
            self.report_losses(now, sent_at, bytes);
        } else {
            self.ece = true;
        }
        let signal = match (is_persistent, bytes) {
            (true, _) => Signal::Timeout,
            (false, 0) => Signal::Ecn,
            (false, _) => Signal::Loss,
        };
        // Packets sent before the last reduction cause no further reduction, except in persistent congestion (RFC 9002,
        // section 7.3.2). This also applies in the state Open, because the ACK that ends a recovery can reveal the loss
        // of a packet that was sent before the reduction.
        if self.reduced_at.is_some_and(|reduced_at| sent_at <= reduced_at) && !is_persistent {
            return;
        }
        let mut event = Congestion::new(signal, now);
        event.in_flight = self.segments(self.in_flight);
        event.srtt = self.srtt;
        event.again = is_persistent && self.state != State::Open;
        self.cc.on_congestion(&event, &mut self.window);
        self.window.ssthresh = if event.again { self.episode_ssthresh } else { self.window.ssthresh.max(1) };
        self.episode_ssthresh = self.window.ssthresh;
        self.reduced_at = Some(now);
        self.state = match signal {
            Signal::Timeout => State::Loss,
            Signal::Ecn => State::Cwr,
            _ => State::Recovery,
        };
        if is_persistent {
            self.window.cwnd = 1; // `window_bytes` is higher
        } else if self.cc.recovery() == Recovery::Transport {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
    }

    /// Passes each lost segment to the controller. quinn reports only the send time of the newest lost packet.
    fn report_losses(&mut self, now: Time, sent_at: Time, bytes: u64) {
        // The entry of an old packet may have been removed. In this case, the present number of bytes in flight is the
        // best estimate.
        let entry = self.sampler.find(sent_at);
        let in_flight = entry.map_or(self.in_flight + bytes, |entry| entry.in_flight);
        let mut lost = Lost::new(now, self.segments(in_flight));
        lost.delivered = self.sampler.delivered / self.segment_bytes;
        lost.app_limited = entry.is_some_and(|entry| entry.app_limited);
        let segments = self.segments(bytes).max(1);
        let lost_since = entry.map_or(bytes, |entry| self.sampler.lost_since(&entry));
        let before = self.segments(lost_since).saturating_sub(segments);
        for n in 1..=segments {
            lost.lost = before + n;
            self.cc.on_lost(&lost, &self.window);
        }
    }

    /// Runs the controller's timer if it is due. quinn has no timers for controllers, so a due timer runs when the next
    /// packet is sent or the next ACK arrives.
    fn run_timer(&mut self, now: Time) {
        if self.cc.uses_timer() && self.is_established && self.cc.next_timer() <= now {
            self.cc.on_timer(now, &mut self.window);
        }
    }
}

/// The factory of a single connection. It returns a clone of the adapter, which shares the controller.
impl ControllerFactory for Adapter {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(Adapter::clone(&self))
    }
}

impl congestion::Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let mut core = locked(&self.core);
        let now = core.time(now);
        core.on_sent(now, bytes);
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        let mut core = locked(&self.core);
        let sent = core.time(sent);
        core.sampler.deliver(sent, bytes);
        core.acked += bytes;
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let mut core = locked(&self.core);
        let now = core.time(now);
        core.on_end_acks(now, in_flight, app_limited);
        core.run_timer(now);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let mut core = locked(&self.core);
        let (now, sent) = (core.time(now), core.time(sent));
        core.on_congestion(now, sent, is_persistent, lost_bytes);
    }

    /// Changes the size of a datagram, on which the minimum window and the room for the pacer depend. A segment keeps
    /// its size during a connection.
    fn on_mtu_update(&mut self, new_mtu: u16) {
        locked(&self.core).datagram_bytes = new_mtu.into();
    }

    fn window(&self) -> u64 {
        locked(&self.core).window_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let core = locked(&self.core);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = core.window_bytes();
        let ssthresh = core.window.ssthresh;
        metrics.ssthresh = (ssthresh < INFINITE_SSTHRESH).then(|| u64::from(ssthresh) * core.segment_bytes);
        metrics.pacing_rate = core.window.pacing_rate.map(|rate| rate.as_bits_per_sec() as u64);
        metrics
    }

    /// Returns a copy of the adapter that shares its state. quinn makes such a copy for a new path between the same
    /// hosts.
    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        let segment_bytes = locked(&self.core).segment_bytes;
        u64::from(INITIAL_SEGMENTS) * segment_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
