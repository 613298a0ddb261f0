//! Congestion controllers of Narrows behind quinn's interface.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use narrows_control::catalogue::{Catalogue, Choice, Problem};
use narrows_control::congestion::{
    Ack, Congestion, Connection, Controller, INFINITE_SSTHRESH, Lost, Recovery, Signal, State, Window,
};
use narrows_control::units::{Bytes, Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerFactory, ControllerMetrics};

use crate::sampler::Sampler;

/// Initial window in segments, and the least window (RFC 9002, section 7.2).
const INITIAL_SEGMENTS: u32 = 10;
const LEAST_SEGMENTS: u32 = 2;

/// Builds a controller for each connection.
pub struct Factory {
    build: Box<dyn Fn() -> Box<dyn Controller> + Send + Sync>,
    /// The flow's controller, for the program that made the factory.
    last: Mutex<Option<Arc<Mutex<Core>>>>,
}

impl Factory {
    /// A factory of a controller of the catalogue, e.g. `bbr3`.
    ///
    /// # Errors
    /// No controller has this name, or it needs information that QUIC does not carry.
    pub fn named(name: &str) -> Result<Self, Problem> {
        Factory::of(name.into())
    }

    /// A factory of a controller of the catalogue with parameters.
    ///
    /// # Errors
    /// As [`named`](Factory::named), or a parameter is not valid.
    pub fn of(choice: Choice) -> Result<Self, Problem> {
        let catalogue = Catalogue::built_in();
        catalogue.check(&choice)?;
        let unknown = Problem::unknown(&choice.name);
        let sample = catalogue.build(&choice).ok_or_else(|| unknown.clone())?;
        refuse_unsupported(&choice.name, &*sample)?;
        // The name was found just now.
        let build = move || catalogue.build(&choice).unwrap_or_else(|| unreachable!("{unknown:?}"));
        Ok(Factory::with(build))
    }

    /// A factory of controllers of your own. A controller that needs headers or exact ECN echoes does not get them.
    pub fn with(build: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Factory { build: Box::new(build), last: Mutex::new(None) }
    }

    /// Passes the names and values of the state of the controller that was built last to `trace`.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        if let Some(core) = &*locked(&self.last) {
            locked(core).cc.trace(trace);
        }
    }

    fn adapter(&self, now: Instant, unit: u16) -> Adapter {
        let core = Arc::new(Mutex::new(Core::new((self.build)(), now, unit.into())));
        *locked(&self.last) = Some(core.clone());
        Adapter { core }
    }
}

/// Refuses a controller that needs information which QUIC does not carry.
pub(crate) fn refuse_unsupported(name: &str, cc: &dyn Controller) -> Result<(), Problem> {
    let needs = if cc.needs_exact_ce_echo() {
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
        Box::new(self.adapter(now, current_mtu))
    }
}

/// A congestion controller of Narrows as quinn's.
pub struct Adapter {
    core: Arc<Mutex<Core>>,
}

impl Adapter {
    /// Passes the names and values of the controller's state to `trace`.
    ///
    /// A program gets the adapter of a connection from quinn: `connection.congestion_state().into_any().downcast()`.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        locked(&self.core).cc.trace(trace);
    }
}

/// The controller, and what it needs to know about its connection.
struct Core {
    cc: Box<dyn Controller>,
    window: Window,
    state: State,
    /// Bytes of a segment.
    unit: u64,
    /// The time that the controller calls zero.
    base: Instant,
    sampler: Sampler,
    is_established: bool,
    min_rtt: Span,
    srtt: Span,
    /// Bytes in flight, as quinn last reported, and what was sent since.
    in_flight: u64,
    /// Bytes that the current ACK delivers, and the rest of an incomplete segment of earlier ones.
    acked: u64,
    /// The losses of the previous ACK, which quinn reports after the ACK.
    lost: u64,
    ece: bool,
    /// Recovery ends when a packet that was sent after this time is acknowledged.
    recovery_from: Time,
}

