use proptest::prelude::*;

use super::*;
use crate::units::Rate;

const ACK: u8 = 0x10;

/// Returns a header with these flags and options. The header's checksum includes the pseudo header.
fn header(flags: u8, options: &[u8]) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0);
    let mut h = vec![0x30, 0x39, 0x00, 0x50, 0, 0, 0, 1, 0, 0, 0, 2, 0, flags, 0x20, 0x00, 0, 0, 0, 0];
    h.extend_from_slice(options);
    h[12] = ((h.len() / 4) as u8) << 4;
    let sum = full_checksum(&h);
    h[16..18].copy_from_slice(&sum.to_be_bytes());
    h
}

/// Returns the checksum over pseudo header and header. The checksum field itself counts as zero.
fn full_checksum(header: &[u8]) -> u16 {
    let mut covered = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, 6];
    covered.extend_from_slice(&(header.len() as u16).to_be_bytes());
    covered.extend_from_slice(header);
    covered[12 + 16..12 + 18].fill(0);
    checksum::compute(&covered)
}

fn has_right_checksum(header: &[u8]) -> bool {
    word(header, CHECKSUM) == full_checksum(header)
}

fn timestamps() -> Vec<u8> {
    vec![NOP, NOP, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4]
}

fn assigned(rate: u64) -> Reading {
    Reading { option: RateOption::Assigned(Rate::from_bytes_per_sec(rate)), unlimited: None }
}

#[test]
fn a_rate_is_inserted_read_and_lowered_with_the_checksum_right() {
    let before = header(ACK, &timestamps());
    assert_eq!(read(&before, Format::Experimental), Reading::default());

    let mut after = insert(&before, RateCode::from_bits(12005)).unwrap().as_bytes().to_vec();
    assert_eq!(after.len(), before.len() + PADDED_LEN);
    assert_eq!(read(&after, Format::Experimental), assigned(120_000_000));
    assert_eq!(&after[28..], &before[20..], "the other options are unchanged");
    assert!(has_right_checksum(&after));

    rewrite(&mut after, Format::Experimental, RateCode::from_bits(12504)).unwrap();
    assert_eq!(read(&after, Format::Experimental), assigned(12_500_000));
    assert!(has_right_checksum(&after));
}

#[test]
fn an_option_at_an_odd_offset_is_rewritten_with_the_checksum_right() {
    let mut h = header(ACK, &[NOP, KIND, 6, 0x4E, 0x57, 0xFF, 0xFF, NOP]);
    assert_eq!(read(&h, Format::Experimental).option, RateOption::Unassigned);
    rewrite(&mut h, Format::Experimental, RateCode::from_bits(0x2EE5)).unwrap();
    assert_eq!(read(&h, Format::Experimental), assigned(120_000_000));
    assert!(has_right_checksum(&h));
}

#[test]
fn the_papers_padding_is_distinguished_from_a_rate_and_restored() {
    let clean = header(ACK, &timestamps());
    let mut h = clean.clone();
    assert_eq!(read(&h, Format::Padding), Reading { option: RateOption::Unassigned, unlimited: None });
    rewrite(&mut h, Format::Padding, RateCode::encode(Rate::from_bytes_per_sec(250_000_000))).unwrap();
    assert!(has_right_checksum(&h));
    assert_eq!(restore_padding(&mut h), assigned(250_000_000));
    assert_eq!(h, clean);
}

#[test]
fn a_syn_ack_has_no_padding_to_overwrite() {
    // This SYN-ACK has no MSS option. So SACK-permitted is at the place where an ACK has its NOPs, as in Linux's
    // layout.
    let mut h = header(ACK | SYN, &[4, 2, 8, 10, 0, 0, 1, 2, 0, 0, 0, 0]);
    let before = h.clone();
    assert_eq!(read(&h, Format::Padding).option, RateOption::Absent);
    assert_eq!(rewrite(&mut h, Format::Padding, RateCode::MAX), Err(NoPlace::Full));
    assert_eq!(h, before);
}

#[test]
fn forty_bytes_of_options_leave_no_room() {
    let mut full = timestamps();
    full.extend_from_slice(&[NOP, NOP, 5, 26]);
    full.extend_from_slice(&[0; 24]);
    assert_eq!(insert(&header(ACK, &full), RateCode::MAX), Err(NoPlace::Full));
}

#[test]
fn the_unlimited_bit_is_read_from_data_packets() {
    let plain = header(ACK, &timestamps());
    for (code, unlimited) in [(RateCode::UNLIMITED, true), (RateCode::UNASSIGNED, false)] {
        let h = insert(&plain, code).unwrap();
        let expected = Reading { option: RateOption::Unassigned, unlimited: Some(unlimited) };
        assert_eq!(read(h.as_bytes(), Format::Experimental), expected);
    }
}

#[test]
fn foreign_experiments_and_broken_lengths_read_as_absent() {
    for options in [
        [KIND, 6, 0xF9, 0x89, 0x2E, 0xE5, NOP, NOP],
        [KIND, 0, 0x4E, 0x57, 0x2E, 0xE5, NOP, NOP],
        [KIND, 1, 0x4E, 0x57, 0x2E, 0xE5, NOP, NOP],
        [KIND, 99, 0x4E, 0x57, 0x2E, 0xE5, NOP, NOP],
        [END, NOP, KIND, 6, 0x4E, 0x57, 0x2E, 0xE5],
    ] {
        assert_eq!(read(&header(ACK, &options), Format::Experimental), Reading::default(), "{options:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), bits in any::<u16>()) {
        for format in [Format::Experimental, Format::Padding] {
            let code = RateCode::from_bits(bits);
            let _ = insert(&bytes, code);
            let _ = restore_padding(&mut bytes.clone());
            let before = read(&bytes, format);
            if rewrite(&mut bytes, format, code).is_ok() {
                prop_assert_ne!(before.option, RateOption::Absent);
            } else {
                prop_assert_eq!(before.option, RateOption::Absent);
            }
        }
    }

    #[test]
    fn a_rewrite_changes_value_and_checksum_only(
        options in proptest::collection::vec(any::<u8>(), 0..8), bits in any::<u16>(),
    ) {
        // The rate option follows another option, which the parser can skip.
        let mut all: Vec<u8> = vec![254, options.len() as u8 + 2];
        all.extend_from_slice(&options);
        all.extend_from_slice(&[KIND, 6, 0x4E, 0x57, 0xFF, 0xFF]);
        all.resize(all.len().next_multiple_of(4), NOP);
        let before = header(ACK, &all);
        let mut after = before.clone();
        prop_assert_eq!(rewrite(&mut after, Format::Experimental, RateCode::from_bits(bits)), Ok(()));
        prop_assert_eq!(word(&after, CHECKSUM), full_checksum(&after));
        let value = MIN_HEADER + 2 + options.len() + 4;
        for (i, (a, b)) in after.iter().zip(&before).enumerate() {
            prop_assert!(a == b || i == value || i == value + 1 || i == CHECKSUM || i == CHECKSUM + 1);
        }
    }
}
