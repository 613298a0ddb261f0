//! The window that a Linux receiver offers: 64 KiB at first, two segments more for each that comes.
//!
//! Packets do not carry it: the sender counts what ACKs report, and so knows what the receiver offered with them.

use narrows_control::units::Bytes;

/// Largest window before windows are scaled (RFC 7323 section 2.2; Linux tcp_select_initial_window).
const FIRST_BYTES: u32 = u16::MAX as u32;
/// Largest receive buffer by default (Linux tcp_rmem).
const BUFFER: Bytes = Bytes::new(6 << 20);
/// Largest window that can be offered (RFC 7323 section 2.3).
const LARGEST_BYTES: u32 = 65_535 << 14;
/// Segments by which each that comes lets the window grow (Linux tcp_grow_window).
const GROWTH: u32 = 2;

/// An offered window in segments.
///
/// Where a scenario sets no limit the window is none any more once it has grown to the buffer. Deviation from Linux: the
/// buffer is large from the start, as `tcp_rmem` can be set to; by default it grows with what is read in an RTT.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Offer {
    segments: u32,
    buffer: u32,
    largest: u32,
}

impl Offer {
    /// Before the first data: by the segment size in bytes, the scenario's limit in segments, and the socket's buffer, of
    /// which half is offered (Linux tcp_win_from_space).
    pub(crate) fn new(mss: u32, limit: Option<u32>, buffer: Option<Bytes>) -> Self {
        let most = (buffer.unwrap_or(BUFFER).get() / 2).min(u64::from(LARGEST_BYTES)) as u32;
        let buffer = limit.unwrap_or((most / mss).max(1));
        Offer {
            segments: (FIRST_BYTES / mss).min(buffer),
            buffer,
            largest: limit.unwrap_or(LARGEST_BYTES / mss),
        }
    }

    /// What may be under way.
    #[inline]
    pub(crate) fn segments(&self) -> u32 {
        if self.segments < self.buffer { self.segments } else { self.largest }
    }

    /// Segments came; whether the window grew.
    #[inline]
    pub(crate) fn grow(&mut self, came: u32) -> bool {
        let before = self.segments;
        self.segments = before.saturating_add(GROWTH.saturating_mul(came)).min(self.buffer);
        self.segments > before
    }
}
