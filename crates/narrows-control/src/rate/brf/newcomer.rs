//! The rate of a new flow, and the reduction of the other flows' rates (BRF-31 to BRF-33).

use crate::units::Rate;

/// Returns the rate of a newcomer by the paper's equations 9 and 10 (BRF-32): the smaller of the prediction and the
/// equal share. `flows` is the number of flows, including the newcomer.
pub(super) fn initial(predicted: Option<Rate>, capacity: Rate, flows: u64) -> Rate {
    let average = Rate::from_bytes_per_sec(capacity.as_bytes_per_sec() / flows.max(1));
    predicted.map_or(average, |predicted| predicted.min(average))
}

/// Returns the factor by which the paper's equations 11 to 13 reduce the other flows, or `None` if the unallocated
/// remainder suffices for the newcomer.
///
/// As printed, the factor is computed from used rates, but applied to allocations. If flows use less than their
/// allocations, the sum of allocations exceeds the capacity (TV-4). The resolved rule is
/// [`Shares::tighten`](super::allocate::Shares).
pub(super) fn literal_factor(capacity: f64, initial: f64, sum_real: f64) -> Option<f64> {
    let residual = capacity - sum_real;
    if residual >= initial { None } else { Some(((capacity - initial) / sum_real).max(0.0)) }
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::super::allocate::{AppClass, Shares};
    use super::*;
    use crate::rate::kit::waterfill::UNBOUNDED;

    const M: u64 = 1_000_000;

    fn mega(n: f64) -> u64 {
        (n * M as f64) as u64
    }

    fn initial_of_tv4() -> u64 {
        let bw = initial(Some(Rate::from_bytes_per_sec(40 * M)), Rate::from_bytes_per_sec(100 * M), 3);
        assert_eq!(bw.as_bytes_per_sec(), 33_333_333);
        bw.as_bytes_per_sec()
    }

    #[test]
    fn tv_4_literal() {
        let init = initial_of_tv4() as f64;
        let full = literal_factor(100e6, init, 100e6).unwrap();
        assert!((50.0 * full - 33.33).abs() < 0.01);
        let half = literal_factor(100e6, init, 70e6).unwrap();
        assert!((half - 0.95238).abs() < 1e-5);
        assert!((init / 1e6 + 100.0 * half - 128.57).abs() < 0.01, "the sum exceeds the capacity");
        assert_eq!(literal_factor(100e6, init, 60e6), None);
        assert!((init / 1e6 + 100.0 - 133.33).abs() < 0.01, "the sum exceeds the capacity here too");
    }

    /// Returns the allocations of the two other flows after the newcomer has joined. Before it joins, the allocations
    /// are [50, 50].
    fn resolved(demands: [u64; 2]) -> [u64; 2] {
        let mut shares = Shares::<IpAddr>::new(false, false);
        shares.set_capacity(Rate::from_bytes_per_sec(100 * M));
        demands.iter().for_each(|d| shares.insert(0, *d));
        shares.settle();
        shares.insert(0, initial_of_tv4());
        shares.tighten();
        demands.map(|d| shares.terms(0, AppClass::Unknown).base(d))
    }

    #[test]
    fn tv_4_resolved() {
        assert_eq!(resolved([UNBOUNDED, UNBOUNDED]).map(|r| r / 1000), [33_333, 33_333]);
        // TV-4: the first flow gets 100 - 33.33 - 22 = 44.67.
        assert_eq!(resolved([mega(50.0), mega(22.0)]).map(|r| r / 1000), [44_666, 22_000]);
        assert_eq!(resolved([mega(50.0), mega(11.0)]).map(|r| r / 1000), [50_000, 11_000]);
    }

    #[test]
    fn without_a_prediction_it_is_the_equal_share() {
        let c = Rate::from_bytes_per_sec(90);
        assert_eq!(initial(None, c, 3), Rate::from_bytes_per_sec(30));
        assert_eq!(initial(Some(Rate::from_bytes_per_sec(7)), c, 3), Rate::from_bytes_per_sec(7));
        assert_eq!(initial(None, c, 0), c);
    }
}