/// Locks a mutex. No lock is held while a controller runs that could panic in another thread, but a poisoned one is used
/// nevertheless.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    fn new(cc: Box<dyn Controller>, base: Instant, unit: u64) -> Self {
        Core {
            cc,
            window: Window::new(INITIAL_SEGMENTS),
            state: State::Open,
            unit,
            base,
            sampler: Sampler::default(),
            is_established: false,
            min_rtt: Span::MAX,
            srtt: Span::ZERO,
            in_flight: 0,
            acked: 0,
            lost: 0,
            ece: false,
            recovery_from: Time::ZERO,
        }
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(at.saturating_duration_since(self.base).as_nanos() as u64)
    }

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / self.unit).unwrap_or(u32::MAX)
    }

    fn window_bytes(&self) -> u64 {
        u64::from(self.window.cwnd.max(LEAST_SEGMENTS)) * self.unit
    }

    fn on_sent(&mut self, now: Time, bytes: u64) {
        self.sampler.send(now, bytes, self.in_flight);
        self.in_flight += bytes;
        self.run_timer(now);
    }

    /// Handles the end of an ACK: passes it to the controller.
    fn on_end_acks(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        let prior_in_flight = self.segments(self.in_flight);
        self.in_flight = in_flight;
        if app_limited {
            self.sampler.mark_app_limited(in_flight);
        }
        let newest = self.sampler.finish(now, self.min_rtt, self.unit);
        let Some((sent_at, rate)) = newest else { return };
        let rtt = now.since(sent_at);
        self.min_rtt = self.min_rtt.min(rtt);
        self.establish(now, rtt);
        let acked = self.segments(self.acked);
        self.acked -= u64::from(acked) * self.unit;
        if self.state != State::Open && sent_at > self.recovery_from {
            self.state = State::Open;
            self.cc.on_recovered(now, &mut self.window);
        }
        let mut ack = Ack::new(now, acked);
        let lost = std::mem::take(&mut self.lost);
        ack.lost = self.segments(lost);
        ack.delivered = self.sampler.delivered / self.unit;
        ack.total_lost = self.sampler.lost / self.unit;
        ack.snd_nxt = self.sampler.sent / self.unit;
        // All packets before those in flight are acknowledged or lost.
        ack.snd_una = self.sampler.sent.saturating_sub(in_flight) / self.unit;
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
        // An entry is found as long as its packet may be acknowledged late.
        let memory = self.srtt.scale(4, 1).max(Span::from_millis(200));
        self.sampler.forget_before(Time::from_nanos(sent_at.as_nanos().saturating_sub(memory.as_nanos())));
    }

    /// Tells the controller about the connection, once its RTT is known.
    fn establish(&mut self, now: Time, rtt: Span) {
        if !std::mem::replace(&mut self.is_established, true) {
            let connection = Connection::new(now, self.unit as u32, Some(rtt));
            self.cc.on_established(&connection, &mut self.window);
        }
    }

    /// Handles lost packets or an ECN mark (`bytes` is 0). The newest of the packets was sent at `sent_at`.
    fn on_congestion(&mut self, now: Time, sent_at: Time, is_persistent: bool, bytes: u64) {
        if bytes > 0 {
            self.sampler.lost += bytes;
            self.lost += bytes;
            // quinn takes lost packets out of the flight before it reports them.
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
        // RFC 9002, section 7.3.1: one response for all packets that were sent before the response.
        if self.state != State::Open && sent_at <= self.recovery_from && !is_persistent {
            return;
        }
        let mut event = Congestion::new(signal, now);
        event.in_flight = self.segments(self.in_flight);
        event.srtt = self.srtt;
        event.again = is_persistent && self.state == State::Loss;
        self.cc.on_congestion(&event, &mut self.window);
        self.window.ssthresh = self.window.ssthresh.max(1);
        self.recovery_from = now;
        self.state = match signal {
            Signal::Timeout => State::Loss,
            Signal::Ecn => State::Cwr,
            _ => State::Recovery,
        };
        if is_persistent {
            self.window.cwnd = LEAST_SEGMENTS;
        } else if self.cc.recovery() == Recovery::Transport {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
    }

    /// Passes each lost segment to the controller. quinn only says when the newest was sent.
    fn report_losses(&mut self, now: Time, sent_at: Time, bytes: u64) {
        let Some(entry) = self.sampler.find(sent_at) else { return };
        let mut lost = Lost::new(now, self.segments(entry.in_flight));
        lost.delivered = self.sampler.delivered / self.unit;
        lost.app_limited = entry.app_limited;
        let segments = self.segments(bytes).max(1);
        let before = self.segments(self.sampler.lost_since(&entry)).saturating_sub(segments);
        for n in 1..=segments {
            lost.lost = before + n;
            self.cc.on_lost(&lost, &self.window);
        }
    }

    /// Runs the controller's timer if it is due. quinn has no timers for controllers, so it runs late: at the next packet.
    fn run_timer(&mut self, now: Time) {
        if self.cc.uses_timer() && self.is_established && self.cc.next_timer() <= now {
            self.cc.on_timer(now, &mut self.window);
        }
    }
}

impl congestion::Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let mut core = locked(&self.core);
        let now = core.time(now);
        core.on_sent(now, bytes);
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _app_limited: bool, rtt: &RttEstimator) {
        let mut core = locked(&self.core);
        let sent = core.time(sent);
        core.sampler.deliver(sent, bytes);
        core.acked += bytes;
        core.srtt = Span::from_nanos(rtt.get().as_nanos() as u64);
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

    /// Does nothing: a segment keeps its size during a connection.
    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        locked(&self.core).window_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let core = locked(&self.core);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = core.window_bytes();
        let ssthresh = core.window.ssthresh;
        metrics.ssthresh = (ssthresh < INFINITE_SSTHRESH).then(|| u64::from(ssthresh) * core.unit);
        metrics.pacing_rate = core.window.pacing_rate.map(|rate| rate.as_bits_per_sec() as u64);
        metrics
    }

    /// quinn copies a controller for a new path between the same hosts. The copy shares the state.
    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(Adapter { core: self.core.clone() })
    }

    fn initial_window(&self) -> u64 {
        let unit = locked(&self.core).unit;
        Bytes::new(u64::from(INITIAL_SEGMENTS) * unit).get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
