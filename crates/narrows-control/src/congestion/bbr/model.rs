//! BBR's model of the path: bottleneck bandwidth, round-trip propagation time, rounds (BBR-6, BBR-10 to BBR-13).
//!
//! The model describes the path and makes no decisions. All versions of BBR share this model.

use super::aggregation::Aggregation;
use super::full_pipe::FullPipe;
use super::gain::Gain;
use super::memo::Memo;
use crate::congestion::Ack;
use crate::congestion::filter::{TwoPeriodMax, WindowedMax};
use crate::units::{Bytes, NANOS_PER_SEC, Rate, Span, Time};

/// The properties of the path, estimated from ACKs. `F` is the bandwidth filter. It covers a number of rounds in v1,
/// and two probe cycles in v2 and v3.
#[derive(Clone, Debug)]
pub struct Model<F = WindowedMax<Rate>> {
    packet_bytes: u32,
    initial_cwnd: u32,
    max_bw: F,
    /// Number of packet-timed round trips so far.
    pub round: u64,
    /// Whether the last ACK began a round.
    pub round_start: bool,
    /// The round ends with the first ACK of a segment sent after this number of segments had been delivered.
    next_round_delivered: u64,
    /// Minimum RTT of the filter's window, or [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// The time at which `min_rtt` was measured.
    pub min_rtt_at: Time,
    /// The range of `delivered` in which BBR itself limited sending. Segments sent in this range give samples that are
    /// too low.
    self_limited: Option<(u64, u64)>,
    /// Whether Startup has found the bandwidth.
    pub full_pipe: FullPipe,
    /// The aggregation of ACKs.
    pub aggregation: Aggregation,
    /// Cache of the bandwidth-delay product.
    bdp: Memo<(Rate, Span), u32>,
    /// Cache of the bandwidth-delay product times a gain other than 1.
    bdps: Memo<(Rate, Span, Gain), u32>,
}

impl Model {
    /// Returns the model of a new path. Only the handshake's RTT is known.
    pub fn new(now: Time, rtt: Option<Span>, packet_bytes: u32, initial_cwnd: u32) -> Self {
        Model::with_filter(WindowedMax::new(0, Rate::ZERO), now, rtt, packet_bytes, initial_cwnd)
    }

    /// Returns the bottleneck bandwidth: the best delivery rate of the last rounds, L3 bytes/s.
    pub fn max_bw(&self) -> Rate {
        self.max_bw.get()
    }

    /// Adds a valid delivery-rate sample to the bandwidth filter. `rounds` is the length of the filter (BBR-10).
    pub fn update_bw(&mut self, ack: &Ack, rounds: u64) {
        let bw = self.delivery_rate(ack);
        // A sample that the application limited is a lower bound of the bandwidth, so the sample is used only if it
        // raises the estimate.
        if !self.is_app_limited(ack) || bw >= self.max_bw() {
            self.max_bw.update(rounds, self.round, bw);
        }
    }

    /// Adds an RTT sample to the propagation-time filter. `window` is the length of the filter (BBR-11). Returns true
    /// if the filter's window had expired.
    ///
    /// An RTT equal to the minimum does not postpone ProbeRTT (Linux since 5.10), because this RTT may include the
    /// delay of a persistent queue.
    pub fn update_min_rtt(&mut self, ack: &Ack, window: Span) -> bool {
        let expired = ack.now > self.min_rtt_at + window;
        if let Some(rtt) = ack.rtt
            && (rtt < self.min_rtt || (expired && !ack.delayed))
        {
            self.min_rtt = rtt;
            self.min_rtt_at = ack.now;
        }
        expired
    }
}

impl Model<TwoPeriodMax<Rate>> {
    /// Returns the bottleneck bandwidth in L3 bytes/s. It is the largest delivery rate of this and the previous probe
    /// cycle.
    #[inline]
    pub fn max_bw(&self) -> Rate {
        self.max_bw.get()
    }

    /// Adds a valid delivery rate to the bandwidth filter.
    #[inline]
    pub fn update_bw(&mut self, bw: Rate, app_limited: bool) {
        if !app_limited || bw >= self.max_bw() {
            self.max_bw.update(bw);
        }
    }

