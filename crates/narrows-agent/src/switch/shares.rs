//! Converts between the controllers' rates (L3) and HTB's rates (L3 plus the link's overhead).

use narrows_control::rate::{Class, LEAVES, PortCounters};
use narrows_control::units::{Bytes, Rate};

use crate::htb::LeafStats;

/// The length of a full packet at a port, and the link's overhead per packet, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing {
    pub(super) mtu: u64,
    pub(super) overhead: u64,
}

impl Framing {
    fn scale(rate: Rate, numerator: u64, denominator: u64) -> Rate {
        let scaled =
            u128::from(rate.as_bytes_per_sec()) * u128::from(numerator) / u128::from(denominator.max(1));
        Rate::from_bytes_per_sec(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Returns the L3 rate for a rate of HTB, with full packets.
    pub(super) fn l3(self, rate: Rate) -> Rate {
        Self::scale(rate, self.mtu, self.mtu + self.overhead)
    }

    /// Returns HTB's rate for an L3 rate, with full packets.
    pub(super) fn frames(self, rate: Rate) -> Rate {
        Self::scale(rate, self.mtu + self.overhead, self.mtu)
    }

    /// Converts the classes' L3 rates and ceilings to HTB's rates. Neither a rate nor the sum of the rates exceeds
    /// `link`.
    pub(super) fn classes(self, wanted: &[(Rate, Rate); 3], link: Rate) -> [(Class, Rate, Rate); 3] {
        let rates = wanted.map(|(rate, _)| self.frames(rate));
        let sum = rates.iter().fold(Rate::ZERO, |sum, rate| sum + *rate);
        let fitting = |rate| {
            if sum > link { Self::scale(rate, link.as_bytes_per_sec(), sum.as_bytes_per_sec()) } else { rate }
        };
        [Class::Rated, Class::OtherTcp, Class::Udp].map(|class| {
            let at = class as usize;
            (class, fitting(rates[at]).min(link), self.frames(wanted[at].1).min(link))
        })
    }

    /// Updates the departed and queued packets from the statistics of HTB's leaves.
    pub(super) fn count(self, stats: &[LeafStats; LEAVES], counters: &mut PortCounters) {
        let l3 = |bytes: u64, packets: u64| {
            Bytes::new(bytes.saturating_sub(packets.saturating_mul(self.overhead)))
        };
        for (leaf, stats) in stats.iter().enumerate() {
            counters.departed[leaf] = l3(stats.bytes, stats.packets);
            // The kernel counts a GSO super-packet as one packet, so compute the packets on the wire from the bytes.
            let full = u64::from(stats.queued_bytes).div_ceil((self.mtu + self.overhead).max(1));
            let packets = u64::from(stats.queued_packets).max(full);
            counters.queued[leaf] = l3(u64::from(stats.queued_bytes), packets);
            counters.queued_packets[leaf] = u32::try_from(packets).unwrap_or(u32::MAX);
        }
        counters.departed_packets = stats.iter().map(|stats| stats.packets).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMING: Framing = Framing { mtu: 1500, overhead: 14 };

    #[test]
    fn a_link_of_frames_carries_less_l3() {
        let l3 = FRAMING.l3(Rate::from_bytes_per_sec(12_500_000));
        assert_eq!(l3.as_bytes_per_sec(), 12_384_412);
        assert!(FRAMING.frames(l3).as_bytes_per_sec().abs_diff(12_500_000) <= 2);
    }

    #[test]
    fn no_class_exceeds_the_link() {
        let [link, none] = [1000, 0].map(Rate::from_bytes_per_sec);
        let wanted = [(Rate::from_bytes_per_sec(990), Rate::MAX), (none, Rate::MAX), (none, none)];
        let classes = FRAMING.classes(&wanted, link);
        assert_eq!(classes[0], (Class::Rated, Rate::from_bytes_per_sec(999), link));
        assert_eq!(classes[2], (Class::Udp, none, none));
    }

    #[test]
    fn classes_of_a_faster_link_are_scaled_down_in_proportion() {
        let framing = Framing { mtu: 1500, overhead: 0 };
        let wanted = [600, 300, 100].map(|rate| (Rate::from_bytes_per_sec(rate), Rate::MAX));
        let classes = framing.classes(&wanted, Rate::from_bytes_per_sec(500));
        assert_eq!(classes.map(|(_, rate, _)| rate.as_bytes_per_sec()), [300, 150, 50]);
    }

    #[test]
    fn counters_are_l3() {
        let mut stats = [LeafStats::default(); LEAVES];
        stats[1] = LeafStats {
            bytes: 15140,
            packets: 10,
            queued_packets: 2,
            queued_bytes: 3028,
            ..LeafStats::default()
        };
        let mut counters = PortCounters::default();
        FRAMING.count(&stats, &mut counters);
        assert_eq!((counters.departed[1].get(), counters.queued[1].get()), (15_000, 3_000));
        assert_eq!((counters.queued_packets[1], counters.departed_packets), (2, 10));
    }
}
