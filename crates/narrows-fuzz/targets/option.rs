//! Fuzzes the reference codec of rates in TCP headers, in both formats.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::option::{Format, insert, read, restore_padding, rewrite};
use narrows_fuzz::bounded;

fuzz_target!(|input: &[u8]| {
    let Some((code, header)) = input.split_first_chunk() else { return };
    let code = RateCode::from_bits(u16::from_be_bytes(*code));
    bounded(1 << 12, || {
        for format in [Format::Experimental, Format::Padding] {
            let before = read(header, format);
            let mut written = header.to_vec();
            if rewrite(&mut written, format, code).is_ok() {
                let changed = header.iter().zip(&written).filter(|(old, new)| old != new).count();
                assert!(changed <= 4, "a rate and a checksum");
                let again = read(&written, format);
                rewrite(&mut written, format, code).expect("the place is still there");
                assert_eq!(read(&written, format).option, again.option);
            } else {
                assert_eq!(written, header, "a header that was refused is unchanged");
                assert_eq!(read(&written, format).option, before.option);
            }
        }
        let mut restored = header.to_vec();
        let seen = restore_padding(&mut restored);
        assert_eq!(seen.option, read(header, Format::Padding).option);
        if let Ok(inserted) = insert(header, code) {
            let header_length = usize::from(header[12] >> 4) * 4;
            let inserted = inserted.as_bytes();
            assert_eq!(inserted.len(), header_length + 8);
            assert_eq!(inserted[28..], header[20..header_length], "the old options follow");
        }
    });
});
