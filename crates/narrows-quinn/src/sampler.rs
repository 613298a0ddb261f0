//! Computes delivery-rate samples from a QUIC stack's reports (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! The reports identify acknowledged packets by the time at which they were sent. So the sampler stores the connection's
//! state for each such time. Packets sent at the same time share an entry.

use std::collections::VecDeque;

use narrows_control::congestion::RateSample;
use narrows_control::units::{Span, Time};

/// The counters of a connection, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampler {
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    delivered_at: Time,
    first_sent: Time,
    /// The connection is application-limited until the number of delivered bytes exceeds this value. The value is 0 if
    /// the connection is not application-limited.
    app_limited_until: u64,
    entries: VecDeque<Entry>,
    /// The newest packet that the current ACK delivers.
    newest: Option<Entry>,
}

/// The connection's state at the time when packets were sent.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) sent_at: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    lost: u64,
    /// Bytes in flight after the packets were sent.
    pub(crate) in_flight: u64,
    pub(crate) app_limited: bool,
}

impl Sampler {
    /// Records that `bytes` bytes were sent. Before this transmission, `in_flight` bytes were in flight.
    pub(crate) fn send(&mut self, now: Time, bytes: u64, in_flight: u64) {
        if in_flight == 0 {
            self.first_sent = now;
            self.delivered_at = now;
        }
        self.sent += bytes;
        if let Some(last) = self.entries.back_mut()
            && last.sent_at == now
        {
            last.in_flight = in_flight + bytes;
            return;
        }
        self.entries.push_back(Entry {
            sent_at: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            in_flight: in_flight + bytes,
            app_limited: self.app_limited_until != 0,
        });
    }

    /// Records the delivery of a packet that was sent at `sent_at`.
    pub(crate) fn deliver(&mut self, sent_at: Time, bytes: u64) {
        self.delivered += bytes;
        if self.newest.is_none_or(|newest| newest.sent_at <= sent_at)
            && let Some(entry) = self.find(sent_at)
        {
            self.newest = Some(entry);
        }
    }

    /// Returns the connection's state at the time when a packet was sent.
    pub(crate) fn find(&self, sent_at: Time) -> Option<Entry> {
        let at = self.entries.partition_point(|entry| entry.sent_at < sent_at);
        self.entries.get(at).copied().filter(|entry| entry.sent_at == sent_at)
    }

    /// Returns the send time of the newest packet that the current ACK delivers.
    pub(crate) fn newest(&self) -> Option<Time> {
        self.newest.map(|entry| entry.sent_at)
    }

    /// Completes the sample of an ACK, in segments of `segment_bytes`. `min_rtt` includes the RTT of this ACK.
    pub(crate) fn finish(&mut self, now: Time, min_rtt: Span, segment_bytes: u64) -> RateSample {
        let Some(newest) = self.newest.take() else { return RateSample::default() };
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let delivered = ((self.delivered - newest.delivered) / segment_bytes) as u32;
        let send_elapsed = newest.sent_at.since(newest.first_sent);
        let mut sample =
            RateSample::measured(delivered, send_elapsed, now.since(newest.delivered_at), min_rtt);
        self.delivered_at = now;
        self.first_sent = newest.sent_at;
        sample.prior_delivered = newest.delivered / segment_bytes;
        sample.app_limited = newest.app_limited;
        sample.tx_in_flight = (newest.in_flight / segment_bytes) as u32;
        sample.lost = ((self.lost - newest.lost) / segment_bytes) as u32;
        sample
    }

    /// Returns the bytes lost since a packet was sent.
    pub(crate) fn lost_since(&self, entry: &Entry) -> u64 {
        self.lost - entry.lost
    }

    /// Records that the application, not the window, limits the connection.
    pub(crate) fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Forgets packets that were sent before this time.
    pub(crate) fn forget_before(&mut self, time: Time) {
        while self.entries.front().is_some_and(|entry| entry.sent_at < time) {
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn a_steady_flow_has_the_rate_of_its_acks() {
        let mut sampler = Sampler::default();
        let mut in_flight = 0;
        let mut last = None;
        // A packet is sent each millisecond, and acknowledged after 20 ms.
        for n in 0..100u64 {
            if let Some(sent) = n.checked_sub(20) {
                sampler.deliver(ms(sent), 1200);
                in_flight -= 1200;
                let sent_at = sampler.newest();
                last = sent_at.zip(Some(sampler.finish(ms(n), Span::from_millis(20), 1200)));
            }
            sampler.send(ms(n), 1200, in_flight);
            in_flight += 1200;
        }
        let (sent_at, sample) = last.expect("a sample");
        assert_eq!(sent_at, ms(79));
        assert_eq!((sample.delivered, sample.interval), (20, Span::from_millis(20)));
        assert!(!sample.app_limited);
    }

    #[test]
    fn an_interval_below_the_minimum_rtt_is_no_sample() {
        let mut sampler = Sampler::default();
        sampler.send(ms(0), 1200, 0);
        sampler.deliver(ms(0), 1200);
        let sample = sampler.finish(ms(5), Span::from_millis(10), 1200);
        assert_eq!(sample.interval, Span::ZERO);
    }

    #[test]
    fn packets_of_an_idle_application_are_marked() {
        let mut sampler = Sampler::default();
        sampler.send(ms(0), 1200, 0);
        sampler.mark_app_limited(1200);
        sampler.send(ms(1), 1200, 1200);
        assert_eq!(sampler.find(ms(0)).map(|entry| entry.app_limited), Some(false));
        assert_eq!(sampler.find(ms(1)).map(|entry| entry.app_limited), Some(true));
        sampler.forget_before(ms(1));
        assert!(sampler.find(ms(0)).is_none() && sampler.find(ms(1)).is_some());
    }
}
