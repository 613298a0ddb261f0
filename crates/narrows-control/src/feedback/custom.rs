//! Congestion headers of other crates, for example in-band telemetry.
//!
//! A [`Custom`] header is a list of 32-bit words between IP and TCP. The sender creates it with room for a number of
//! words, and rate controllers on the path fill this room. The packet therefore has the same size on each link. The
//! receiver copies the words into its next ACK.

/// Largest number of words of a header. With 12 words, six routers can write 8 bytes each, as much as INT in HPCC needs
/// (SIGCOMM 2019, section 4.1).
pub const MAX_WORDS: usize = 12;

/// Bytes before the words: protocol, room and length.
const FIXED_BYTES: u16 = 4;

/// A congestion header whose words another crate defines.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    protocol: u8,
    room: u8,
    len: u8,
    words: [u32; MAX_WORDS],
}

impl Custom {
    /// Largest number of bytes of a header on the wire. No other congestion header is longer.
    pub const MAX_BYTES: u16 = FIXED_BYTES + 4 * MAX_WORDS as u16;

    /// Creates a header without words, with room for `room` words, at most [`MAX_WORDS`]. `protocol` is a number of
    /// your choice, which distinguishes your header from the headers of other crates.
    pub const fn new(protocol: u8, room: usize) -> Self {
        let room = if room < MAX_WORDS { room } else { MAX_WORDS };
        Custom { protocol, room: room as u8, len: 0, words: [0; MAX_WORDS] }
    }

    /// Returns the number of the protocol.
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Returns the number of words for which the header has room.
    pub const fn room(&self) -> usize {
        self.room as usize
    }

    /// Returns the words.
    pub fn words(&self) -> &[u32] {
        &self.words[..usize::from(self.len)]
    }

    /// Returns the words, so that they can be changed.
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words[..usize::from(self.len)]
    }

    /// Adds these words. If the header has no room for all of them, the function adds none and returns `false`.
    pub fn push(&mut self, words: &[u32]) -> bool {
        let from = usize::from(self.len);
        let to = from.saturating_add(words.len());
        if to > self.room() {
            return false;
        }
        self.words[from..to].copy_from_slice(words);
        self.len = to as u8;
        true
    }

    /// Returns the number of bytes that the header takes in a data packet, whether its room is used or not.
    pub const fn wire_bytes(&self) -> u16 {
        FIXED_BYTES + 4 * self.room as u16
    }

    /// Returns the number of bytes that the words add to an ACK. ACKs carry only the words, without the unused room.
    pub const fn echo_bytes(&self) -> u16 {
        FIXED_BYTES + 4 * self.len as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_stay_in_order_and_within_the_room(
            room in 0usize..20,
            pushes in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..5), 0..8),
        ) {
            let mut header = Custom::new(7, room);
            let mut expected: Vec<u32> = Vec::new();
            for words in &pushes {
                let fits = expected.len() + words.len() <= room.min(MAX_WORDS);
                prop_assert_eq!(header.push(words), fits);
                if fits {
                    expected.extend(words);
                }
            }
            prop_assert_eq!(header.words(), &expected[..]);
            prop_assert!(header.echo_bytes() <= header.wire_bytes());
            prop_assert_eq!(header.protocol(), 7);
            for word in header.words_mut() {
                *word = !*word;
            }
            prop_assert!(header.words().iter().zip(&expected).all(|(now, before)| *now == !*before));
            prop_assert!(header.wire_bytes() <= Custom::MAX_BYTES);
        }
    }
}
