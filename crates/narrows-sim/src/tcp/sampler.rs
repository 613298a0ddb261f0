//! Delivery-rate samples (BBR-1 to BBR-5; Linux `tcp_rate.c`).
//!
//! When a segment is sent, the sampler's state is stored in it. When an ACK arrives, each segment that it delivers
//! updates a draft of the sample. After the last of these segments, the sample is complete.

use narrows_control::congestion::{Lost, RateSample};
use narrows_control::units::{Span, Time};

use super::scoreboard::Segment;

/// The sampler's state for a connection. Amounts are in segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampler {
    /// Number of segments that have been acknowledged or SACKed so far.
    pub(crate) delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    /// Number of segments that have been marked lost so far.
    pub(crate) lost: u64,
    /// BBR-5: the flow is application-limited until `delivered` exceeds this number. If the flow is not
    /// application-limited, the number is 0.
    app_limited: u64,
}

/// The sample of an ACK that is being processed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    prior: Option<Prior>,
}

/// The sampler's state when a segment was sent. If the ACK delivers several segments, this is the state of the segment
/// that was sent last.
#[derive(Clone, Debug)]
struct Prior {
    delivered: u64,
    time: Time,
    sent: Time,
    send_elapsed: Span,
    app_limited: bool,
    retransmitted: bool,
    tx_in_flight: u32,
    lost: u32,
}

impl Sampler {
    /// BBR-2: stores the sampler's state in a segment that is about to be sent.
    #[inline]
    pub(crate) fn stamp(
        &mut self,
        now: Time,
        segment: &mut Segment,
        nothing_in_flight: bool,
        in_flight: u32,
    ) {
        if nothing_in_flight {
            self.first_sent = now;
            self.delivered_time = now;
        }
        segment.first_sent = self.first_sent;
        segment.delivered_time = self.delivered_time;
        segment.delivered = self.delivered as u32;
        segment.lost_before = self.lost as u32;
        segment.tx_in_flight = in_flight;
        segment.set_app_limited(self.app_limited != 0);
    }

    /// BBR-3: handles the delivery of a segment.
    #[inline]
    pub(crate) fn deliver(&mut self, segment: &Segment, draft: &mut Draft) {
        self.delivered += 1;
        if draft.prior.as_ref().is_some_and(|p| segment.sent < p.sent) {
            return;
        }
        draft.prior = Some(Prior {
            // A segment stores only the lower 32 bits of the count. They are enough, because far fewer than 2^32
            // segments are delivered while a segment is in flight.
            delivered: widen(self.delivered, segment.delivered),
            time: segment.delivered_time,
            sent: segment.sent,
            send_elapsed: segment.sent.since(segment.first_sent),
            app_limited: segment.is_app_limited(),
            retransmitted: segment.was_retransmitted(),
            tx_in_flight: segment.tx_in_flight,
            lost: segment.lost_before,
        });
    }

    /// BBR-4: completes the sample of an ACK. `min_rtt` already includes the RTT of this ACK. This is the order of
    /// Linux: tcp_ack() calls tcp_rate_gen() after tcp_clean_rtx_queue().
    #[inline]
    pub(crate) fn finish(&mut self, now: Time, draft: &Draft, min_rtt: Span) -> RateSample {
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Some(p) = &draft.prior else { return RateSample::default() };
        self.delivered_time = now;
        self.first_sent = p.sent;
        let delivered = (self.delivered - p.delivered) as u32;
        let mut sample = RateSample::measured(delivered, p.send_elapsed, now.since(p.time), min_rtt);
        sample.prior_delivered = p.delivered;
        sample.app_limited = p.app_limited;
        sample.tx_in_flight = p.tx_in_flight;
        sample.lost = (self.lost as u32).wrapping_sub(p.lost);
        sample.retransmitted = p.retransmitted;
        sample
    }

    /// Counts a lost segment. Returns the data about this loss for the congestion controller.
    pub(crate) fn record_loss(&mut self, now: Time, segment: &Segment) -> Lost {
        self.lost += 1;
        let mut lost = Lost::new(now, segment.tx_in_flight);
        lost.delivered = self.delivered;
        lost.lost = (self.lost as u32).wrapping_sub(segment.lost_before);
        lost.app_limited = segment.is_app_limited();
        lost
    }

    /// BBR-5: marks the flow as application-limited, because its window has room but the application has no data.
    pub(crate) fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + in_flight as u64).max(1);
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }
}

/// Returns the largest 64-bit count that is at most `now` and whose lower 32 bits are `low`.
fn widen(now: u64, low: u32) -> u64 {
    now - (now as u32).wrapping_sub(low) as u64
}
