//! Decides which ACK carries a rate, and which rate (BRF-60 to BRF-64).

use crate::feedback::code::as_heard;
use crate::rate::RateOption;
use crate::units::{Rate, Span, Time};

/// A rate below this share of the last written rate may pass a closed gate (BRF-64).
const URGENT: f64 = 0.9;

/// The gate of one flow. The gate lets at most one feedback pass per RTT of the flow (BRF-60). A new gate is open.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Gate {
    next: Time,
    /// The value of `next` before the last write, which is restored if the written rate does not fit into the packet.
    previous: Time,
    /// The last written value, and the value before it.
    said: Option<Rate>,
    said_before: Option<Rate>,
}

impl Gate {
    /// Returns the rate to write into an ACK with this option, or `None` to leave the ACK unchanged. The smallest
    /// rate on the path applies (BRF-61).
    ///
    /// A switch may lower another switch's rate in an ACK even while its own gate is closed. Every ACK with another
    /// switch's rate closes the gate for one and a half RTT (BRF-62). So the switch nearest to the receiver writes
    /// first, and the other switches only lower its rates. With independent gates, the sender would get the rates of
    /// two switches alternately.
    pub(super) fn answer(
        &mut self,
        now: Time,
        rtt: Span,
        allocated: Rate,
        option: RateOption,
        urgent: bool,
    ) -> Option<Rate> {
        (self.previous, self.said_before) = (self.next, self.said);
        if let RateOption::Assigned(value) = option {
            self.next = now + rtt.scale(3, 2);
            // `allocated` is rounded to the precision of the encoding before the comparison (BRF-8).
            let replace = as_heard(allocated) <= value;
            if replace {
                self.said = Some(allocated);
            }
            return replace.then_some(allocated);
        }
        let urgent = urgent && self.said.is_some_and(|said| allocated < said.mul_f64(URGENT));
        if now < self.next && !urgent {
            return None;
        }
        self.next = now + rtt;
        self.said = Some(allocated);
        Some(allocated)
    }

    /// Restores the gate's earlier state. Called if the last written rate did not fit into its packet (BRF-11).
    pub(super) fn reopen(&mut self) {
        (self.next, self.said) = (self.previous, self.said_before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(20);

    fn rate(r: u64) -> Rate {
        Rate::from_bytes_per_sec(r)
    }
    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn one_feedback_per_rtt() {
        let mut gate = Gate::default();
        let written: Vec<u64> = (0..100)
            .filter(|t| gate.answer(ms(*t), RTT, rate(1000), RateOption::Unassigned, false).is_some())
            .collect();
        assert_eq!(written, [0, 20, 40, 60, 80]);
    }

    #[test]
    fn the_smallest_value_on_the_path_stands() {
        let mut gate = Gate::default();
        let mut answer =
            |t, value| gate.answer(ms(t), RTT, rate(1000), RateOption::Assigned(rate(value)), false);
        assert_eq!(answer(0, 5000), Some(rate(1000)));
        assert_eq!(answer(1, 5000), Some(rate(1000)), "lowering is not gated");
        assert_eq!(answer(2, 1000), Some(rate(1000)), "equal is replaced");
        assert_eq!(answer(3, 999), None);
    }

    #[test]
    fn comparison_is_of_decoded_values() {
        // 6559 B/s decodes to 6550 B/s.
        let mut gate = Gate::default();
        assert_eq!(
            gate.answer(ms(0), RTT, rate(6559), RateOption::Assigned(rate(6550)), false),
            Some(rate(6559))
        );
        assert_eq!(gate.answer(ms(0), RTT, rate(6560), RateOption::Assigned(rate(6550)), false), None);
    }

    #[test]
    fn two_switches_do_not_alternate() {
        // Switch A is nearer to the receiver and permits a higher rate than switch B. In every millisecond, an ACK
        // passes A and then B.
        let (mut a, mut b) = (Gate::default(), Gate::default());
        let mut heard = Vec::new();
        for t in 0..200 {
            let option = match a.answer(ms(t), RTT, rate(2000), RateOption::Unassigned, false) {
                Some(value) => RateOption::Assigned(value),
                None => RateOption::Unassigned,
            };
            // The gate of B opens half an RTT after the gate of A. If A's values did not close B's gate, B would
            // write between A's writes.
            match (b.answer(ms(t + 10), RTT, rate(1000), option, false), option) {
                (Some(value), _) | (None, RateOption::Assigned(value)) => heard.push(value),
                _ => {}
            }
        }
        assert_eq!(heard, [rate(1000); 10]);
    }

    #[test]
    fn a_write_that_did_not_fit_leaves_the_gate_open() {
        let mut gate = Gate::default();
        assert!(gate.answer(ms(5), RTT, rate(1), RateOption::Absent, false).is_some());
        gate.reopen();
        assert!(gate.answer(ms(6), RTT, rate(1), RateOption::Absent, false).is_some());
        assert!(gate.answer(ms(7), RTT, rate(1), RateOption::Absent, false).is_none());
    }

    #[test]
    fn an_urgent_decrease_without_room_is_tried_again_at_once() {
        let mut gate = Gate::default();
        assert!(gate.answer(ms(0), RTT, rate(1000), RateOption::Unassigned, true).is_some());
        for at in [1, 2] {
            assert!(gate.answer(ms(at), RTT, rate(500), RateOption::Unassigned, true).is_some());
            gate.reopen();
        }
    }

    #[test]
    fn an_urgent_decrease_passes_once_if_allowed() {
        for (allowed, expected) in [(false, None), (true, Some(rate(800)))] {
            let mut gate = Gate::default();
            gate.answer(ms(0), RTT, rate(1000), RateOption::Unassigned, allowed);
            assert_eq!(gate.answer(ms(1), RTT, rate(950), RateOption::Unassigned, allowed), None);
            assert_eq!(gate.answer(ms(2), RTT, rate(800), RateOption::Unassigned, allowed), expected);
            assert_eq!(gate.answer(ms(3), RTT, rate(800), RateOption::Unassigned, allowed), None);
        }
    }
}
