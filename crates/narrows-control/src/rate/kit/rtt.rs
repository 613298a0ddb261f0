//! A flow's RTT as seen by a switch on its path: two halves, measured separately (BRF-17).
//!
//! The receiver's half is the time from a data packet to the ACK that echoes the packet's timestamp. The sender's half
//! is the time from an ACK to the data packet that echoes the ACK's timestamp. The handshake gives the first value of
//! each half.

use crate::units::{Span, Time};

/// Minimum RTT (ours). It also limits how often rates are updated.
pub(in crate::rate) const RTT_MIN: Span = Span::from_micros(100);
/// Maximum RTT (ours): two hops over geostationary satellites, and a queue. Without a maximum, a sender with false
/// timestamps could slow the control loop for all flows.
pub(in crate::rate) const RTT_MAX: Span = Span::from_secs(2);

/// Weight of a sample above the estimate, as in TCP's srtt (RFC 6298). A smaller sample replaces the estimate, because
/// the estimate is used as the time until a new rate takes effect. That time includes no queueing delay.
const WEIGHT: u64 = 8;
/// A sample above this multiple of the estimate is reduced to the multiple. For example, an outage of five seconds
/// gives a sample of five seconds. With update intervals of that length, flows would stay slow long after the outage.
const CLIP: u64 = 4;

/// One half of the RTT: from the switch to one end and back.
#[derive(Copy, Clone, Debug, Default)]
struct Half {
    smoothed: Option<Span>,
    /// The timestamp whose echo is expected, and the time at which this timestamp passed the switch.
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
        // Only one timestamp is awaited at a time. If its echo takes longer than a second, a newer timestamp takes its
        // place.
        if self.awaited.is_none_or(|(_, at)| now.since(at) > Span::from_secs(1)) {
            self.awaited = Some((value, now));
        }
    }

    /// Returns the time since the awaited timestamp passed the switch, if `echo` is this timestamp or a later one (RFC
    /// 7323, serial arithmetic).
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
    /// Returns the RTT, or `None` before the first measurement. If one half is missing, the RTT is the other half
    /// alone.
    pub(in crate::rate) fn get(&self) -> Option<Span> {
        match (self.receiver.smoothed, self.sender.smoothed) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(Span::ZERO) + b.unwrap_or(Span::ZERO)),
        }
    }

    /// Takes a sample of the receiver's half from the handshake or from counts.
    pub(in crate::rate) fn receiver_half(&mut self, sample: Span) {
        self.receiver.sample(sample);
    }

    /// Takes a sample of the sender's half from the handshake or from counts.
    pub(in crate::rate) fn sender_half(&mut self, sample: Span) {
        self.sender.sample(sample);
    }

    /// Handles the timestamps (value, echo) of a data packet.
    pub(in crate::rate) fn on_data(&mut self, now: Time, (value, echo): (u32, u32)) {
        // After a pause of the application, the time since the ACK includes the pause, so it is not a sample.
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

    /// Handles the timestamps (value, echo) of a packet of the reverse direction.
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
        // Data passes every millisecond. The ACK of the data passes 15 ms later. Data that echoes the ACK passes 5 ms
        // after the ACK.
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
    fn an_outage_has_little_weight_and_the_next_sample_replaces_it() {
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
