//! The report of a designated packet (BDR-6, BDR-20) as the value of a TCP option, as `bpf/include/wire.h` encodes it.
//!
//! The option has eight bytes: kind 253, length, the ExID [`EXID`] and 32 bits. A report states at most 255 segments
//! for a packet. It states a time of at most [`LIVED_MAX`].

use crate::units::Span;

/// The option's ExID (RFC 6994), "ND". It is not registered.
pub const EXID: u16 = 0x4E44;
/// The longest time that a report can state.
pub const LIVED_MAX: Span = Span::from_micros((1 << 22) - 1);

const FIRST: u32 = 1 << 31;
const FIN: u32 = 1 << 30;

/// A report that a sender writes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OptionReport {
    /// Whether this is the flow's first report after its SYN.
    pub first: bool,
    /// Whether this is the flow's last report.
    pub fin: bool,
    /// Number of segments that the designated packet is split into. All of these segments carry the option.
    pub segments: u8,
    /// Time since the flow's previous designated packet.
    pub lived: Span,
}

impl OptionReport {
    /// Returns the option's value. A time above [`LIVED_MAX`] is sent as [`LIVED_MAX`].
    pub fn to_bits(self) -> u32 {
        let flag = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        // The time is below 2^22.
        let lived = self.lived.min(LIVED_MAX).as_micros() as u32;
        flag(self.first, FIRST) | flag(self.fin, FIN) | u32::from(self.segments) << 22 | lived
    }

    /// Returns the report with this value.
    pub fn from_bits(bits: u32) -> Self {
        OptionReport {
            first: bits & FIRST != 0,
            fin: bits & FIN != 0,
            segments: (bits >> 22 & 0xff) as u8,
            lived: Span::from_micros(u64::from(bits & ((1 << 22) - 1))),
        }
    }

    /// Returns the option with its two bytes of kind and length.
    pub fn to_option(self) -> [u8; 8] {
        let ([a, b], [c, d, e, f]) = (EXID.to_be_bytes(), self.to_bits().to_be_bytes());
        [253, 8, a, b, c, d, e, f]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fields_have_their_places() {
        let lived = Span::from_micros(100_000);
        let report = OptionReport { first: true, fin: false, segments: 2, lived };
        assert_eq!(report.to_option(), [253, 8, 0x4E, 0x44, 0x80, 0x81, 0x86, 0xA0]);
        assert_eq!(OptionReport { lived: Span::from_secs(60), ..report }.to_bits() & 0x3f_ffff, 0x3f_ffff);
    }

    proptest! {
        #[test]
        fn any_value_is_a_report_that_encodes_to_itself(bits: u32) {
            prop_assert_eq!(OptionReport::from_bits(bits).to_bits(), bits);
        }
    }
}
