//! Checks that a TCP header can carry the rates that switches write. The simulator stores a packet's rate in a field of
//! a struct. On a real network, a TCP option carries the rate.
//!
//! In builds with debug assertions, which include all tests, the check runs for every rate that a switch writes. The
//! code builds a TCP header, inserts the option, rewrites the rate in the option, and corrects the checksum. An
//! assertion then checks the rate and the checksum.

use narrows_control::feedback::checksum;
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::option::{self, Format};

use crate::packet::{Packet, flag};

/// Offset of the checksum in a TCP header, in bytes.
const CHECKSUM: usize = 16;

/// Bytes of the longest TCP header (60), and of the part of its pseudo header that is not zero (4).
const ROOM_BYTES: usize = 60 + 4;

/// Computes the checksum of a TCP segment without payload. In the pseudo header, both addresses are zero. The protocol
/// and the length have their real values.
fn sum_of(header: &[u8]) -> u16 {
    let mut bytes = [0; ROOM_BYTES];
    let [high, low] = (header.len() as u16).to_be_bytes();
    bytes[..header.len()].copy_from_slice(header);
    bytes[header.len()..header.len() + 4].copy_from_slice(&[0, 6, high, low]);
    checksum::compute(&bytes[..header.len() + 4])
}

/// A byte buffer that needs no heap memory.
struct Writer {
    bytes: [u8; 60],
    len: usize,
}

impl Writer {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
    }
}

/// Builds the TCP header of an ACK with its options: NOP NOP timestamps, NOP NOP SACK.
fn header(p: &Packet) -> Writer {
    let mut w = Writer { bytes: [0; 60], len: 0 };
    w.put(5001u16.to_be_bytes());
    w.put(0x8000u16.to_be_bytes());
    w.put(p.seq.to_be_bytes());
    w.put(p.ack.to_be_bytes());
    w.put([0, p.flags as u8]);
    w.put(0xffffu16.to_be_bytes());
    w.put([0; 4]);
    w.put([1, 1, 8, 10]);
    w.put(p.ts.to_be_bytes());
    w.put(p.ts_echo.to_be_bytes());
    if p.sacks > 0 {
        w.put([1, 1, 5, 2 + 8 * p.sacks]);
        for block in &p.sack[..p.sacks as usize] {
            w.put(block.start.to_be_bytes());
            w.put(block.end.to_be_bytes());
        }
    }
    w.bytes[12] = ((w.len / 4) << 4) as u8;
    let sum = sum_of(&w.bytes[..w.len]);
    w.bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    w
}

/// Builds a TCP header for the packet, writes `code` into the header's rate option, and reads the option again. Returns
/// whether the code and the checksum are right.
pub(crate) fn survives_encoding(p: &Packet, code: RateCode) -> bool {
    let before = if p.is(flag::RATE) { RateCode::from_bits(p.rate_code) } else { RateCode::UNASSIGNED };
    let plain = header(p);
    let Ok(with_option) = option::insert(&plain.bytes[..plain.len], before) else { return false };
    let mut buffer = [0; 60];
    let bytes = &mut buffer[..with_option.as_bytes().len()];
    bytes.copy_from_slice(with_option.as_bytes());
    if option::rewrite(bytes, Format::Experimental, code).is_err() {
        return false;
    }
    let read = option::read(bytes, Format::Experimental);
    let written = [bytes[CHECKSUM], bytes[CHECKSUM + 1]];
    bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&[0, 0]);
    read.option == option::Reading::from(code).option && sum_of(bytes).to_be_bytes() == written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Template;
    use narrows_control::units::Rate;

    fn ack(sacks: u8) -> Packet {
        let mut p = Template { flags: flag::REVERSE | flag::ACK, ..Template::default() }.packet(52);
        (p.ack, p.ts, p.ts_echo, p.sacks) = (77, 123_456, 654_321, sacks);
        p
    }

    #[test]
    fn a_rate_survives_encoding_beside_two_sack_blocks() {
        let code = RateCode::encode(Rate::from_bytes_per_sec(12_250_000));
        assert!((0..=2).all(|sacks| survives_encoding(&ack(sacks), code)));
    }

    #[test]
    fn three_sack_blocks_leave_no_room_for_the_option() {
        assert!(!survives_encoding(&ack(3), RateCode::encode(Rate::from_bytes_per_sec(1_000))));
    }
}