    /// Ends the cycle. If this cycle has no sample, the filter keeps the sample of the previous cycle (Linux
    /// `bbr_advance_max_bw_filter`).
    pub fn advance_bw(&mut self) {
        if self.max_bw.current() > Rate::ZERO {
            self.max_bw.advance();
        }
    }
}

impl<F> Model<F> {
    /// Returns the model of a new path. Only the handshake's RTT is known.
    pub fn with_filter(
        max_bw: F,
        now: Time,
        rtt: Option<Span>,
        packet_bytes: u32,
        initial_cwnd: u32,
    ) -> Self {
        Model {
            packet_bytes: packet_bytes.max(1),
            initial_cwnd,
            max_bw,
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            min_rtt: rtt.unwrap_or(Span::MAX),
            min_rtt_at: now,
            self_limited: None,
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::new(now),
            bdp: Memo::default(),
            bdps: Memo::default(),
        }
    }

    /// Returns the L3 bytes of a segment.
    pub fn packet_bytes(&self) -> u32 {
        self.packet_bytes
    }

    /// Counts rounds (BBR-6). Returns false if the ACK carries no valid delivery-rate sample.
    pub fn on_sample(&mut self, ack: &Ack) -> bool {
        self.round_start = false;
        if ack.rate.interval == Span::ZERO {
            return false;
        }
        // The sampled segment was sent after all data in flight at the start of the round had been delivered.
        if ack.rate.prior_delivered >= self.next_round_delivered {
            self.start_round(ack.delivered);
            self.round += 1;
            self.round_start = true;
        }
        true
    }

    /// Starts a round, which ends when data sent from now on is delivered.
    pub fn start_round(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    /// Returns the delivery rate of a valid sample, L3 bytes/s.
    #[inline]
    pub fn delivery_rate(&self, ack: &Ack) -> Rate {
        Rate::of(Bytes::new(u64::from(ack.rate.delivered) * u64::from(self.packet_bytes)), ack.rate.interval)
    }

    /// Returns whether the application or BBR itself limited the sender of the sampled data. Such a sample can be below
    /// the capacity of the path.
    pub fn is_app_limited(&self, ack: &Ack) -> bool {
        let sent_at = ack.rate.prior_delivered;
        ack.rate.app_limited || self.self_limited.is_some_and(|(from, to)| (from..=to).contains(&sent_at))
    }

    /// Called when the data in flight was sent slowly on purpose (ProbeRTT). Samples of this data give no information
    /// about the path.
    ///
    /// Linux marks the sampler until all data in flight is delivered (`tp->app_limited`). In this crate, the transport
    /// owns the sampler. So the model stores the values that `delivered` takes from now until all data in flight is
    /// delivered, as one interval. One interval is enough, because data of an older interval is no longer in flight.
    pub fn mark_self_limited(&mut self, delivered: u64, in_flight: u32) {
        let until = delivered.saturating_add(u64::from(in_flight)).max(1);
        let from = match self.self_limited {
            Some((from, to)) if delivered <= to => from,
            _ => delivered,
        };
        self.self_limited = Some((from, until));
    }

    /// Returns `gain` bandwidth-delay products in segments, rounded up, because rounding down would shrink the
    /// estimate. Before any RTT is known, returns the initial window (BBR-12).
    #[inline]
    pub fn bdp(&self, bw: Rate, gain: Gain) -> u32 {
        let (rtt, find) = (self.min_rtt, || self.find_bdp(bw, gain));
        if gain == Gain::ONE { self.bdp.get((bw, rtt), find) } else { self.bdps.get((bw, rtt, gain), find) }
    }

    #[inline(never)]
    fn find_bdp(&self, bw: Rate, gain: Gain) -> u32 {
        if self.min_rtt == Span::MAX {
            return self.initial_cwnd;
        }
        let (rate, span) = (bw.as_bytes_per_sec(), self.min_rtt.as_nanos());
        if let Some(gained) = rate.checked_mul(span).and_then(|product| gain.of_u64(product)) {
            let segments = gained.div_ceil(u64::from(self.packet_bytes) * NANOS_PER_SEC);
            return u32::try_from(segments).unwrap_or(u32::MAX);
        }
        let byte_nanos = u128::from(rate) * u128::from(span);
        let segment = u128::from(self.packet_bytes) * u128::from(NANOS_PER_SEC);
        u32::try_from(gain.of(byte_nanos).div_ceil(segment)).unwrap_or(u32::MAX)
    }
}
