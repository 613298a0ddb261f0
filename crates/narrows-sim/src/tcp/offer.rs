//! The receive window that a Linux receiver offers. It starts at 64 KiB. It grows by two segments for each segment that
//! arrives, up to a maximum.
//!
//! Packets do not carry the receive window. The sender therefore computes the window from the segments that ACKs
//! report.

use narrows_control::units::Bytes;

/// Largest window without window scaling (RFC 7323 section 2.2; Linux tcp_select_initial_window).
const FIRST_BYTES: u32 = u16::MAX as u32;
/// Largest default size of the receive buffer (Linux tcp_rmem).
const BUFFER: Bytes = Bytes::new(6 << 20);
/// Largest window with window scaling (RFC 7323 section 2.3).
const LARGEST_BYTES: u32 = 65_535 << 14;
/// Number of segments by which the window grows for each segment that arrives (Linux tcp_grow_window).
const GROWTH_SEGMENTS: u32 = 2;

/// Memory that Linux allocates together with the payload, for headroom, headers and `skb_shared_info` (SKB_TRUESIZE).
/// Linux rounds the sum of the payload and this memory up to a power of two.
const SKB_DATA_OVERHEAD_BYTES: u32 = 400;
/// Size of `struct sk_buff`. Linux allocates it separately (SKB_TRUESIZE).
const SKB_STRUCT_BYTES: u32 = 256;

/// The current and the maximum size of a receiver's window, in segments (Linux `rcv_ssthresh` and half of `sk_rcvbuf`).
///
/// Deviation from Linux: the buffer has its maximum size from the start, as if `tcp_rmem` were set to this size. By
/// default, Linux enlarges the buffer when the application reads more data per RTT.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Opening {
    segments: u32,
    most: u32,
}

impl Opening {
    /// Enlarges the window because `arrived` segments have arrived. Returns whether the window grew.
    #[inline]
    pub(crate) fn grow(&mut self, arrived: u32) -> bool {
        let before = self.segments;
        self.segments = before.saturating_add(GROWTH_SEGMENTS.saturating_mul(arrived)).min(self.most);
        self.segments > before
    }
}

/// Value of `Offer::cost` if neither the receive memory nor the scenario limits the window. The window then limits the
/// sender only until it has grown to its maximum.
const UNLIMITED: u32 = u32::MAX;

/// The receive window as the sender computes it from ACKs.
///
/// The receiver offers half of the free memory of its receive buffer. An out-of-order segment occupies memory in this
/// buffer. The receiver never takes back a window that it has offered (Linux `__tcp_select_window`).
///
/// If the scenario limits the window, the window does not depend on the free memory. If the plan has no
/// `receive_memory`, the window no longer limits the sender after it has grown to its maximum.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Offer {
    opening: Opening,
    /// Reduction of the window for each out-of-order segment, in 1/1024 of a segment.
    cost: u32,
    edge: u32,
}

impl Offer {
    /// Creates the offer of a new connection. `mss` is in bytes. `limit` is the scenario's limit of the window, in
    /// segments. The receiver offers half of the socket's `buffer` (Linux tcp_win_from_space). If `buffer_limits` is
    /// true, the buffer still limits the sender after the window has grown to its maximum.
    pub(crate) fn new(mss: u32, limit: Option<u32>, buffer: Option<Bytes>, buffer_limits: bool) -> Self {
        let half = (buffer.unwrap_or(BUFFER).get() / 2).min(u64::from(LARGEST_BYTES)) as u32;
        let most = limit.unwrap_or((half / mss).max(1));
        let segments = (FIRST_BYTES / mss).min(most);
        let held = (mss + SKB_DATA_OVERHEAD_BYTES).next_power_of_two() + SKB_STRUCT_BYTES;
        let cost = match (limit, buffer_limits) {
            (Some(_), _) => 0,
            (None, true) => (u64::from(held) * 512 / u64::from(mss)) as u32,
            (None, false) => UNLIMITED,
        };
        Offer { opening: Opening { segments, most }, cost, edge: segments }
    }

    /// Returns the current and the maximum size of the window. The receiver has its own copy of this state, and updates
    /// it in the same way.
    pub(crate) fn opening(&self) -> Opening {
        self.opening
    }

    /// Returns the number of the first segment beyond the offered window.
    #[inline]
    pub(crate) fn edge(&self) -> u32 {
        self.edge
    }

    /// Handles an ACK that newly reports `arrived` segments. After this ACK, `una` is the first unacknowledged segment,
    /// and `out_of_order` segments are SACKed.
    #[inline]
    pub(crate) fn on_ack(&mut self, una: u32, out_of_order: u32, arrived: u32) {
        self.opening.grow(arrived);
        let Opening { segments, most } = self.opening;
        let offered = if self.cost != UNLIMITED {
            segments.min(most.saturating_sub(((u64::from(out_of_order) * u64::from(self.cost)) >> 10) as u32))
        } else if segments < most {
            segments
        } else {
            LARGEST_BYTES
        };
        self.edge = self.edge.max(una.saturating_add(offered));
    }
}
