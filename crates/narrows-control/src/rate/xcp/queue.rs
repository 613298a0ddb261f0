//! The persistent queue (XCP-3): the minimum number of bytes that departing packets leave in the queue, within about
//! half an RTT.

use crate::units::{Bytes, Rate, Span, Time};

/// Minimum length of the measurement (the draft's ALLOWED_QUEUE). A queue that becomes empty within this time is not
/// persistent.
const LOOK_MIN: Span = Span::from_millis(2);

/// Measures the minimum queue per interval.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The queue behind the last departed packet.
    last: Bytes,
    /// Minimum of the current measurement; `None` before its first departure.
    least: Option<Bytes>,
    /// Qmin, the minimum of the last complete measurement.
    lasting: Bytes,
    due: Time,
}

impl Queue {
    pub(super) fn new(now: Time, rtt: Span) -> Self {
        let due = now + look(rtt, Span::ZERO);
        Queue { last: Bytes::ZERO, least: None, lasting: Bytes::ZERO, due }
    }

    /// Records the number of bytes that a departing packet leaves in the queue.
    pub(super) fn on_departure(&mut self, queued: Bytes) {
        self.last = queued;
        self.least = Some(self.least.map_or(queued, |least| least.min(queued)));
    }

    /// Ends the measurement if it is due.
    pub(super) fn on_timer(&mut self, now: Time, rtt: Span, capacity: Rate) {
        if now < self.due {
            return;
        }
        // If no packet departed, the queue is at least as long as after the last departure.
        self.lasting = self.least.take().unwrap_or(self.last);
        self.due = now + look(rtt, capacity.time_for(self.last));
    }

    /// Returns Qmin.
    pub(super) fn lasting(&self) -> Bytes {
        self.lasting
    }

    pub(super) fn due(&self) -> Time {
        self.due
    }
}

/// Returns Tq, the length of a measurement, for an average RTT that includes the queueing delay `waiting`.
fn look(rtt: Span, waiting: Span) -> Span {
    (rtt - waiting).scale(1, 2).max(LOOK_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: Rate = Rate::from_bytes_per_sec(12_500_000);

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn a_burst_is_not_a_persistent_queue() {
        let start = Time::from_nanos(7);
        let mut queue = Queue::new(start, ms(50));
        assert_eq!(queue.due(), start + ms(25));
        for queued in [60_000, 3_000, 125_000] {
            queue.on_departure(Bytes::new(queued));
        }
        queue.on_timer(start + ms(24), ms(50), C);
        assert_eq!((queue.lasting(), queue.due()), (Bytes::ZERO, start + ms(25)), "not yet");
        queue.on_timer(start + ms(25), ms(50), C);
        // The link sends 125,000 bytes in 10 ms.
        assert_eq!((queue.lasting(), queue.due()), (Bytes::new(3_000), start + ms(45)));
        queue.on_timer(start + ms(45), ms(50), C);
        assert_eq!(queue.lasting(), Bytes::new(125_000), "nothing departed");
    }

    #[test]
    fn a_measurement_takes_at_least_two_milliseconds() {
        let start = Time::ZERO;
        for (queued, capacity) in [(0, C), (1 << 40, C), (u64::MAX, Rate::ZERO), (0, Rate::ZERO)] {
            let mut queue = Queue::new(start, Span::ZERO);
            assert_eq!(queue.due(), start + ms(2));
            queue.on_departure(Bytes::new(queued));
            queue.on_timer(start + ms(2), ms(3), capacity);
            assert_eq!(queue.due(), start + ms(4));
        }
    }
}
