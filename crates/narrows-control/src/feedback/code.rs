//! A rate in sixteen bits (BRF-5 to BRF-8). The code `mantissa * 10 + exponent` stands for a rate of
//! `mantissa * 10^exponent` bytes per second.

use crate::units::Rate;

/// Largest mantissa. The code of mantissa 6553 and exponent 9 would be 65539, but sixteen bits hold at most 65535.
const MAX_MANTISSA: u64 = 6552;
const MAX_EXPONENT: u64 = 9;

/// The code of a rate in a packet. The type has no order, because codes do not sort like rates: code 65520 is 6552 B/s,
/// but code 6561 is 6560 B/s (BRF-8). To compare codes, [`decode`](RateCode::decode) them first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateCode(u16);

impl RateCode {
    /// The code for "no value assigned". In a SYN, it means "feedback permitted". In an ACK, it means "no switch has
    /// written a rate yet" (BRF-7, BRF-10).
    pub const UNASSIGNED: RateCode = RateCode(65535);
    /// Replaces [`UNASSIGNED`](RateCode::UNASSIGNED) on a data packet of a sender that is not limited by its
    /// application.
    ///
    /// BRF-100 needs a bit in the option. The lowest bit of the unassigned value is free, because codes 65530 to 65534
    /// are reserved, and readers treat an unknown reserved code as unassigned.
    pub const UNLIMITED: RateCode = RateCode(65534);
    /// Replaces [`UNASSIGNED`](RateCode::UNASSIGNED) in the SYN of a source that gets later rates in messages (PAC-3b).
    /// Such a source gets only one rate in the option, in the SYN-ACK.
    pub const BY_MESSAGE: RateCode = RateCode(65533);
    /// Replaces [`UNASSIGNED`](RateCode::UNASSIGNED) in the SYN or SYN-ACK of a sender that designates packets
    /// (BDR-31).
    pub const DESIGNATES: RateCode = RateCode(65532);
    /// The largest rate that can be written: 6.552e12 B/s.
    pub const MAX: RateCode = RateCode(65529);

    /// Returns the code with these bits.
    pub const fn from_bits(bits: u16) -> Self {
        RateCode(bits)
    }

    /// Returns the bits. The bits are sent in big-endian order.
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Returns the largest code whose rate does not exceed `rate` (BRF-6).
    ///
    /// The smallest exponent that fits is the most precise. It is also safe on the wire: the first byte of a code of
    /// 6.6 kB/s or more is at least 0x19. The option kinds of NOP, MSS, window scale, SACK and timestamps are smaller
    /// than 0x19.
    ///
    /// For example, 250 MB/s becomes 2500 * 10^5. The encoding 25 * 10^7 of the same rate would have the bits
    /// 257 = 0x0101, which look like the two NOPs that the paper's format overwrites.
    pub const fn encode(rate: Rate) -> Self {
        let mut mantissa = rate.as_bytes_per_sec();
        let mut exponent = 0;
        while mantissa > MAX_MANTISSA {
            if exponent == MAX_EXPONENT {
                return RateCode::MAX;
            }
            mantissa /= 10;
            exponent += 1;
        }
        RateCode((mantissa * 10 + exponent) as u16)
    }

    /// Returns the rate, or `None` for the unassigned value and the reserved codes.
    pub const fn decode(self) -> Option<Rate> {
        if self.0 > RateCode::MAX.0 {
            return None;
        }
        let (mantissa, exponent) = ((self.0 / 10) as u64, (self.0 % 10) as u32);
        Some(Rate::from_bytes_per_sec(mantissa * 10u64.pow(exponent)))
    }
}

/// Returns the rate that a sender decodes when a switch writes `rate`. The decoded rate is at most 0.1524 % lower.
pub const fn as_heard(rate: Rate) -> Rate {
    match RateCode::encode(rate).decode() {
        Some(heard) => heard,
        None => Rate::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(rate: u64) -> u16 {
        RateCode::encode(Rate::from_bytes_per_sec(rate)).to_bits()
    }
    fn decode(bits: u16) -> Option<u64> {
        RateCode::from_bits(bits).decode().map(Rate::as_bytes_per_sec)
    }

    #[test]
    fn tv_1_vectors() {
        for (rate, bits) in [
            (125_000, 12502),
            (1_250_000, 12503),
            (12_250_000, 12254),
            (12_500_000, 12504),
            (120_000_000, 12005),
            (1_250_000_000, 12506),
            (6552, 65520),
            (6553, 6551),
            (6_250_000, 62503),
            (3_141_592, 31413),
            (6_552_000_000_000, 65529),
            (7_000_000_000_000, 65529),
            (u64::MAX, 65529),
            (0, 0),
        ] {
            assert_eq!(encode(rate), bits, "{rate} B/s");
        }
        assert_eq!(encode(120_000_000), 0x2EE5);
        assert_eq!(decode(6551), Some(6550));
        assert_eq!(decode(31413), Some(3_141_000));
        assert_eq!(decode(257), Some(250_000_000));
        assert_eq!((decode(65520), decode(6561)), (Some(6552), Some(6560)));
    }

    #[test]
    fn every_code_keeps_its_value_in_a_round_trip() {
        for bits in 0..=u16::MAX {
            match decode(bits) {
                Some(rate) => {
                    let canonical = encode(rate);
                    assert_eq!(decode(canonical), Some(rate), "code {bits}");
                    assert!(
                        canonical % 10 <= bits % 10,
                        "code {bits} has a smaller exponent than {canonical}"
                    );
                }
                None => assert!(bits >= 65530),
            }
        }
    }

    #[test]
    fn a_canonical_code_never_looks_like_tcp_options() {
        // Each canonical code is the result of `encode` for its rate, so this loop covers all rates.
        let mut canonical = 0;
        for bits in 0..=65529 {
            let rate = decode(bits).unwrap();
            if encode(rate) != bits {
                continue;
            }
            canonical += 1;
            assert_ne!(bits, 0x0101);
            assert!(rate < 6553 || bits >> 8 >= 0x19, "code {bits:#06x}");
        }
        // The canonical codes have mantissas 0 to 6552 with exponent 0, and mantissas 656 to 6552 with the nine other
        // exponents. With these exponents, smaller mantissas are not canonical, because a lower exponent gives the same
        // rate.
        assert_eq!(canonical, 6553 + 9 * (6552 - 655));
    }

    #[test]
    fn truncation_is_downward_and_at_most_0_1524_percent() {
        let mut worst = 0.0f64;
        for exponent in 1..=9u32 {
            for mantissa in 655..=6552u64 {
                let rate = mantissa * 10u64.pow(exponent) + 10u64.pow(exponent) - 1;
                let heard = as_heard(Rate::from_bytes_per_sec(rate)).as_bytes_per_sec();
                assert!(heard <= rate);
                worst = worst.max((rate - heard) as f64 / rate as f64);
            }
        }
        // Rates just below 656 * 10^e decode to 655 * 10^e, which is an error of 1/656.
        assert!((worst - 1.0 / 656.0).abs() < 1e-9, "{worst}");
    }
}
