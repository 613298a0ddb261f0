//! Computes the rates and bursts of the program's token buckets.

use narrows_control::rate::brf::burst;
use narrows_control::units::{Bytes, Rate, Span};

/// Returns the rate and the burst of UDP's token bucket. The bucket polices UDP at a port whose capacity is measured,
/// or where UDP may not borrow (BRF-23). `rate` is the largest rate of the UDP class, including borrowed bandwidth
/// (BRF-22).
///
/// The controller gives UDP a share only after it has seen UDP packets. UDP therefore always gets at least a
/// hundredth of the link, so that the first datagrams pass.
pub(super) fn udp(rate: Rate, capacity: Rate, mtu: Bytes) -> (Rate, Bytes) {
    let rate = rate.max(capacity.mul_f64(0.01));
    (rate, burst(rate, mtu))
}

/// Smallest burst of the SYN bucket: even on the slowest link, 128 connections can start at the same time. A SYN has at
/// most 100 bytes, with IPv6 and a header full of options.
const SYNS_AT_ONCE: Bytes = Bytes::new(128 * 100);
/// Burst of the SYN bucket on a fast link, as a time at the bucket's rate.
const SYN_BURST: Span = Span::from_millis(100);

/// Returns the rate and the burst of the token bucket for SYNs. `share` is their share of the link's rate.
pub(super) fn syn(link: Rate, share: f64) -> (Rate, Bytes) {
    let rate = link.mul_f64(share);
    (rate, SYNS_AT_ONCE.max(rate.bytes_in(SYN_BURST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_link_has_room_for_128_connections_at_once_and_a_fast_one_for_more() {
        let mbit = |n: u64| Rate::from_bits_per_sec(n * 1_000_000);
        assert_eq!(syn(mbit(1), 0.02), (Rate::from_bytes_per_sec(2_500), Bytes::new(12_800)));
        assert_eq!(syn(mbit(100), 0.02), (Rate::from_bytes_per_sec(250_000), Bytes::new(25_000)));
    }

    #[test]
    fn udp_gets_a_hundredth_of_the_link_before_it_has_a_share() {
        let (link, mtu) = (Rate::from_bytes_per_sec(1_000_000), Bytes::new(1500));
        assert_eq!(udp(Rate::ZERO, link, mtu), (Rate::from_bytes_per_sec(10_000), Bytes::new(3_000)));
        let share = Rate::from_bytes_per_sec(5_000_000);
        assert_eq!(udp(share, link, mtu), (share, Bytes::new(5_000)));
    }
}
