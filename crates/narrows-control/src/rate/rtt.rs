//! A flow's RTT as a switch in its middle sees it: two halves, each measured by itself (BRF-17).
//!
//! The receiver's half runs from a data packet at the switch to the ACK that echoes its timestamp, the sender's
//! half from an ACK to the data packet that echoes the ACK's. The handshake gives a first value of each.

use crate::units::{Span, Time};

/// Least RTT that is believed, and so the least time between two updates (ours).
pub(super) const RTT_MIN: Span = Span::from_micros(100);
/// Greatest RTT that is believed (ours): two hops over geostationary satellites and a queue. It bounds how far one
/// sender that writes hours can slow the loop down for all.
pub(super) const RTT_MAX: Span = Span::from_secs(2);

/// Weight of a sample above the estimate, as in TCP's own srtt (RFC 6298). A sample below replaces it: what is asked
/// for is how long a new rate takes to show, and a queue, which BRF is there to empty, is no part of that.
const WEIGHT: u64 = 8;
/// Most that one sample counts for, in estimates. An outage of five seconds gives a sample of five seconds, and gates
/// and periods that wait for as long would keep the flows down for many more.
const CLIP: u64 = 4;

/// One half: from the switch to one end and back.
#[derive(Copy, Clone, Debug, Default)]
struct Half {
    smoothed: Option<Span>,
    /// The timestamp whose echo is awaited, and when it passed.
    awaited: Option<(u32, Time)>,
}

impl Half {
    fn sample(&mut self, sample: Span) {
        self.smoothed = Some(match self.smoothed {
            Some(old) if sample > old => {
                old.scale(WEIGHT - 1, WEIGHT) + sample.min(old.scale(CLIP, 1)).scale(1, WEIGHT)
            }
            _ => sample,
        });
    }

    fn departs(&mut self, now: Time, value: u32) {
        // One at a time. A newer packet replaces one whose echo never came, as its clock has moved on by then.
        if self.awaited.is_none_or(|(_, at)| now.since(at) > Span::from_secs(1)) {
            self.awaited = Some((value, now));
        }
    }

    /// The span since the awaited timestamp passed, if `echo` is that one or later (RFC 7323, serial arithmetic).
    fn returns(&mut self, now: Time, echo: u32) -> Option<Span> {
        let (value, at) = self.awaited?;
        if (echo.wrapping_sub(value) as i32) < 0 {
            return None;
        }
        self.awaited = None;
        Some(now.since(at))
    }
}

/// Both halves of one flow.
#[derive(Copy, Clone, Debug, Default)]
pub(in crate::rate) struct RttEstimate {
    receiver: Half,
    sender: Half,
    last_data: Option<Time>,
}

impl RttEstimate {
    /// The RTT, `None` before anything was measured. One half alone is better than nothing.
    pub(in crate::rate) fn get(&self) -> Option<Span> {
        match (self.receiver.smoothed, self.sender.smoothed) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(Span::ZERO) + b.unwrap_or(Span::ZERO)),
        }
    }

    /// The handshake gave the receiver's half.
    pub(in crate::rate) fn receiver_half(&mut self, sample: Span) {
        self.receiver.sample(sample);
    }

    /// The handshake gave the sender's half.
    pub(in crate::rate) fn sender_half(&mut self, sample: Span) {
        self.sender.sample(sample);
    }

    /// A data packet with these timestamps (value, echo) passes.
    pub(in crate::rate) fn on_data(&mut self, now: Time, (value, echo): (u32, u32)) {
        // After a pause of the application the span since the ACK is the pause, not the path.
        let paused =
            self.last_data.is_none_or(|at| now.since(at).scale(2, 1) > self.get().unwrap_or(Span::MAX));
        if let Some(sample) = self.sender.returns(now, echo)
            && !paused
        {
            self.sender.sample(sample);
        }
        self.last_data = Some(now);
        self.receiver.departs(now, value);
    }

    /// A packet of the opposite direction with these timestamps (value, echo) passes.
    pub(in crate::rate) fn on_reverse(&mut self, now: Time, (value, echo): (u32, u32)) {
        if let Some(sample) = self.receiver.returns(now, echo) {
            self.receiver.sample(sample);
        }
        self.sender.departs(now, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn both_halves_add_up() {
        let mut rtt = RttEstimate::default();
        rtt.receiver_half(Span::from_millis(15));
        rtt.sender_half(Span::from_millis(5));
        assert_eq!(rtt.get(), Some(Span::from_millis(20)));
        // Data every ms, ACKs 15 ms later, data that echoes them 5 ms after that; clocks tick in ms.
        for t in 100..400u64 {
            rtt.on_data(ms(t), (t as u32, (t - 5) as u32));
            rtt.on_reverse(ms(t), (t as u32, (t - 15) as u32));
        }
        assert_eq!(rtt.get(), Some(Span::from_millis(20)));
    }

    #[test]
    fn converges_when_the_path_changes_and_ignores_pauses() {
        let mut rtt = RttEstimate::default();
        rtt.receiver_half(Span::from_millis(40));
        rtt.sender_half(Span::from_millis(40));
        for t in 100..1500u64 {
            rtt.on_data(ms(t), (t as u32, (t - 5) as u32));
            rtt.on_reverse(ms(t), (t as u32, (t - 15) as u32));
        }
        let settled = rtt.get().unwrap();
        assert!(settled < Span::from_millis(21), "{settled:?}");
        rtt.on_data(ms(3000), (3000, 1495));
        assert_eq!(rtt.get(), Some(settled));
    }

    #[test]
    fn an_outage_counts_for_little_and_is_forgotten_with_the_next_sample() {
        let mut rtt = RttEstimate::default();
        rtt.receiver_half(Span::from_millis(40));
        rtt.receiver_half(Span::from_secs(5));
        assert_eq!(rtt.get(), Some(Span::from_millis(55)));
        rtt.receiver_half(Span::from_millis(40));
        assert_eq!(rtt.get(), Some(Span::from_millis(40)));
    }

    #[test]
    fn timestamps_wrap() {
        let mut rtt = RttEstimate::default();
        rtt.on_data(ms(1), (u32::MAX, 0));
        rtt.on_reverse(ms(11), (7, 2));
        assert_eq!(rtt.get(), Some(Span::from_millis(10)));
    }
}
