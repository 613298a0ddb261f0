//! The share of this port's capacity that the ACKs for data of the reverse direction need.
//!
//! These ACKs join the queue of other TCP (TCP that is not rated), but belong to no flow of this port. If the split
//! depended only on numbers of flows, these ACKs would get no share. The ACKs of a flow need 1 to 2 % of the flow's
//! rate. So if the other direction is ten times as fast, the ACKs for its data need up to a fifth of this port's
//! capacity.

use crate::units::{Bytes, Rate, Span, Time};

/// Ratio of the reserved rate to the measured rate. Without a margin, ACKs would wait in the queue, and the feedback
/// in them would be late.
const HEADROOM: f64 = 1.05;
/// Changes of the rate by at most this share are ignored, because every change of the reserved rate changes all
/// allocations of the port.
const SAME: f64 = 0.05;
/// Weight of a sample that is below the average. A sample above the average replaces the average, because a slowly
/// growing reserve would delay the feedback in ACKs.
const WEIGHT: f64 = 0.25;

/// Measures the rate of the ACKs for data of the reverse direction. This rate is the rate of all arrivals for the queue
/// of other TCP, minus the arrival rate of the flows of other TCP in this direction.
#[derive(Debug, Default)]
pub(super) struct Acks {
    others: Bytes,
    last: Option<(Time, Bytes)>,
    smoothed: f64,
    set_aside: Rate,
}

impl Acks {
    /// Counts a packet of other TCP that belongs to a flow of this direction and was admitted to the queue.
    pub(super) fn record_other(&mut self, size: Bytes) {
        self.others += size;
    }

    /// Returns the rate to reserve.
    pub(super) fn rate(&self) -> Rate {
        self.set_aside
    }

    /// Takes the total of bytes that have arrived for the queue of other TCP. Computes one sample per `period`.
    pub(super) fn observe(&mut self, now: Time, arrived: Bytes, period: Span) {
        let acks = arrived - self.others;
        let Some((at, before)) = self.last else {
            self.last = Some((now, acks));
            return;
        };
        if now.since(at) < period {
            return;
        }
        self.last = Some((now, acks));
        let sample = Rate::of(acks - before, now.since(at)).as_f64();
        let weight = if sample > self.smoothed { 1.0 } else { WEIGHT };
        self.smoothed += weight * (sample - self.smoothed);
        let wanted = HEADROOM * self.smoothed;
        if (wanted - self.set_aside.as_f64()).abs() > SAME * wanted {
            self.set_aside = Rate::from_f64(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tcp_is_distinguished_from_acks() {
        let mut acks = Acks::default();
        let (mut arrived, ms) = (Bytes::ZERO, Span::from_millis);
        for t in 0..1000 {
            // In each millisecond, 1500 B of other TCP and 52 B of ACKs arrive.
            acks.record_other(Bytes::new(1500));
            arrived += Bytes::new(1552);
            acks.observe(Time::ZERO + ms(t), arrived, ms(20));
        }
        let found = acks.rate().as_f64();
        assert!((found / 52_000.0 - HEADROOM).abs() <= HEADROOM * SAME, "{found}");
    }
}
