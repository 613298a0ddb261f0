//! Reads `struct tcp_info` (linux/tcp.h) by offsets, because older kernels return a shorter struct.

use std::io;
use std::os::fd::AsFd;

use crate::raw;

/// Size of the buffer for the struct. So far, the struct of every kernel is smaller.
pub(crate) const TCP_INFO_MAX_BYTES: usize = 512;

/// The kernel's statistics of a connection.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct TcpInfo {
    /// State of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub(crate) ca_state: u8,
    /// Payload bytes of a full segment.
    pub(crate) mss: u32,
    /// Segments in flight by Linux's definition: sent - (SACKed + lost) + retransmitted.
    pub(crate) in_flight: u32,
    /// Smoothed RTT in microseconds; 0 before the first sample.
    pub(crate) srtt_us: u32,
    /// Smoothed mean deviation of the RTT, with a gain of 1/4.
    pub(crate) rttvar_us: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) cwnd: u32,
    /// Slow-start threshold in segments; `None` while it is infinite.
    pub(crate) ssthresh: Option<u32>,
    pub(crate) retransmits: u32,
    /// Pacing rate in payload bytes/s; `None` if it is unlimited.
    pub(crate) pacing_rate: Option<u64>,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    /// Number of segments that were acknowledged, cumulatively or selectively. The number wraps.
    pub(crate) delivered: u32,
    pub(crate) bytes_sent: u64,
    pub(crate) data_segments_out: u32,
    pub(crate) dsack_dups: u32,
    pub(crate) timeouts: u32,
    /// Time in which the connection had data to send (`tcpi_busy_time`), in microseconds.
    pub(crate) busy_us: u64,
    /// The part of `busy_us` in which the receive window was the limit.
    pub(crate) rwnd_limited_us: u64,
    /// The part of `busy_us` in which the send buffer was the limit.
    pub(crate) sndbuf_limited_us: u64,
}

/// TCP_INFINITE_SSTHRESH (net/tcp.h).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl TcpInfo {
    /// Reads the statistics of a socket.
    pub(crate) fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0u8; TCP_INFO_MAX_BYTES];
        let n = raw::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Ok(TcpInfo::parse(bytes.get(..n).unwrap_or(&bytes)))
    }

    /// Parses the kernel's bytes. Missing fields are 0.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| -> u32 {
            bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
        };
        let u64_at = |at: usize| -> u64 {
            bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        let [unacked, sacked, lost, retrans] = [24, 28, 32, 36].map(u32_at);
        let min_rtt_us = u32_at(148);
        TcpInfo {
            ca_state: bytes.get(1).copied().unwrap_or(0),
            mss: u32_at(16),
            in_flight: unacked.saturating_sub(sacked.saturating_add(lost)).saturating_add(retrans),
            srtt_us: u32_at(68),
            rttvar_us: u32_at(72),
            min_rtt_us: if min_rtt_us == u32::MAX { 0 } else { min_rtt_us },
            ssthresh: Some(u32_at(76)).filter(|&s| s < INFINITE_SSTHRESH),
            cwnd: u32_at(80),
            retransmits: u32_at(100),
            pacing_rate: Some(u64_at(104)).filter(|&r| r > 0 && r != u64::MAX && r != u32::MAX as u64),
            bytes_acked: u64_at(120),
            bytes_received: u64_at(128),
            data_segments_out: u32_at(156),
            busy_us: u64_at(168),
            rwnd_limited_us: u64_at(176),
            sndbuf_limited_us: u64_at(184),
            delivered: u32_at(192),
            bytes_sent: u64_at(200),
            dsack_dups: u32_at(216),
            // The field tcpi_total_rto has existed since Linux 6.7. In the structure, this field follows rcv_ooopack,
            // snd_wnd, rcv_wnd and rehash.
            timeouts: u32_at(240) & 0xffff,
        }
    }

    /// Returns the share of the busy time in which the receive window or the send buffer was the limit.
    pub(crate) fn limited_share(&self) -> f64 {
        let limited = self.rwnd_limited_us + self.sndbuf_limited_us;
        if self.busy_us == 0 { 0.0 } else { limited as f64 / self.busy_us as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_missing_in_an_older_kernel_are_zero() {
        let mut bytes = vec![0u8; 104];
        bytes[1] = 3;
        bytes[80..84].copy_from_slice(&10u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&INFINITE_SSTHRESH.to_ne_bytes());
        bytes[24..28].copy_from_slice(&5u32.to_ne_bytes());
        bytes[32..36].copy_from_slice(&7u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        assert_eq!((info.ca_state, info.cwnd, info.ssthresh, info.in_flight), (3, 10, None, 0));
        assert_eq!((info.bytes_sent, info.min_rtt_us, info.limited_share()), (0, 0, 0.0));
        TcpInfo::parse(&bytes[..3]);
    }
}
