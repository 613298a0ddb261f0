//! The rates of newcomers. No ACK can change these rates yet (BRF-34, ours).
//!
//! A newcomer learns its rate from the SYN-ACK. Its next feedback is in the first ACK of its data, an RTT later. Until
//! this feedback it sends at the rate in the SYN-ACK, even if many other flows begin. With the paper's equation 10, the
//! n-th newcomer within an RTT gets C/n. The sum of these rates, about C ln n, exceeds the capacity, and short flows
//! end before they get a smaller rate.
//!
//! Therefore the port records the sum of these rates, and gives a newcomer only a part of the remaining capacity. The
//! other parts are for the next newcomer and for the established flows, whose next ACKs carry smaller rates. So the sum
//! of rates can exceed the capacity only because of minimum rates (BRF-47). Choudhury and Hahne (1998) divide a buffer
//! among queues by the same rule: dynamic thresholds with a factor of one.

use crate::units::Rate;

/// The commitments of one port.
#[derive(Debug, Default)]
pub(super) struct Commitments {
    flows: u64,
    /// Sum of the rates, bytes/s.
    rate: u64,
}

impl Commitments {
    /// Returns the number of newcomers.
    pub(super) fn flows(&self) -> u64 {
        self.flows
    }

    /// Returns the sum of the rates, bytes/s.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Returns the rate of the `k`-th of several newcomers that arrive at the same time (the first has `k` = 1).
    /// `established` is the number of flows, or of subscribers, whose rates can be decreased by ACKs.
    pub(super) fn share(&self, capacity: Rate, established: u64, k: u64) -> Rate {
        let free = capacity.as_bytes_per_sec().saturating_sub(self.rate) as f64;
        let parts = established as f64 + 2.0;
        let left = libm::pow(1.0 - 1.0 / parts, k.saturating_sub(1) as f64);
        Rate::from_f64(free * left / parts)
    }

    /// Adds a newcomer.
    pub(super) fn add(&mut self, rate: u64) {
        self.flows += 1;
        self.rate = self.rate.saturating_add(rate);
    }

    /// Replaces the rate of a newcomer.
    pub(super) fn change(&mut self, from: u64, to: u64) {
        self.rate = self.rate.saturating_sub(from).saturating_add(to);
    }

    /// Removes a newcomer: an ACK can change its rate now, or the flow has ended.
    pub(super) fn remove(&mut self, rate: u64) {
        self.flows = self.flows.saturating_sub(1);
        self.rate = self.rate.saturating_sub(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newcomers_leave_a_part_to_the_next_one() {
        let (capacity, mut commitments) = (Rate::from_bytes_per_sec(1024), Commitments::default());
        for (k, expected) in (1..).zip([512, 256, 128, 64]) {
            assert_eq!(Commitments::default().share(capacity, 0, k).as_bytes_per_sec(), expected);
            let rate = commitments.share(capacity, 0, 1).as_bytes_per_sec();
            assert_eq!(
                rate, expected,
                "newcomers that arrive in succession get the same rates as newcomers at the same time"
            );
            commitments.add(rate);
        }
        assert_eq!((commitments.flows(), commitments.rate()), (4, 960));
        commitments.change(512, 256);
        commitments.remove(256);
        assert_eq!(commitments.share(capacity, 2, 1).as_bytes_per_sec(), (1024 - 448) / 4);
    }

    #[test]
    fn a_newcomer_beside_many_established_flows_gets_almost_their_share() {
        let share = Commitments::default().share(Rate::from_bytes_per_sec(102_000), 100, 1);
        assert_eq!(share.as_bytes_per_sec(), 1000);
    }
}
