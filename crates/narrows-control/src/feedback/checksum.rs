//! Incremental update of the Internet checksum (RFC 1071, RFC 1624).

/// Returns the checksum field after the aligned 16-bit word `old` became `new`: HC' = ~(~HC + ~m + m') (RFC 1624, eqn
/// 3).
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = (!checksum) as u32 + (!old) as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

/// Like [`update`], for two bytes at the position `offset` of the covered data.
///
/// At an odd offset, the first byte is the low half of one word, and the second byte is the high half of the next word.
/// The sum does not depend on the word in which a half lies (RFC 1071, section 2(B)). So it is enough to swap the two
/// bytes in both values.
pub const fn update_at(checksum: u16, offset: usize, old: u16, new: u16) -> u16 {
    if offset.is_multiple_of(2) {
        update(checksum, old, new)
    } else {
        update(checksum, old.swap_bytes(), new.swap_bytes())
    }
}

/// Returns the checksum of `data`. An odd last byte is padded with zero (RFC 1071).
pub fn compute(data: &[u8]) -> u16 {
    let mut sum = 0u64;
    for word in data.chunks(2) {
        let low = word.get(1).copied().unwrap_or(0);
        sum += u64::from(u16::from_be_bytes([word[0], low]));
    }
    !fold(sum)
}

/// Adds the upper 16-bit words of a sum to its lowest word, with carry (RFC 1071).
pub const fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    #[test]
    fn tv_2_update_agrees_with_recomputation() {
        let before = compute(&bytes(&[0x1234, 0x5678, 0x0101, 0xABCD, 0x8010, 0x01F5]));
        let after = compute(&bytes(&[0x1234, 0x5678, 0x2EE5, 0xABCD, 0x8010, 0x01F5]));
        assert_eq!(before, 0x687F);
        assert_eq!(after, 0x3A9B);
        assert_eq!(update(before, 0x0101, 0x2EE5), after);
    }

    #[test]
    fn rfc_1624_corner_does_not_give_minus_zero() {
        // RFC 1624, section 4: HC = 0xDD2F, m = 0x5555, m' = 0x3285 give 0x0000. The formula of RFC 1141
        // gives 0xFFFF.
        assert_eq!(update(0xDD2F, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn update_at_any_offset_equals_a_recomputation(
            mut data in proptest::collection::vec(any::<u8>(), 2..60), at in 0usize..58, new in any::<u16>(),
        ) {
            let at = at.min(data.len() - 2);
            // Only the checksum of input that consists of zeros has two representations. No TCP header consists of
            // zeros only.
            prop_assume!(data.iter().enumerate().any(|(i, b)| *b != 0 && i != at && i != at + 1));
            let old = u16::from_be_bytes([data[at], data[at + 1]]);
            let before = compute(&data);
            data[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update_at(before, at, old, new), compute(&data));
        }
    }
}
