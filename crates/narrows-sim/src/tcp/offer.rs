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

/// What a socket buffer and its header take beyond the payload before they are rounded up to a power of two, and beside (Linux
/// SKB_TRUESIZE: headroom, headers and `skb_shared_info`; `struct sk_buff`).
const SKB_INSIDE: u32 = 400;
const SKB_BESIDE: u32 = 256;

/// How far a receiver's window has opened, in segments (Linux `rcv_ssthresh` and half of `sk_rcvbuf`).
///
/// Deviation from Linux: the buffer is large from the start, as `tcp_rmem` can be set to; by default it grows with what is
/// read in an RTT.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Opening {
    segments: u32,
    most: u32,
}

impl Opening {
    /// Segments came; whether the window grew.
    #[inline]
    pub(crate) fn grow(&mut self, came: u32) -> bool {
        let before = self.segments;
        self.segments = before.saturating_add(GROWTH.saturating_mul(came)).min(self.most);
        self.segments > before
    }
}

/// The cost of a segment behind a hole where an open window limits nobody.
const UNLIMITED: u32 = u32::MAX;

/// What a receiver has offered, as its sender knows it.
///
/// Segments that wait behind a hole take memory, each what its socket buffer takes, and half of what they leave is offered; what
/// was offered once is not taken back (Linux `__tcp_select_window`). A scenario's limit of the window is no matter of memory; and
/// where a scenario names no buffer, a window that has opened to it limits nobody.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Offer {
    opening: Opening,
    /// Segments of window that one behind a hole costs, in 1/1024.
    cost: u32,
    edge: u32,
}

impl Offer {
    /// Before the first data: by the segment size in bytes, the scenario's limit in segments, the socket's buffer, of
    /// which half is offered (Linux tcp_win_from_space), and whether that is a limit for good.
    pub(crate) fn new(mss: u32, limit: Option<u32>, buffer: Option<Bytes>, limits: bool) -> Self {
        let half = (buffer.unwrap_or(BUFFER).get() / 2).min(u64::from(LARGEST_BYTES)) as u32;
        let most = limit.unwrap_or((half / mss).max(1));
        let segments = (FIRST_BYTES / mss).min(most);
        let held = (mss + SKB_INSIDE).next_power_of_two() + SKB_BESIDE;
        let cost = match (limit, limits) {
            (Some(_), _) => 0,
            (None, true) => (u64::from(held) * 512 / u64::from(mss)) as u32,
            (None, false) => UNLIMITED,
        };
        Offer { opening: Opening { segments, most }, cost, edge: segments }
    }

    /// The receiver's part of it.
    pub(crate) fn opening(&self) -> Opening {
        self.opening
    }

    /// The first segment that may not be sent.
    #[inline]
    pub(crate) fn edge(&self) -> u32 {
        self.edge
    }

    /// An ACK came up to `una`, with so many segments behind holes, and so many of which nobody had heard before.
    #[inline]
    pub(crate) fn on_ack(&mut self, una: u32, behind: u32, came: u32) {
        self.opening.grow(came);
        let Opening { segments, most } = self.opening;
        let offered = if self.cost != UNLIMITED {
            segments.min(most.saturating_sub(((u64::from(behind) * u64::from(self.cost)) >> 10) as u32))
        } else if segments < most {
            segments
        } else {
            LARGEST_BYTES
        };
        self.edge = self.edge.max(una.saturating_add(offered));
    }
}
