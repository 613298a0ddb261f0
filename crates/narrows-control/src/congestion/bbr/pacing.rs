//! Computes the pacing rate and the send quantum from a bandwidth (BBR-13, BBR-18).

use super::gain::Gain;
use crate::parameter::{time_from, whole};
use crate::units::{Bytes, Rate, Span};

crate::parameters! {
    /// Parameters; the defaults are those of Linux `tcp_bbr.c`.
    pub struct Params {
        /// The pacing rate is this percentage below the estimate. Without this margin, a queue would slowly build up.
        pub margin_percent: u32 = 1, whole(0, 90).unit("%").from("bbr_pacing_margin_percent");
        /// RTT assumed for the first pacing rate if the handshake gave no RTT.
        pub nominal_rtt: Span = Span::from_millis(1), time_from(Span::from_micros(1), Span::from_secs(10)).from("USEC_PER_MSEC");
        /// A send quantum is the amount of data that a flow sends in this time at its pacing rate.
        pub quantum: Span = Span::from_nanos(1_000_000_000 / 1024), time_from(Span::ZERO, Span::from_secs(1)).from("sk_pacing_shift");
        /// Maximum number of segments in a send quantum.
        pub max_quantum: u32 = 45, whole(1, 10_000).unit("segments").from("GSO_MAX_SIZE");
    }
    and {
        /// Below this pacing rate, the minimum quantum is one segment. At higher rates it is two segments
        /// (`bbr_min_tso_rate`).
        pub min_quantum_rate: Rate = Rate::from_bits_per_sec(1_200_000);
        /// Maximum time between two paced packets, in seconds. Without this limit, one wrong bandwidth sample could
        /// stop the flow forever. Linux needs no limit, because its fixed-point numbers cannot express a rate below one
        /// packet in 17 s.
        pub slowest_packet: u64 = 10;
    }
}

impl Params {
    /// Returns the pacing rate of BBR-18, but at least one packet per `slowest_packet` seconds.
    #[inline]
    pub fn rate(&self, bw: Rate, gain: Gain, packet_bytes: u32) -> Rate {
        let kept = u64::from(100u32.saturating_sub(self.margin_percent));
        let rate = scaled(gain, bw.as_bytes_per_sec(), kept);
        if rate > u64::from(packet_bytes) {
            return Rate::from_bytes_per_sec(rate);
        }
        let least = u64::from(packet_bytes) / self.slowest_packet.max(1);
        Rate::from_bytes_per_sec(rate.max(least).max(1))
    }

    /// Returns the rate for a window of `cwnd` segments per RTT. If the RTT is unknown, uses `nominal_rtt`.
    pub fn initial_rate(&self, cwnd: u32, rtt: Option<Span>, gain: Gain, packet_bytes: u32) -> Rate {
        let bytes = u64::from(cwnd) * u64::from(packet_bytes);
        let rtt = rtt.unwrap_or(self.nominal_rtt).max(Span::from_micros(1));
        self.rate(Rate::of(Bytes::new(bytes), rtt), gain, packet_bytes)
    }

    /// Returns the number of segments that an offloading sender sends in one burst at this pacing rate
    /// (`bbr_tso_segs_goal`).
    #[inline]
    pub fn quantum(&self, rate: Rate, packet_bytes: u32) -> u32 {
        let segments = rate.bytes_in(self.quantum).get() / u64::from(packet_bytes.max(1));
        let least = if rate < self.min_quantum_rate { 1 } else { 2 };
        u32::try_from(segments).unwrap_or(u32::MAX).max(least).min(self.max_quantum)
    }
}

/// Returns `gain * rate * kept / 100`. As in Linux, `gain * rate` is rounded down, and so is the result.
fn scaled(gain: Gain, rate: u64, kept: u64) -> u64 {
    if let Some(product) = gain.of_u64(rate).and_then(|gained| gained.checked_mul(kept)) {
        return product / 100;
    }
    let product = gain.of(u128::from(rate)).saturating_mul(u128::from(kept));
    u64::try_from(product / 100).unwrap_or(u64::MAX)
}
