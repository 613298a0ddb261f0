//! The state of a connection that congestion controllers of Narrows need, computed from the reports of a QUIC stack.

use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_control::congestion::{
    Ack, Congestion, Connection, Controller, INFINITE_SSTHRESH, Lost, Recovery, Signal, State, Window,
};
use narrows_control::units::{Span, Time};

use crate::sampler::Sampler;

/// IPv4 and UDP headers, which the size of a segment does not include.
pub(crate) const UDP_HEADER_BYTES: u32 = 28;
/// Initial window in segments (RFC 9002, section 7.2).
pub(crate) const INITIAL_SEGMENTS: u32 = 10;
/// Minimum window in segments (RFC 9002, section 7.2).
const MIN_WINDOW_SEGMENTS: u32 = 2;

/// The controller, and the state of its connection.
pub(crate) struct Core {
    pub(crate) cc: Box<dyn Controller>,
    pub(crate) window: Window,
    pub(crate) state: State,
    /// Bytes of a segment.
    pub(crate) segment_bytes: u64,
    pub(crate) sampler: Sampler,
    is_established: bool,
    last_sent: Time,
    min_rtt: Span,
    pub(crate) srtt: Span,
    /// Bytes in flight. With quinn, this is the number in quinn's last report, plus the bytes sent and minus the bytes
    /// lost since then.
    pub(crate) in_flight: u64,
    /// Bytes that the current ACK delivers, plus the rest of a segment that earlier ACKs delivered in part.
    pub(crate) acked: u64,
    /// Bytes that the stack has declared lost since the last ACK. quinn reports losses after the ACK that revealed them,
    /// and s2n-quic before this ACK. Both stacks also report losses when their loss timers expire.
    lost: u64,
    ece: bool,
    /// The time of the last reduction. Recovery ends when a packet sent after this time is acknowledged.
    pub(crate) reduced_at: Option<Time>,
    /// The slow-start threshold of the current episode. A timeout within the episode does not change this threshold.
    episode_ssthresh: u32,
    /// The current size of a full datagram in bytes.
    pub(crate) datagram_bytes: u64,
    seed: u64,
}

impl Core {
    pub(crate) fn new(cc: Box<dyn Controller>, segment_bytes: u64, seed: u64) -> Self {
        Core {
            cc,
            window: Window::new(INITIAL_SEGMENTS),
            state: State::Open,
            segment_bytes,
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

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / self.segment_bytes).unwrap_or(u32::MAX)
    }

    /// Returns the controller's window in bytes.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.at_least_minimum(u64::from(self.window.cwnd) * self.segment_bytes)
    }

    /// Raises a window in bytes to the minimum window.
    pub(crate) fn at_least_minimum(&self, window: u64) -> u64 {
        window.max(u64::from(MIN_WINDOW_SEGMENTS) * self.datagram_bytes)
    }

    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64) {
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
    pub(crate) fn on_end_acks(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        let prior_in_flight = self.segments(self.in_flight);
        self.in_flight = in_flight;
        if app_limited {
            self.sampler.mark_app_limited(in_flight);
        }
        let Some(sent_at) = self.sampler.newest() else { return };
        let rtt = now.since(sent_at);
        self.min_rtt = self.min_rtt.min(rtt);
        let rate = self.sampler.finish(now, self.min_rtt, self.segment_bytes);
        // quinn updates its own smoothed RTT only after this call, and s2n-quic updates it before this call. So this
        // function computes a smoothed RTT (RFC 6298, section 2).
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
    pub(crate) fn on_congestion(&mut self, now: Time, sent_at: Time, is_persistent: bool, bytes: u64) {
        if bytes > 0 {
            self.sampler.lost += bytes;
            self.lost += bytes;
            // The lost packets are no longer in flight.
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
            self.window.cwnd = 1; // the window in bytes is higher
        } else if self.cc.recovery() == Recovery::Transport {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
    }

    /// Passes each lost segment to the controller. `sent_at` is the send time of the newest lost packet.
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

    /// Runs the controller's timer if it is due. The stacks have no timers for controllers, so a due timer runs when the
    /// next packet is sent or the next ACK arrives.
    pub(crate) fn run_timer(&mut self, now: Time) {
        if self.cc.uses_timer() && self.is_established && self.cc.next_timer() <= now {
            self.cc.on_timer(now, &mut self.window);
        }
    }
}

/// Locks a mutex, even if a panic in another thread has poisoned the mutex.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
