//! The rate in a TCP header (BRF-9): an experimental option, or the paper's two padding bytes.
//!
//! All functions expect the whole header. The data offset in the header states its length. The functions do not
//! trust the header. They treat a truncated header, or a header with a wrong length, as a header without the option.

use crate::feedback::checksum;
use crate::feedback::code::RateCode;
use crate::rate::RateOption;

/// Option kind for experiments with an ExID (RFC 4727, RFC 6994).
pub const KIND: u8 = 253;
/// Length of the option: kind, length, ExID, value.
pub const LEN: usize = 6;
/// Number of bytes that the option takes: [`LEN`], and two NOPs that keep the following options
/// aligned to 32 bits.
pub const PADDED_LEN: usize = 8;
/// Experiment identifier, "NW". It is not registered with IANA. RFC 6994 requires registration before use on the open
/// Internet.
pub const EXID: u16 = 0x4E57;

const MIN_HEADER: usize = 20;
const MAX_HEADER: usize = 60;
const CHECKSUM: usize = 16;
const FLAGS: usize = 13;
const SYN: u8 = 0x02;
const END: u8 = 0;
const NOP: u8 = 1;
const TIMESTAMP: [u8; 2] = [8, 10];

/// The place of the rate in a TCP header.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// The experimental option of RFC 6994 (the default).
    Experimental,
    /// The paper's format, which overwrites the two NOPs in front of the timestamp option.
    ///
    /// Every standard parser misreads such a header. The sender's host must therefore restore the NOPs before its TCP
    /// stack reads the header. A SYN-ACK has no room for the rate, because Linux puts SACK-permitted in the place of
    /// the NOPs. A flow therefore gets no rate within its first RTT.
    Padding,
}

/// The reason why a rate could not be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// The header is shorter than 20 bytes, or shorter than its data offset says.
    Malformed,
    /// The header has no option to overwrite, or no room for another option (options take at most 40 bytes).
    Full,
}

/// The contents of the option, for [`PacketInfo`](crate::rate::PacketInfo).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Reading {
    /// The rate option.
    pub option: RateOption,
    /// Whether the packet states that the application does not limit the flow (BRF-100). The value is meaningful only
    /// for data packets.
    pub unlimited: Option<bool>,
}

impl From<RateCode> for Reading {
    fn from(code: RateCode) -> Self {
        match code.decode() {
            Some(rate) => Reading { option: RateOption::Assigned(rate), unlimited: None },
            None => Reading { option: RateOption::Unassigned, unlimited: Some(code == RateCode::UNLIMITED) },
        }
    }
}

/// Returns the header's length according to its data offset.
fn header_len(header: &[u8]) -> Result<usize, NoPlace> {
    let words = header.get(12).ok_or(NoPlace::Malformed)? >> 4;
    let len = usize::from(words) * 4;
    if len < MIN_HEADER || len > header.len() { Err(NoPlace::Malformed) } else { Ok(len) }
}

/// Returns the offset of the value's two bytes from the start of the header.
fn locate(header: &[u8], format: Format) -> Option<usize> {
    let len = header_len(header).ok()?;
    let header = &header[..len];
    match format {
        Format::Experimental => locate_experimental(header),
        Format::Padding => locate_padding(header),
    }
}

fn locate_experimental(header: &[u8]) -> Option<usize> {
    let mut at = MIN_HEADER;
    while let Some(&kind) = header.get(at) {
        match kind {
            END => return None,
            NOP => at += 1,
            _ => {
                let len = usize::from(*header.get(at + 1)?);
                if len < 2 {
                    return None;
                }
                let option = header.get(at..at + len)?;
                if kind == KIND && len == LEN && option[2..4] == EXID.to_be_bytes() {
                    return Some(at + 4);
                }
                at += len;
            }
        }
    }
    None
}

fn locate_padding(header: &[u8]) -> Option<usize> {
    // Accepts only the layout that Linux uses in established connections. In other layouts, the two bytes may not be
    // padding.
    let room = header[FLAGS] & SYN == 0 && header.get(MIN_HEADER + 2..MIN_HEADER + 4)? == TIMESTAMP;
    room.then_some(MIN_HEADER)
}

fn word(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// Reads the option.
pub fn read(header: &[u8], format: Format) -> Reading {
    let Some(at) = locate(header, format) else {
        return Reading::default();
    };
    let bits = word(header, at);
    match format {
        Format::Experimental => RateCode::from_bits(bits).into(),
        Format::Padding if bits == u16::from_be_bytes([NOP, NOP]) => {
            Reading { option: RateOption::Unassigned, unlimited: None }
        }
        Format::Padding => Reading { unlimited: None, ..RateCode::from_bits(bits).into() },
    }
}

/// Replaces the value in the header with `code`, and corrects the checksum.
pub fn rewrite(header: &mut [u8], format: Format, code: RateCode) -> Result<(), NoPlace> {
    header_len(header)?;
    let at = locate(header, format).ok_or(NoPlace::Full)?;
    let sum = checksum::update_at(word(header, CHECKSUM), at, word(header, at), code.to_bits());
    header[at..at + 2].copy_from_slice(&code.to_bits().to_be_bytes());
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// Restores the two NOPs of [`Format::Padding`] at the sender, and returns the value that the NOPs replace.
pub fn restore_padding(header: &mut [u8]) -> Reading {
    let reading = read(header, Format::Padding);
    // An error means that the header has no padding to restore.
    let _ = rewrite(header, Format::Padding, RateCode::from_bits(u16::from_be_bytes([NOP, NOP])));
    reading
}

/// An owned TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; MAX_HEADER],
    len: usize,
}

impl Header {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the header with a correct checksum and the experimental option in front of all other options.
///
/// The option comes first, because END bytes at the end of the other options would hide a later option. The new
/// checksum accounts for the larger data offset and the longer TCP length in the pseudo header. The caller corrects the
/// total length in the IP header.
pub fn insert(header: &[u8], code: RateCode) -> Result<Header, NoPlace> {
    let len = header_len(header)?;
    if len + PADDED_LEN > MAX_HEADER {
        return Err(NoPlace::Full);
    }
    let [c0, c1] = code.to_bits().to_be_bytes();
    let [x0, x1] = EXID.to_be_bytes();
    let option = [NOP, NOP, KIND, LEN as u8, x0, x1, c0, c1];

    let mut bytes = [0; MAX_HEADER];
    bytes[..MIN_HEADER].copy_from_slice(&header[..MIN_HEADER]);
    bytes[MIN_HEADER..MIN_HEADER + PADDED_LEN].copy_from_slice(&option);
    bytes[MIN_HEADER + PADDED_LEN..len + PADDED_LEN].copy_from_slice(&header[MIN_HEADER..len]);
    bytes[12] += ((PADDED_LEN / 4) as u8) << 4;

    // The other options move by eight bytes. Eight is even, so their part of the sum does not change.
    let mut sum = checksum::update(word(header, CHECKSUM), word(header, 12), word(&bytes, 12));
    for pair in option.chunks_exact(2) {
        sum = checksum::update(sum, 0, u16::from_be_bytes([pair[0], pair[1]]));
    }
    sum = checksum::update(sum, 0, PADDED_LEN as u16);
    bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(Header { bytes, len: len + PADDED_LEN })
}

#[cfg(test)]
#[path = "option_tests.rs"]
mod tests;
